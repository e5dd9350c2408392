package storecmd

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/numbers"
)

// RecordNumber returns the record with a number, as people write it.
func RecordNumber(s string) (furl.Seq, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return 0, cmdline.BadUsage("invalid record number %q: furl show prints the numbers", s)
	}
	return furl.Seq(n), nil
}

// BranchesCommand returns furl branches.
func BranchesCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.NewStoreFlags(p)
	var within string
	cmd := &cobra.Command{
		Use:   "branches SESSION|FILE",
		Short: "List the branches of a session",
		Long: `Lists the current branch and abandoned ones. A branch is abandoned by a rewind, or
if the client continues from an earlier message. Retried requests, unused replies
and changing messages at the end of requests are not listed. To continue a branch,
rewind to its last record.`,
		Example:           "  furl branches latest\n  furl rewind latest 118",
		Args:              cmdline.OneSession,
		ValidArgsFunction: cmdline.CompleteSessions(&f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			t, err := f.Target(cmd, args[0], within)
			if err != nil {
				return err
			}
			defer t.Close(&err)
			branches := t.Branches()
			w := cmd.OutOrStdout()
			if f.Json {
				return cmdline.PrintJSON(w, map[string]any{"session": t.ID(), "branches": branches})
			}
			table := cmdline.NewTable(w, cmdline.Text(""), cmdline.Number("last record"), cmdline.Number("starts at"), cmdline.Number("messages"), cmdline.Number("updated"), cmdline.Text("last message"))
			for _, b := range branches {
				sign, from := "", fmt.Sprint(b.From)
				if b.Current {
					sign, from = "*", ""
				}
				table.Add(sign, fmt.Sprint(b.Head), from, numbers.Thousands(b.Total), numbers.Ago(time.Now(), b.Updated), cmdline.Truncate(b.Words, 48))
			}
			table.Shrink("last message", 12)
			table.Print()
			return nil
		},
	}
	f.Add(cmd)
	cmd.Flags().StringVar(&within, "session", "", "session of the file: `id`, its beginning, or number (default the first)")
	return cmd
}
