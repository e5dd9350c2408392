package main

import (
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

const description = `keeps long-running LLM agents inside their context window
furl records the whole transcript of an agent, decides what the model needs
to see, hides the rest reversibly, and finds it again. It has a gateway
between agents and their providers, and commands for recorded sessions.`

// scripts run when the packages are installed and removed. They do not enable the
// service: it needs a configuration first. "$1" is "remove" in deb's prerm and 0 in
// rpm's %preun when the package is removed and not upgraded.
var scripts = map[string]string{
	"postinstall.sh": `#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
`,
	"preremove.sh": `#!/bin/sh
set -e
if [ -d /run/systemd/system ] && { [ "$1" = remove ] || [ "$1" = 0 ]; }; then
  systemctl disable --now furl-server.service || true
fi
`,
	"postremove.sh": `#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
`,
}

// linuxPackages writes the deb and the rpm package for an architecture.
func (r *release) linuxPackages(s system) error {
	for _, format := range []struct {
		name     string
		packager nfpm.Packager
	}{{"deb", deb.Default}, {"rpm", rpm.DefaultRPM}} {
		info, err := r.packageInfo(s, format.name)
		if err != nil {
			return err
		}
		if err := nfpm.PrepareForPackager(info, format.name); err != nil {
			return err
		}
		name := filepath.Join(r.out, format.packager.ConventionalFileName(info))
		if err := create(name, func(w io.Writer) error { return format.packager.Package(info, w) }); err != nil {
			return err
		}
	}
	return nil
}

// packageInfo describes a package: its files and where they are installed.
func (r *release) packageInfo(s system, format string) (*nfpm.Info, error) {
	shared := filepath.Join(r.stage, "shared")
	var contents files.Contents
	add := func(kind, source, destination string, mode fs.FileMode) {
		contents = append(contents, &files.Content{
			Type: kind, Source: source, Destination: destination,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.time},
		})
	}
	add(files.TypeFile, r.binary(s), "/usr/bin/furl", 0o755)
	add(files.TypeConfigNoReplace, filepath.Join(shared, "server.yaml"), "/etc/furl/config.yaml", 0o644)
	add(files.TypeFile, filepath.Join(shared, "furl-server.service"), "/usr/lib/systemd/system/furl-server.service", 0o644)
	add(files.TypeFile, filepath.Join(shared, "furl.service"), "/usr/lib/systemd/user/furl.service", 0o644)
	add(files.TypeFile, filepath.Join(shared, "completions", "furl.bash"), "/usr/share/bash-completion/completions/furl", 0o644)
	add(files.TypeFile, filepath.Join(shared, "completions", "_furl"), "/usr/share/zsh/site-functions/_furl", 0o644)
	add(files.TypeFile, filepath.Join(shared, "completions", "furl.fish"), "/usr/share/fish/vendor_completions.d/furl.fish", 0o644)
	if format == "deb" {
		add(files.TypeFile, filepath.Join(shared, "LICENSE"), "/usr/share/doc/furl/copyright", 0o644)
		add(files.TypeFile, filepath.Join(shared, "THIRD-PARTY-LICENSES.txt"), "/usr/share/doc/furl/THIRD-PARTY-LICENSES.txt", 0o644)
	} else {
		add(files.TypeRPMLicense, filepath.Join(shared, "LICENSE"), "/usr/share/licenses/furl/LICENSE", 0o644)
		add(files.TypeRPMLicense, filepath.Join(shared, "THIRD-PARTY-LICENSES.txt"), "/usr/share/licenses/furl/THIRD-PARTY-LICENSES.txt", 0o644)
	}
	pages, err := filepath.Glob(filepath.Join(shared, "man", "*.1.gz"))
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		add(files.TypeFile, page, "/usr/share/man/man1/"+filepath.Base(page), 0o644)
	}
	text := description
	if format == "rpm" { // which has the first line apart, as the summary
		_, text, _ = strings.Cut(description, "\n")
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "furl", Arch: s.arch, Platform: "linux", Version: r.version, Release: "1",
		Section: "utils", Priority: "optional", Maintainer: "The furl authors <furl@localhost>", Vendor: "furl",
		Description: text, License: "Apache-2.0", MTime: r.time, DisableGlobbing: true,
	})
	info.Contents = contents
	info.Umask = 0o022
	info.Scripts = nfpm.Scripts{
		PostInstall: filepath.Join(shared, "postinstall.sh"),
		PreRemove:   filepath.Join(shared, "preremove.sh"),
		PostRemove:  filepath.Join(shared, "postremove.sh"),
	}
	info.RPM.BuildHost, info.RPM.Group = "localhost", "Applications/System"
	info.RPM.Summary, _, _ = strings.Cut(description, "\n")
	if r.fast {
		info.RPM.Compression, info.Deb.Compression = "gzip:1", "gzip:1"
	}
	return info, nil
}
