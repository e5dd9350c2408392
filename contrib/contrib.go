// Package contrib has the files that run furl as a service. furl setup service
// installs them.
package contrib

import _ "embed"

// Systemd is the unit of a user's own gateway.
//
//go:embed furl.service
var Systemd string

// Launchd is the agent of a user's own gateway on macOS. The placeholders PROGRAM,
// DATA and LOG are paths.
//
//go:embed com.furlhq.furl.plist
var Launchd string
