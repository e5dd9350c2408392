package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/internal/workspace"
)

// statusEvery is how often Claude Code 2.1.97 and later run the status line, in seconds. Earlier
// ones run it with each message only.
const statusEvery = 10

// AddStatusLine adds furl's status line to the settings of Claude Code, for this run
// only. A status line of the user stays; the note then says how to have both. It is
// given once.
func (r *Route) AddStatusLine(place, file string) (note string) {
	if CommandName(r.command[0]) != "claude" || !interactiveClaude(r.command[1:]) || workspace.IsDatabase(place) {
		return "" // the place of a database may have a password, which arguments must not show
	}
	program, err := os.Executable()
	if err != nil {
		return ""
	}
	for _, s := range r.claudeSettings(r.command) {
		if s.StatusLine != nil {
			return offerStatusLine(s)
		}
	}
	if _, ok := flagValue(r.command[1:], "--settings"); ok {
		return ""
	}
	var command strings.Builder
	command.WriteString(visible.QuoteArg(program) + " status --format claude")
	for _, flag := range []struct{ name, file string }{{"--store", place}, {"--config", file}} {
		if flag.file == "" {
			continue
		}
		path, err := filepath.Abs(flag.file) // Claude Code may run it in another folder
		if err != nil {
			return ""
		}
		command.WriteString(" " + flag.name + " " + visible.QuoteArg(path))
	}
	// The time that the prompt cache lives runs on between messages.
	r.settings["statusLine"] = map[string]any{"padding": 0, "type": "command", "command": command.String(), "refreshInterval": statusEvery}
	return ""
}

// interactiveClaude reports whether Claude Code shows its screen: it has no prompt to
// print the answer of, and no subcommand.
func interactiveClaude(args []string) bool {
	for i, arg := range args {
		switch arg {
		case "-p", "--print", "-v", "--version", "-h", "--help":
			return false
		}
		if i == 0 && slices.Contains([]string{"mcp", "config", "update", "upgrade", "doctor", "install", "plugin", "plugins", "agents", "auth", "setup-token", "auto-mode", "migrate-installer"}, arg) {
			return false
		}
	}
	return true
}

// offerStatusLine says once how to show furl's status line after the user's.
func offerStatusLine(s claudeSettings) string {
	if strings.Contains(s.StatusLine.Command, "furl status") {
		return ""
	}
	dir, err := config.DataDir()
	if err != nil {
		return ""
	}
	made, err := os.OpenFile(filepath.Join(dir, offeredName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "" // offered before
	}
	_ = made.Close()
	return fmt.Sprintf("your status line is not replaced. To show furl's after it, set statusLine.command in %s to: furl status --format claude --after %s", s.from, visible.QuoteArg(s.StatusLine.Command))
}
