package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
)

func rewindCommand(p program) *cobra.Command {
	f := storeFlags{program: p}
	var dry bool
	cmd := &cobra.Command{
		Use:   "rewind SESSION RECORD",
		Short: "Continue a session from an earlier record",
		Long: `Goes back to a record, or to the last one before it that ends a step, and says
where. What was hidden after it is visible again. What came after stays in the
session as a branch; rewinding to its end goes back to it. 0 begins anew.`,
		Example: `  furl show latest                   shows the numbers of records
  furl rewind latest 42
  furl branches latest               lists where one can go back to`,
		Args:              sessionAnd("a record's number"),
		ValidArgsFunction: completeSessions(&f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			to, err := recordNumber(args[1])
			if err != nil {
				return err
			}
			t, err := f.target(cmd, args[0], "")
			if err != nil {
				return err
			}
			defer t.close(&err)
			if !dry {
				if err := t.onlyStored(cmd); err != nil {
					return err
				}
			}
			act := t.Rewind
			if dry {
				act = t.previewRewind
			}
			done, err := act(cmd.Context(), to)
			if err != nil {
				return err
			}
			if f.json {
				return printJSON(cmd.OutOrStdout(), map[string]any{"session": t.ID(), "dry_run": dry, "rewound": done})
			}
			verb := "continues"
			if dry {
				verb = "would continue"
			}
			fmt.Fprintf(cmd.OutOrStdout(), "The session %s from record %d, after %s.\n", verb, done.To, plural(done.Messages, "message"))
			if done.To != to {
				fmt.Fprintf(cmd.OutOrStdout(), "Record %d is inside a step.\n", to)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "furl rewind %s %d goes back to where it was.\n", t.ID(), done.Branch)
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say where it would go, change nothing")
	return cmd
}

// previewRewind says what Rewind would do, on a copy of the log.
func (t *target) previewRewind(_ context.Context, to furl.Seq) (session.Rewound, error) {
	log := t.wire().Log
	was := log.Head()
	r, err := log.Rewind(to, time.Time{}, furl.Person)
	if err != nil {
		return session.Rewound{}, err
	}
	return session.Rewound{To: r.Parent, Branch: was, Messages: log.State().Len()}, nil
}

func recordNumber(s string) (furl.Seq, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return 0, badUsage("invalid record number %q: furl show prints the numbers", s)
	}
	return furl.Seq(n), nil
}

func forkCommand(p program) *cobra.Command {
	f := storeFlags{program: p}
	var at int
	var title string
	cmd := &cobra.Command{
		Use:   "fork SESSION",
		Short: "Fork a session at a record",
		Long: `Copies a session up to a record, or to the last one before it that ends a step,
into a session of its own. Handles mean the same in both. The original stays as
it is.`,
		Example:           "  furl fork latest\n  furl fork 01jd5 --at 42 --title \"another way\"",
		Args:              oneSession,
		ValidArgsFunction: completeSessions(&f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			t, err := f.target(cmd, args[0], "")
			if err != nil {
				return err
			}
			defer t.close(&err)
			if err := t.onlyStored(cmd); err != nil {
				return err
			}
			from := t.Head()
			if cmd.Flags().Changed("at") {
				from = furl.Seq(max(at, 0))
			}
			fork, err := t.all.Fork(cmd.Context(), t.Session, from)
			if err != nil {
				return err
			}
			if title != "" {
				if err := fork.SetTitle(cmd.Context(), title); err != nil {
					return err
				}
			}
			if f.json {
				return printJSON(cmd.OutOrStdout(), map[string]any{"session": fork.ID(), "fork_of": t.ID(), "fork_at": fork.Meta().ForkAt, "head": fork.Head()})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s was forked at record %d of %s\n", fork.ID(), fork.Head(), t.ID())
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&at, "at", 0, "`number` of the record to copy up to (default the newest)")
	cmd.Flags().StringVar(&title, "title", "", "`words` to call the new session by")
	return cmd
}

func branchesCommand(p program) *cobra.Command {
	f := storeFlags{program: p}
	var within string
	cmd := &cobra.Command{
		Use:   "branches SESSION|FILE",
		Short: "List the branches of a session",
		Long: `Lists the current conversation and those that were left: by a rewind, or because
the client asked something else at an earlier point and got an answer there.
Requests sent again, answers that were not used, and changing messages at the end
of a client's list are not listed. Rewinding to the head of a branch goes on there.`,
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
			table := newTable(w, text(""), number("head"), number("leaves at"), number("messages"), number("updated"), text("last words"))
			for _, b := range branches {
				sign, from := "", fmt.Sprint(b.From)
				if b.Current {
					sign, from = "*", ""
				}
				table.add(sign, fmt.Sprint(b.Head), from, thousands(b.Total), ago(time.Now(), b.Updated), truncate(b.Words, 48))
			}
			table.shrink("last words", 12)
			table.print()
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&within, "session", "", "session of the file, by `id`, the beginning of one, or number (default the first)")
	return cmd
}
