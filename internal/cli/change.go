package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/session"
)

// onlyOfFiles are flags of furl reduce that apply to recordings only.
var onlyOfFiles = []string{"at-request", "window", "catalog", "price-input", "price-output", "cache-read", "cache-write"}

// reduceStored applies a policy to a session of the store, or previews it.
func (f *storeFlags) reduceStored(cmd *cobra.Command, name, preset, model string, dry bool) (err error) {
	for _, flag := range onlyOfFiles {
		if cmd.Flags().Changed(flag) {
			return badUsage("--%s works only with a recording's file; a session of the store uses the configuration", flag)
		}
	}
	t, err := f.target(cmd, name, "")
	if err != nil {
		return err
	}
	defer t.close(&err)
	if preset != "" {
		if err := f.checkPolicy(preset); err != nil {
			return err
		}
	}
	done, err := t.Reduce(cmd.Context(), session.ReduceOptions{Policy: preset, Model: model, DryRun: dry})
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	if f.json {
		return printJSON(w, map[string]any{"session": t.ID(), "dry_run": dry, "reduction": done})
	}
	if len(done.Planned) == 0 {
		fmt.Fprintf(w, "Nothing was hidden. The context has about %s tokens.\n", numbers.Thousands(done.Before))
	}
	for _, p := range done.Planned {
		printPlanned(w, p, dry)
	}
	for _, st := range done.Steps {
		if st.Skipped != "" {
			fmt.Fprintf(w, "%s skipped: %s\n", printable(st.Stage), printable(st.Skipped))
		}
	}
	if done.Reason != "" {
		fmt.Fprintln(w, printable(done.Reason))
	}
	printWarnings(w, done.Warnings)
	if len(done.Planned) > 0 && !dry {
		fmt.Fprintf(w, "To undo this: furl restore %s %d\n", t.ID(), done.Planned[len(done.Planned)-1].Record)
	}
	return nil
}

func printWarnings(w io.Writer, list []furl.Warning) {
	for _, warning := range list {
		fmt.Fprintf(w, "warning: %s\n", printable(warning.Text))
	}
}

func printPlanned(w io.Writer, p policy.Planned, dry bool) {
	what := []string{}
	if n := len(p.Messages); n > 0 {
		what = append(what, numbers.Count(n, "message"))
	}
	if p.Blocks > 0 {
		what = append(what, numbers.Count(p.Blocks, "block"))
	}
	verb := "hid"
	if dry {
		verb = "would hide"
	}
	reason := p.Reason
	if hid, ok := strings.CutPrefix(reason, "hid "); ok { // the reason has its own counts
		hid, why, _ := strings.Cut(hid, ": ")
		what, reason = []string{hid}, why
	}
	fmt.Fprintf(w, "%s %s %s: %s → %s tokens\n", printable(p.Stage), verb, printable(strings.Join(what, " and ")), numbers.Thousands(p.Before), numbers.Thousands(p.After))
	if reason != "" {
		fmt.Fprintf(w, "  %s\n", printable(reason))
	}
	if c := p.Cost; c.PerRequest > 0 {
		line := fmt.Sprintf("saves $%.4f per request", c.PerRequest)
		if c.Rewrite >= 0.0005 {
			line = fmt.Sprintf("costs $%.3f of cache writes once, ", c.Rewrite) + line
		}
		if c.Remaining >= 1 {
			line += fmt.Sprintf("; about %s more requests expected", numbers.Thousands(int(c.Remaining+0.5)))
		}
		fmt.Fprintf(w, "  %s\n", line)
	}
}

