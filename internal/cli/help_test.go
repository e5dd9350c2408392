package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/spf13/cobra"
)

// Help fits 80 columns, and all commands have examples.
func TestHelp(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		var out, errs bytes.Buffer
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		if code := Main(args, nil, strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("furl %s ends with %d: %s", strings.Join(args, " "), code, &errs)
		}
		text := out.String()
		for line := range strings.Lines(text) {
			if line = strings.TrimRight(line, "\n"); ansi.StringWidth(line) > helpColumns {
				t.Errorf("furl %s has a line of %d columns: %s", strings.Join(args, " "), ansi.StringWidth(line), line)
			}
		}
		// Cobra's texts for shells have examples in the long help.
		if !strings.Contains(text, "\nExamples:\n") && cmd.Parent().Name() != "completion" {
			t.Errorf("furl %s has no examples", strings.Join(args, " "))
		}
	}
	visit(root(cmdline.Program{}))
}
