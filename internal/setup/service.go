package setup

import (
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/furlhq/furl/contrib"
)

// ServiceName is the name of the setup that starts the gateway at login.
const ServiceName = "service"

// ServiceOptions say how the gateway runs as a service.
type ServiceOptions struct {
	OS      string // as runtime.GOOS
	Program string // absolute path
	Data    string // data folder, absolute path
	Config  string // configuration file, absolute path. Empty: the usual one
}

// ErrNoService is returned on systems without a service file.
var ErrNoService = errors.New("furl has service files for Linux (systemd) and macOS (launchd) only")

// Service plans to install the service file.
func Service(folder string, o *ServiceOptions) (*Plan, error) {
	path, unit, err := serviceFile(o)
	if err != nil {
		return nil, err
	}
	old, text, err := readRecord(folder, ServiceName)
	if err != nil {
		return nil, err
	}
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	f.whole = true
	if !f.Exists {
		f.mode = 0o644
	}
	if err := f.reset(folder, old); err != nil {
		return nil, err
	}
	f.After = []byte(unit)
	return &Plan{name: ServiceName, folder: folder, record: &record{Agent: ServiceName}, planned: text, Files: []File{*f}}, nil
}

// ServiceCommands returns the commands that start the service after its file was
// installed, or stop it before the file is removed.
func ServiceCommands(system, path string, start bool) [][]string {
	switch {
	case system == "darwin" && start:
		return [][]string{{"launchctl", "bootstrap", userDomain(), path}}
	case system == "darwin":
		return [][]string{{"launchctl", "bootout", userDomain() + "/com.furlhq.furl"}}
	case start:
		return [][]string{{"systemctl", "--user", "daemon-reload"}, {"systemctl", "--user", "enable", "--now", "furl.service"}}
	}
	return [][]string{{"systemctl", "--user", "disable", "--now", "furl.service"}}
}

// serviceFile returns the path and the content of the service file.
func serviceFile(o *ServiceOptions) (path, text string, err error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", "", err
	}
	switch o.OS {
	case "linux":
		dir := os.Getenv("XDG_CONFIG_HOME")
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(home, ".config")
		}
		return filepath.Join(dir, "systemd", "user", "furl.service"), systemdUnit(o), nil
	case "darwin":
		return filepath.Join(home, "Library", "LaunchAgents", "com.furlhq.furl.plist"), launchdAgent(o), nil
	}
	return "", "", ErrNoService
}

// systemdUnit is contrib/furl.service with the paths of this machine.
func systemdUnit(o *ServiceOptions) string {
	_, text, _ := strings.Cut(contrib.Systemd, "[Unit]") // without the comment on how to install it
	text = "# Written by furl setup service; furl setup service --undo removes it.\n[Unit]" + text
	text = strings.Replace(text, "ExecStart=%h/.local/bin/furl serve", "ExecStart="+systemdWord(o.Program)+" serve", 1)
	environment := "Environment=" + systemdWord("FURL_DATA="+o.Data)
	if o.Config != "" {
		environment += " " + systemdWord("FURL_CONFIG="+o.Config)
	}
	return strings.Replace(text, "ReadWritePaths=%h/.local/share/furl", environment+"\nReadWritePaths="+systemdWord(o.Data), 1)
}

// systemdWord quotes a word of a unit file.
func systemdWord(s string) string {
	s = strings.NewReplacer("%", "%%", "$", "$$", `\`, `\\`, `"`, `\"`).Replace(s)
	if strings.ContainsAny(s, ` '"\`) {
		return `"` + s + `"`
	}
	return s
}

// launchdAgent is contrib/com.furlhq.furl.plist with the paths of this machine.
func launchdAgent(o *ServiceOptions) string {
	word := func(s string) string {
		var b strings.Builder
		_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder has no error
		return "<string>" + b.String() + "</string>"
	}
	data := word(o.Data)
	if o.Config != "" {
		data += "\n\t\t<key>FURL_CONFIG</key>\n\t\t" + word(o.Config)
	}
	before, after, _ := strings.Cut(contrib.Launchd, "<!--")
	_, after, _ = strings.Cut(after, "-->")
	return before + "<!-- Written by furl setup service, whose option undo removes it. -->" + strings.NewReplacer(
		"<string>PROGRAM</string>", word(o.Program),
		"<string>DATA</string>", data,
		"<string>LOG</string>", word(filepath.Join(o.Data, "serve.log")),
	).Replace(after)
}

// userDomain is the domain of launchd in which the user's agents run.
func userDomain() string { return "gui/" + strconv.Itoa(os.Getuid()) }
