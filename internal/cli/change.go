package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/session"
)

// onlyOfFiles are flags of furl reduce that say what a recording leaves open.
var onlyOfFiles = []string{"at", "window", "catalog", "price-input", "price-output", "cache-read", "cache-write"}

// reduceStored hides something in a session of the store, or says what would be.
func (f *storeFlags) reduceStored(cmd *cobra.Command, name, preset, model string, dry bool) (err error) {
	for _, flag := range onlyOfFiles {
		if cmd.Flags().Changed(flag) {
			return badUsage("--%s is for a recording's file; a session of the store goes by the configuration", flag)
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
	o := session.ReduceOptions{Policy: preset, Model: model}
	act := t.Reduce
	if dry {
		act = t.Preview
	}
	done, err := act(cmd.Context(), o)
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	if f.json {
		return printJSON(w, map[string]any{"session": t.ID(), "dry_run": dry, "reduction": done})
	}
	if len(done.Planned) == 0 {
		fmt.Fprintf(w, "Nothing was hidden; the context has about %s tokens.\n", thousands(done.Before))
	}
	for _, p := range done.Planned {
		printPlanned(w, p, dry)
	}
	for _, st := range done.Steps {
		if st.Skipped != "" {
			fmt.Fprintf(w, "%s did nothing: %s\n", printable(st.Stage), printable(st.Skipped))
		}
	}
	if done.Reason != "" {
		fmt.Fprintln(w, printable(done.Reason))
	}
	if len(done.Planned) > 0 && !dry {
		fmt.Fprintf(w, "furl restore %s %d takes it back.\n", t.ID(), done.Planned[len(done.Planned)-1].Record)
	}
	return nil
}

func printPlanned(w io.Writer, p session.Planned, dry bool) {
	what := []string{}
	if n := len(p.Messages); n > 0 {
		what = append(what, plural(n, "message"))
	}
	if p.Blocks > 0 {
		what = append(what, plural(p.Blocks, "block"))
	}
	verb := "hid"
	if dry {
		verb = "would hide"
	}
	fmt.Fprintf(w, "%s %s %s: %s → %s tokens\n", printable(p.Stage), verb, strings.Join(what, " and "), thousands(p.Before), thousands(p.After))
	if p.Reason != "" {
		fmt.Fprintf(w, "  %s\n", printable(p.Reason))
	}
	if c := p.Cost; c != (furl.Cost{}) {
		fmt.Fprintf(w, "  rewriting costs $%.3f once, saves $%.4f a request, %.0f more expected\n", c.Rewrite, c.PerRequest, c.Remaining)
	}
}

func restoreCommand(p program) *cobra.Command {
	f := storeFlags{program: p}
	var dry bool
	cmd := &cobra.Command{
		Use:   "restore [SESSION] REDUCTION|HANDLE...",
		Short: "Undo reductions, or show single blocks again",
		Long: `With the number of a reduction: takes that one back and keeps everything after it.
With handles or record numbers of messages: shows these originals through whatever
hides them, whole steps where a summary or truncation covers them. What was
restored is kept from then on; furl release gives it free again. The session may be
left out where the first handle names it, as those of furl search --all do.`,
		Example: `  furl show latest --view            shows the numbers of reductions
  furl restore latest 57
  furl restore latest furl:12.0 furl:14.0 --dry-run`,
		Args:              sessionAnd("the number of a reduction, or handles"),
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
			fmt.Fprintf(w, "%s %s: %s tokens are shown again\n", verb, what, thousands(done.Tokens))
			if len(done.Covered) > 0 {
				fmt.Fprintf(w, "Part of it stays hidden by %s, which covers it too.\n", numbers("reduction", done.Covered))
			}
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what would be shown again, change nothing")
	return cmd
}

// restore lifts the reduction that a single number means, or opens blocks.
func (t *target) restore(cmd *cobra.Command, names []string, dry bool) (session.Restored, string, error) {
	ctx := cmd.Context()
	if n, err := strconv.ParseUint(strings.TrimPrefix(names[0], "#"), 10, 64); err == nil && len(names) == 1 {
		if t.isReduction(furl.Seq(n)) {
			act := t.Lift
			if dry {
				act = t.PreviewLift
			}
			done, err := act(ctx, furl.Seq(n))
			return done, fmt.Sprintf("reduction %d", n), err
		}
	}
	spans, err := t.spans(names)
	if err != nil {
		return session.Restored{}, "", err
	}
	act := t.Restore
	if dry {
		act = t.PreviewRestore
	}
	done, err := act(ctx, spans...)
	return done, strings.Join(names, ", "), err
}

func (t *target) isReduction(seq furl.Seq) (is bool) {
	for _, r := range t.Records(max(seq, 1) - 1) {
		_, is = r.Body.(*furl.Reduction)
		break
	}
	return is
}

// spans reads handles, and record numbers of messages, which mean all of one.
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

// holder changes whether blocks may be hidden.
type holder func(context.Context, ...furl.Span) error

func pinCommand(p program) *cobra.Command {
	return holdCommand(p, "pin", "Pin messages or results, so that no policy hides them", "pinned",
		`Pins blocks: no policy hides them, not even when the window is full. A handle
means one block, the number of a message's record all of it.`,
		func(t *target) holder { return t.Pin })
}

func releaseCommand(p program) *cobra.Command {
	return holdCommand(p, "release", "Unpin messages or results", "released",
		`Takes back that blocks were pinned, or kept because they had been restored.`,
		func(t *target) holder { return t.Release })
}

func holdCommand(p program, verb, short, past, long string, act func(*target) holder) *cobra.Command {
	f := storeFlags{program: p}
	cmd := &cobra.Command{
		Use:               verb + " [SESSION] HANDLE...",
		Short:             short,
		Long:              long,
		Example:           "  furl " + verb + " latest furl:12.0\n  furl " + verb + " 01jd5 12 14",
		Args:              sessionAnd("handles, or numbers of messages"),
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
			if err := act(t)(cmd.Context(), spans...); err != nil {
				return err
			}
			if f.json {
				return printJSON(cmd.OutOrStdout(), map[string]any{"session": t.ID(), past: args[1:]})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", past, label(strings.Join(args[1:], ", ")))
			return nil
		},
	}
	f.add(cmd)
	return cmd
}

func sessionAnd(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(withSession(args)) < 2 {
			return badUsage("%s takes a session and %s; %s --help shows examples", cmd.CommandPath(), what, cmd.CommandPath())
		}
		return nil
	}
}

// numbers writes "reduction 3", "reductions 3 and 7".
func numbers(what string, seqs []furl.Seq) string {
	words := make([]string, len(seqs))
	for i, s := range seqs {
		words[i] = fmt.Sprint(s)
	}
	if len(words) == 1 {
		return what + " " + words[0]
	}
	return what + "s " + strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
