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
	"github.com/furlhq/furl/session"
)

// LostCommand returns furl lost.
func LostCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.NewStoreFlags(p)
	var within string
	var number int
	cmd := &cobra.Command{
		Use:   "lost SESSION|FILE",
		Short: "Show what compactions lost",
		Long: `Shows what the compactions of the current branch lost, by furl, the agent or the
provider: what the replaced messages contain, and neither the summary nor any message
beside it, word for word. These are the user's answers to questions, the user's
sentences, and identifiers such as paths and names. No model is asked.

What most later replies contain is listed first. Each line has the handle with which
furl get prints the original, and furl restore shows it to the model again.

Without --compaction, the list is that of the newest compaction.`,
		Example: `  furl lost latest
  furl lost session.jsonl --compaction 2
  furl lost latest --json
  furl get latest furl:27.1              print an original
  furl restore latest furl:27.1          show it to the model again`,
		Args:              cmdline.OneSession,
		ValidArgsFunction: cmdline.CompleteSessions(&f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			t, err := f.Target(cmd, args[0], within)
			if err != nil {
				return err
			}
			defer t.Close(&err)
			all, err := t.Lost()
			if err != nil {
				return err
			}
			listed := all
			if cmd.Flags().Changed("compaction") {
				if number < 1 || number > len(all) {
					return fmt.Errorf("no compaction %d: %s has %s on its current branch", number, t.Name(), numbers.Count(len(all), "compaction"))
				}
				listed = all[number-1 : number]
			}
			if f.Json {
				return cmdline.PrintJSON(cmd.OutOrStdout(), struct {
					Session     furl.SessionID  `json:"session"`
					Compactions []*session.Loss `json:"compactions"`
				}{t.ID(), append([]*session.Loss{}, listed...)})
			}
			printLost(cmd.OutOrStdout(), t, all, listed)
			return nil
		},
	}
	f.Add(cmd)
	f.AddTenant(cmd)
	cmd.Flags().IntVar(&number, "compaction", 0, "`number` of the compaction, from 1 (default the newest)")
	cmd.Flags().StringVar(&within, "session", "", "session of the file: `id`, its beginning, or number (default the first)")
	return cmd
}

// lostColumns is the width of the text of an item where the width of the output is unknown.
const lostColumns = 100

func printLost(w io.Writer, t *cmdline.Target, all, listed []*session.Loss) {
	if len(all) == 0 {
		fmt.Fprintf(w, "%s has no compactions on its current branch.\n", t.Name())
		return
	}
	if len(listed) > 1 {
		table := cmdline.NewTable(w, cmdline.Number("compaction"), cmdline.Text("by"), cmdline.Number("messages"), cmdline.Number("answers"), cmdline.Number("sentences"), cmdline.Number("identifiers"), cmdline.Number("used later"))
		for _, c := range all {
			table.Add(fmt.Sprint(c.Number), madeBy(c), numbers.Thousands(c.Messages), numbers.Thousands(c.Answers.Total), numbers.Thousands(c.Sentences.Total), numbers.Thousands(c.Identifiers.Total),
				numbers.Thousands(c.Answers.Used+c.Sentences.Used+c.Identifiers.Used))
		}
		table.Print()
		fmt.Fprintln(w)
	}
	c := listed[len(listed)-1]
	head := fmt.Sprintf("Compaction %d of %d by %s (reduction %d) replaced %s; %s later.", c.Number, len(all), madeBy(c), c.Reduction, numbers.Count(c.Messages, "message"), repliesWords(c.Replies))
	if c.Undone {
		head += " It is undone."
	}
	if c.Unreadable {
		head += " Its summary cannot be read (it is encrypted or not in the recording), and may contain what follows."
	}
	cmdline.PrintWrapped(w, head, cmdline.Width(w))
	if !c.Any() {
		fmt.Fprintln(w, "\nIt lost no answers, no sentences of the user and no identifiers.")
		return
	}
	printLostKind(w, "Answers to the agent's questions", &c.Answers)
	printLostKind(w, "Sentences of the user", &c.Sentences)
	printLostKind(w, "Identifiers", &c.Identifiers)
	name := t.Name()
	fmt.Fprintf(w, "\nTo print an original: furl get %s HANDLE\n", name)
	if t.File == "" {
		fmt.Fprintf(w, "To show it to the model again: furl restore %s HANDLE\n", name)
	}
}

// madeBy says who made a compaction.
func madeBy(c *session.Loss) string {
	switch c.By {
	case furl.Import.String(), furl.Client.String():
		return "the agent"
	case furl.Upstream.String():
		return "the provider"
	case furl.Person.String():
		return "a person"
	}
	return c.By
}

func repliesWords(n int) string {
	if n == 1 {
		return "1 reply came"
	}
	return numbers.Thousands(n) + " replies came"
}

func printLostKind(w io.Writer, title string, l *session.LostList) {
	if l.Total == 0 {
		return
	}
	used := ""
	if l.Used > 0 {
		used = fmt.Sprintf(", %s used later", numbers.Thousands(l.Used))
	}
	fmt.Fprintf(w, "\n%s: %s%s\n", title, numbers.Thousands(l.Total), used)
	room := max(20, cmp.Or(cmdline.Width(w), lostColumns)-36)
	table := cmdline.NewTable(w, cmdline.Text(""), cmdline.Text(""), cmdline.Text(""))
	for i := range l.Items {
		it := &l.Items[i]
		text := it.Text
		if it.Question != "" {
			text = it.Question + " → " + text
		}
		later := ""
		if it.Replies > 0 {
			later = "in " + numbers.Count(it.Replies, "reply")
			if it.Replies > 1 {
				later = fmt.Sprintf("in %s replies", numbers.Thousands(it.Replies))
			}
		}
		table.Add("  "+it.Handle, lostText(text, room), later)
	}
	table.Print()
	if more := l.Total - len(l.Items); more > 0 {
		fmt.Fprintf(w, "  and %s more\n", numbers.Thousands(more))
	}
}

// lostText is the text of an item in a line of so many columns. Of a long path or name its
// end is shown.
func lostText(text string, room int) string {
	text = strings.Join(strings.Fields(text), " ")
	if short := []rune(text); len(short) > room && !strings.Contains(text, " ") {
		text = "…" + string(short[len(short)-room+1:])
	}
	return cmdline.Truncate(text, room)
}