func restoreCommand(p program) *cobra.Command {
	f := storeFlags{program: p}
	var dry bool
	cmd := &cobra.Command{
		Use:   "restore [SESSION] REDUCTION|HANDLE...",
		Short: "Undo a reduction, or expand messages or results",
		Long: `With the number of a reduction, undoes that reduction. With handles or record
numbers of messages, expands them: the model sees the originals again. If a summary
or truncation covers them, it sees the whole step. Policies hide expanded messages
last; after furl unpin, they hide them as before. If the first handle names its
session, as in the output of furl search, omit SESSION.`,
		Example: `  furl show latest --view            print the numbers of reductions
  furl restore latest 57
  furl restore latest furl:12 furl:14.1 --dry-run`,
		Args:              sessionAnd("the number of a reduction or handles", 0),
		ValidArgsFunction: completeSessions(&f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			args = withSession(args)
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
			if seq, undone := t.undone(args[1:]); undone && !f.json {
				fmt.Fprintf(cmd.OutOrStdout(), "reduction %d was restored before; nothing changes\n", seq)
				return nil
			}
			done, what, err := t.restore(cmd, args[1:], dry)
			if err != nil {
				return err
			}
			if f.json {
				return printJSON(cmd.OutOrStdout(), map[string]any{"session": t.ID(), "dry_run": dry, "restored": done})
			}
			verb := "restored"
			if dry {
				verb = "would restore"
			}
			w := cmd.OutOrStdout()
			fmt.Fprintf(w, "%s %s: %s tokens visible again\n", verb, what, numbers.Thousands(done.Tokens))
			if len(done.Covered) > 0 {
				fmt.Fprintf(w, "Parts stay hidden by %s.\n", joinNumbers("reduction", done.Covered))
			}
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show the effect, change nothing")
	return cmd
}

// restore undoes the reduction with the given number, or expands blocks.
func (t *target) restore(cmd *cobra.Command, names []string, dry bool) (session.Restored, string, error) {
	ctx := cmd.Context()
	if n, err := strconv.ParseUint(strings.TrimPrefix(names[0], "#"), 10, 64); err == nil && len(names) == 1 {
		if t.isReduction(furl.Seq(n)) {
			done, err := t.Restore(ctx, session.RestoreOptions{Reduction: furl.Seq(n), DryRun: dry})
			return done, fmt.Sprintf("reduction %d", n), err
		}
	}
	spans, err := t.spans(names)
	if err != nil {
		return session.Restored{}, "", err
	}
	done, err := t.Restore(ctx, session.RestoreOptions{Spans: spans, DryRun: dry})
	return done, strings.Join(names, ", "), err
}

// undone reports whether the argument is the number of a reduction that was undone
// before.
func (t *target) undone(names []string) (seq furl.Seq, undone bool) {
	n, err := strconv.ParseUint(strings.TrimPrefix(names[0], "#"), 10, 64)
	if err != nil || len(names) > 1 {
		return 0, false
	}
	for _, r := range t.Reductions() {
		if r.Seq == furl.Seq(n) {
			return r.Seq, r.Lifted
		}
	}
	return 0, false
}

func (t *target) isReduction(seq furl.Seq) (is bool) {
	for _, r := range t.Records(max(seq, 1) - 1) {
		_, is = r.Body.(*furl.Reduction)
		break
	}
	return is
}

// spans parses handles and record numbers of messages.
func (t *target) spans(names []string) ([]furl.Span, error) {
	var spans []furl.Span
	for _, name := range names {
		if _, err := recall.ParseHandle(name); err != nil {
			return nil, usageError{err}
		}
		found, err := t.Spans(name)
		if err != nil {
			return nil, t.noBlock(name, err)
		}
		spans = append(spans, found...)
	}
	return spans, nil
}

func pinCommand(p program) *cobra.Command {
	return pinningCommand(p, "pin", nil, "Pin messages or results", "pinned", "pinned",
		`Pins messages or results: no policy hides them, not even when the window is full.
A handle names one block. The record number of a message names all of its blocks.`,
		furl.Pin)
}

func unpinCommand(p program) *cobra.Command {
	return pinningCommand(p, "unpin", []string{"release"}, "Unpin messages or results", "unpinned", "released",
		`Lets policies hide messages or results that were pinned or expanded.`,
		furl.Release)
}

// pinningCommand is furl pin or furl unpin. key is its key in JSON.
func pinningCommand(p program, verb string, aliases []string, short, past, key, long string, hold furl.Hold) *cobra.Command {
	f := storeFlags{program: p}
	cmd := &cobra.Command{
		Use:               verb + " [SESSION] HANDLE...",
		Aliases:           aliases,
		Short:             short,
		Long:              long,
		Example:           "  furl " + verb + " latest furl:12\n  furl " + verb + " 01jd5 12 14",
		Args:              sessionAnd("handles or record numbers", 0),
		ValidArgsFunction: completeSessions(&f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			args = withSession(args)
			t, err := f.target(cmd, args[0], "")
			if err != nil {
				return err
			}
			defer t.close(&err)
			if err := t.onlyStored(cmd); err != nil {
				return err
			}
			spans, err := t.spans(args[1:])
			if err != nil {
				return err
			}
			if err := t.Hold(cmd.Context(), hold, spans...); err != nil {
				return err
			}
			if f.json {
				return printJSON(cmd.OutOrStdout(), map[string]any{"session": t.ID(), key: args[1:]})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", past, label(strings.Join(args[1:], ", ")))
			return nil
		},
	}
	f.add(cmd)
	return cmd
}

// joinNumbers returns a text such as "reduction 3" or "reductions 3 and 7".
func joinNumbers(what string, seqs []furl.Seq) string {
	words := make([]string, len(seqs))
	for i, s := range seqs {
		words[i] = fmt.Sprint(s)
	}
	if len(words) == 1 {
		return what + " " + words[0]
	}
	return what + "s " + strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
