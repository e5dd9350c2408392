package storecmd

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// ContextCommand returns furl context.
func ContextCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.NewStoreFlags(p)
	var model, within string
	cmd := &cobra.Command{
		Use:   "context SESSION|FILE",
		Short: "Show what takes up the context window",
		Long: `Shows the parts of a session's next request: instructions and tools, user and
assistant text, thinking, tool calls and results, placeholders for hidden content,
and free space. Sizes are estimates in the provider's tokens, corrected by the
sizes that it has reported.`,
		Example:           "  furl context latest\n  furl context session.jsonl --model claude-opus-4-6 --json",
		Args:              cmdline.OneSession,
		ValidArgsFunction: cmdline.CompleteSessions(&f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			t, err := f.Target(cmd, args[0], within)
			if err != nil {
				return err
			}
			defer t.Close(&err)
			u := t.Context(cmp.Or(model, t.ChatModel))
			var saved *storage.SavingsLine
			if l := t.Info().Ledger; l != nil {
				saved = l.Sum()
			}
			if f.Json {
				return cmdline.PrintJSON(cmd.OutOrStdout(), struct {
					Session furl.SessionID `json:"session"`
					session.Usage
					Savings *storage.SavingsLine `json:"savings,omitempty"`
					Waiting *session.Recorded    `json:"waiting_summary,omitempty"`
				}{t.ID(), u, saved, t.WaitingSummary()})
			}
			printContext(cmd.OutOrStdout(), t.Name(), u, t.Wire().Messages)
			if saved != nil {
				cmdline.PrintWrapped(cmd.OutOrStdout(), fmt.Sprintf("%s: %s.", numbers.Count(saved.Requests, "request"), operation.SavedWords(saved.Savings)), cmdline.Width(cmd.OutOrStdout()))
			}
			if w := t.WaitingSummary(); w != nil {
				fmt.Fprintf(cmd.OutOrStdout(), "A summary of %s waits for approval: furl summary %s\n", numbers.Count(w.Archived, "message"), t.ID())
			}
			return nil
		},
	}
	f.Add(cmd)
	f.AddTenant(cmd)
	cmd.Flags().StringVar(&model, "model", "", "`name` of the model (default the session's)")
	cmd.Flags().StringVar(&within, "session", "", "session of the file: `id`, its beginning, or number (default the first)")
	cmdline.Complete(cmd, "model", cmdline.ModelNames)
	return cmd
}

// contextCells is the width of the bars, in characters.
const contextCells = 32

// messages is the number on all branches.
func printContext(w io.Writer, name string, u session.Usage, messages int) {
	head := fmt.Sprintf("%s, %s: about %s tokens", name, modelName(u.Model), numbers.Thousands(u.Size))
	if u.Limit > 0 {
		head += fmt.Sprintf(" of %s (%.1f%%)", numbers.Thousands(u.Limit), u.Percentage)
		if u.LimitAssumed {
			head += "; the window is assumed from similar models: furl models " + modelName(u.Model)
		}
	} else {
		head += "; the context window of this model is unknown, so nothing is reduced"
	}
	cmdline.PrintWrapped(w, head, cmdline.Width(w))
	fmt.Fprintln(w)
	whole := max(u.Limit, u.Size, 1)
	t := cmdline.NewTable(w, cmdline.Text(""), cmdline.Text(""), cmdline.Number(""), cmdline.Number(""), cmdline.Number(""))
	for _, p := range u.Parts {
		if p.Tokens == 0 && p.Blocks == 0 {
			continue
		}
		cells := (p.Tokens*contextCells + whole/2) / whole
		if cells == 0 && p.Tokens > 0 {
			cells = 1
		}
		fill := "█"
		if p.Name == "free" {
			fill = "░"
		}
		blocks := ""
		if p.Blocks > 0 {
			blocks = numbers.Count(p.Blocks, "block")
		}
		t.Add(p.Name, strings.Repeat(fill, cells), numbers.Thousands(p.Tokens), fmt.Sprintf("%d%%", (100*p.Tokens+whole/2)/whole), blocks)
	}
	t.Print()
	tail := countMessages(messages, u.Messages) + fmt.Sprintf(", %s shown to the model.", numbers.Thousands(u.Shown))
	if u.Hidden > 0 {
		tail += fmt.Sprintf(" Of about %s recorded tokens, %s are hidden and can be restored.", numbers.Thousands(u.Recorded), numbers.Thousands(u.Hidden))
	}
	fmt.Fprintln(w)
	cmdline.PrintWrapped(w, tail, cmdline.Width(w))
}
