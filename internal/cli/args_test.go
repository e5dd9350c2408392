package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/spf13/cobra"
)

// TestUnexpectedArguments gives each command more arguments than any takes. Errors of
// cobra, such as "accepts at most 0 arg(s)", must not be shown.
func TestUnexpectedArguments(t *testing.T) {
	// These take any number of arguments.
	many := map[string]bool{
		"furl delete": true, "furl import": true, "furl models": true, "furl replay": true, "furl search": true, "furl set": true,
		"furl pin": true, "furl prefer": true, "furl unpin": true, "furl hide": true, "furl compact": true, "furl restore": true, "furl tenants move": true, "furl usage": true, "furl redact": true, "furl encryption enable": true, "furl encryption rotate": true, "furl help": true,
		"furl run": true, // its error names the missing "--"
	}
	tested := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		if path := cmd.CommandPath(); !many[path] {
			var errs bytes.Buffer
			args := append(strings.Fields(path)[1:], "aaaa", "bbbb", "cccc")
			if code := Main(args, nil, strings.NewReader(""), &bytes.Buffer{}, &errs); code != cmdline.ExitUsage {
				t.Errorf("furl %q: exit code %d, want %d", args, code, cmdline.ExitUsage)
			}
			text := errs.String()
			if !strings.HasPrefix(text, path+": unexpected argument \"") && !strings.HasPrefix(text, `furl: unknown command "aaaa": `) {
				t.Errorf("furl %q: %s", args, text)
			}
			tested++
		}
	}
	walk(root(cmdline.Program{}))
	if tested < 25 {
		t.Errorf("%d commands tested", tested)
	}
}
