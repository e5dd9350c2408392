package session

import (
	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
)

// Title returns the automatic title of a session: the first line of the user's
// messages that says what the session is about. It skips what agents insert, such
// as AGENTS.md and reminders, and prefers any other line to a greeting or a command
// without arguments. It returns "" if the records have no user text.
func Title(records []furl.Record) string { return open.Title(records) }
