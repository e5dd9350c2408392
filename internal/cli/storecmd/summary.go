package storecmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/session"
)

// maxSummaryFile is the size of the largest edited summary, in bytes.
const maxSummaryFile = 1 << 20

// SummaryCommand returns furl summary.
func SummaryCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.NewStoreFlags(p)
	cmd := &cobra.Command{
		Use:   "summary SESSION",
		Short: "Show summaries, approve or refuse one that waits",
		Long: `Shows the summaries of a session: the one that waits for approval, and those on the
current branch with all texts that they have had. A session with the setting
ask_first=on uses a summary only after furl summary approve. Until then nothing is
hidden in its place while the prompt fits the window.`,
		Example: `  furl set latest ask_first=on
  furl summary latest
  furl summary approve latest
  furl edit-summary latest            edit the summary before approving it`,
		Args:              cmdline.OneSession,
		ValidArgsFunction: cmdline.CompleteSessions(&f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			t, err := f.Target(cmd, args[0], "")
			if err != nil {
				return err
			}
			defer t.Close(&err)
			waiting, applied := t.WaitingSummary(), operation.Summaries(t.Session)
			if f.Json {
				return cmdline.PrintJSON(cmd.OutOrStdout(), map[string]any{"session": t.ID(), "waiting": waiting, "summaries": append([]session.Recorded{}, applied...)})
			}
			printSummaries(cmd.OutOrStdout(), t, waiting, applied)
			return nil
		},
	}
	f.Add(cmd)
	cmd.AddCommand(OperationCommand(p, "approve"), OperationCommand(p, "refuse"))
	return cmd
}

func printSummaries(w io.Writer, t *cmdline.Target, waiting *session.Recorded, applied []session.Recorded) {
	if waiting == nil && len(applied) == 0 {
		fmt.Fprintln(w, "The session has no summaries.")
		return
	}
	text := func(s string) {
		for line := range strings.Lines(strings.TrimRight(cmdline.Printable(s), "\n")) {
			fmt.Fprintln(w, "  "+strings.TrimRight(line, "\n"))
		}
	}
	for _, r := range applied {
		fmt.Fprintf(w, "Summary %d (reduction %d, %s): %s archived, %s → %s tokens\n", r.Number, r.Seq, r.State, numbers.Count(r.Archived, "message"), numbers.Thousands(r.Before), numbers.Thousands(r.After))
		text(r.Summary)
		fmt.Fprintln(w)
	}
	if waiting == nil {
		return
	}
	fmt.Fprintf(w, "Waiting for approval: %s would be archived, %s → %s tokens\n", numbers.Count(waiting.Archived, "message"), numbers.Thousands(waiting.Before), numbers.Thousands(waiting.After))
	text(waiting.Summary)
	fmt.Fprintln(w)
	switch waiting.State {
	case "off_path":
		fmt.Fprintln(w, "It is for another branch of the session, and cannot be used on this one.")
		return
	case "unusable":
		fmt.Fprintf(w, "It cannot be used now: its messages are pinned, or the prompt would not become smaller. To discard it: furl summary refuse %s\n", t.ID())
		return
	}
	fmt.Fprintf(w, "To use it: furl summary approve %[1]s; to discard it: furl summary refuse %[1]s\n", t.ID())
}

// EditSummaryCommand returns furl edit-summary.
func EditSummaryCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.NewStoreFlags(p)
	var file string
	cmd := &cobra.Command{
		Use:   "edit-summary SESSION [REDUCTION]",
		Short: "Edit a summary",
		Long: `Opens the text of a summary in $VISUAL or $EDITOR and stores what you write. Without
REDUCTION, edits the summary that waits for approval, or else the newest one in use.
The previous text stays in the session; furl restore with the number of the edit
shows it again.`,
		Example: `  furl summary latest                 print the summaries and their numbers
  furl edit-summary latest 57
  furl edit-summary latest --file summary.md`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmdline.BadUsage("%s requires a session; %[1]s --help shows examples", cmd.CommandPath())
			}
			return cmdline.AtMost(2)(cmd, args)
		},
		ValidArgsFunction: completeSummaries(&f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			t, err := f.Target(cmd, args[0], "")
			if err != nil {
				return err
			}
			defer t.Close(&err)
			if err := t.OnlyStored(cmd); err != nil {
				return err
			}
			in := &operation.EditInput{}
			if err := operation.Arguments(in, args[1:]); err != nil {
				return operationError(cmd, err)
			}
			r, err := operation.SummaryOf(t.Session, in.Reduction)
			if err != nil {
				return fmt.Errorf("%w; furl summary %s lists the summaries", err, t.ID())
			}
			if in.Text, err = editedText(cmd, r.Summary, file); err != nil {
				return err
			}
			return operateOn(t, cmd, operation.Named("edit-summary"), in, f.Json)
		},
	}
	f.Add(cmd)
	cmd.Flags().StringVar(&file, "file", "", "read the new text from this `file` (- for standard input)")
	return cmd
}

// completeSummaries completes a session, and then the numbers of its summaries.
func completeSummaries(f *cmdline.StoreFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return cmdline.CompleteSessions(f)(cmd, args, begun)
		}
		t, err := f.Target(cmd, args[0], "")
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer t.Close(&err)
		var list []string
		for _, r := range operation.Summaries(t.Session) {
			if n := fmt.Sprint(r.Seq); r.State == "active" && strings.HasPrefix(n, begun) {
				list = append(list, n+"\t"+cmdline.Truncate(r.Summary, 60))
			}
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

// editedText returns the new text of a summary: from a file if one is named, else from
// the user's editor.
func editedText(cmd *cobra.Command, text, file string) (string, error) {
	if file != "" {
		return readText(cmd, file)
	}
	editor := os.Getenv("VISUAL")
	if editor == "" {
		editor = os.Getenv("EDITOR")
	}
	if editor == "" {
		if !term.IsTerminal(int(os.Stdin.Fd())) {
			return "", cmdline.BadUsage("no editor: set $EDITOR, or use --file")
		}
		if editor = "vi"; runtime.GOOS == "windows" {
			editor = "notepad"
		}
	}
	folder, err := os.MkdirTemp("", "furl-summary-") // only the user can read it
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	name := filepath.Join(folder, "summary.md")
	if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
		return "", err
	}
	words := append(strings.Fields(editor), name) // such as "code --wait"
	run := exec.CommandContext(cmd.Context(), words[0], words[1:]...)
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, os.Stderr, os.Stderr
	if err := run.Run(); err != nil {
		return "", fmt.Errorf("run the editor %q: %w; the summary is unchanged", editor, err)
	}
	return readText(cmd, name)
}

func readText(cmd *cobra.Command, file string) (string, error) {
	var in io.Reader = cmd.InOrStdin()
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return "", err
		}
		defer opened.Close()
		in = opened
	}
	data, err := io.ReadAll(io.LimitReader(in, maxSummaryFile+1))
	switch {
	case err != nil:
		return "", err
	case len(data) > maxSummaryFile:
		return "", fmt.Errorf("%s is larger than %s bytes, the limit for a summary", cmdline.Label(file), numbers.Thousands(maxSummaryFile))
	case strings.TrimSpace(string(data)) == "":
		return "", errors.New("the text is empty; the summary is unchanged")
	}
	return strings.ToValidUTF8(string(data), "\uFFFD"), nil
}
