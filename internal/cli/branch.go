package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/numbers"
)

func recordNumber(s string) (furl.Seq, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return 0, badUsage("invalid record number %q: furl show prints the numbers", s)
	}
	return furl.Seq(n), nil
}

func branchesCommand(p program) *cobra.Command {
	f := storeFlags{program: p}
	var within string
	cmd := &cobra.Command{
		Use:   "branches SESSION|FILE",
		Short: "List the branches of a session",
		Long: `Lists the current branch and abandoned ones. A branch is abandoned by a rewind, or
if the client continues from an earlier message. Retried requests, unused replies
and changing messages at the end of requests are not listed. To continue a branch,
rewind to its last record.`,
		Example:           "  furl branches latest\n  furl rewind latest 118",
		Args:              oneSession,
		ValidArgsFunction: completeSessions(&f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			t, err := f.target(cmd, args[0], within)
			if err != nil {
				return err
			}
			defer t.close(&err)
			branches := t.Branches()
			w := cmd.OutOrStdout()
			if f.json {
				return printJSON(w, map[string]any{"session": t.ID(), "branches": branches})
			}
			table := newTable(w, text(""), number("last record"), number("starts at"), number("messages"), number("updated"), text("last message"))
			for _, b := range branches {
				sign, from := "", fmt.Sprint(b.From)
				if b.Current {
					sign, from = "*", ""
				}
				table.add(sign, fmt.Sprint(b.Head), from, numbers.Thousands(b.Total), ago(time.Now(), b.Updated), truncate(b.Words, 48))
			}
			table.shrink("last message", 12)
			table.print()
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&within, "session", "", "session of the file: `id`, its beginning, or number (default the first)")
	return cmd
}
