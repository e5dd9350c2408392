package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/session"
)

func rewindCommand(p program) *cobra.Command {
	f := storeFlags{program: p}
	var dry bool
	cmd := &cobra.Command{
		Use:   "rewind SESSION RECORD",
		Short: "Continue a session from an earlier record",
		Long: `Continues a session from a record. If the record is inside a step, the session
continues from the last record before the step. Reductions after that record no
longer apply. Later messages stay in the session as a branch; rewind to its last
record to return to it. Record 0 starts with an empty conversation.`,
		Example: `  furl show latest                   print the numbers of records
  furl rewind latest 42
  furl branches latest               list branches to return to`,
		Args:              sessionAnd("a record number", 1),
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
			fmt.Fprintf(cmd.OutOrStdout(), "The session %s from record %d, after %s.\n", verb, done.To, numbers.Count(done.Messages, "message"))
			if done.To != to {
				fmt.Fprintf(cmd.OutOrStdout(), "Record %d is inside a step.\n", to)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "To undo this: furl rewind %s %d\n", t.ID(), done.Branch)
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show the effect, change nothing")
	return cmd
}

// previewRewind returns what Rewind would do, on a copy of the log.
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
		Long: `Copies a session up to a record into a new session. If the record is inside a
step, the copy ends at the last record before the step. Handles are the same in
both sessions. The original does not change.`,
		Example:           "  furl fork latest\n  furl fork 01jd5 --at-record 42 --title \"another way\"",
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
			if cmd.Flags().Changed("at-record") {
				from = furl.Seq(max(at, 0))
			}
			fork, err := t.all.Fork(cmd.Context(), t.Session, from)
			if err != nil {
				return err
			}
			if title != "" {
				if err := fork.Set(cmd.Context(), "title", title); err != nil {
					return err
				}
			}
			if f.json {
				return printJSON(cmd.OutOrStdout(), map[string]any{"session": fork.ID(), "fork_of": t.ID(), "fork_at": fork.Meta().ForkAt, "head": fork.Head()})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "forked %[3]s at record %[2]d: the new session is %[1]s\n", fork.ID(), fork.Head(), t.ID())
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&at, "at-record", 0, "`number` of the last record to copy (default the newest)")
	cmd.Flags().SetNormalizeFunc(renamed("at", "at-record"))
	cmd.Flags().StringVar(&title, "title", "", "`title` of the new session")
	return cmd
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
