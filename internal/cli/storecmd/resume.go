package storecmd

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/launch"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/transcript"
)

// ResumeInCommand returns furl resume.
func ResumeInCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.NewStoreFlags(p)
	var at int
	cmd := &cobra.Command{
		Use:   "resume AGENT SESSION|FILE",
		Short: "Make a session resumable in an agent",
		Long: `Writes what the model sees of a session as a new session of the agent, where the
agent keeps its sessions, and prints the command that resumes it. Use it to continue
from an earlier record, without what furl has hidden, or with a session of another
agent. Nothing that exists is changed. AGENT is claude.

The agent resumes the session in the project's folder, or in the current one if that
does not exist.`,
		Example: `  furl resume claude latest
  furl resume claude 01jd5 --at-record 42`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cmdline.BadUsage("%s requires an agent and a session, such as furl resume claude latest", cmd.CommandPath())
			}
			return cmdline.AtMost(2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := cmdline.Positive(cmd, "at-record", at); err != nil {
				return err
			}
			if !slices.Contains([]string{"claude", "claude-code"}, args[0]) {
				return cmdline.BadUsage("unknown agent %q: expected claude; furl export writes sessions for other programs", args[0])
			}
			t, err := f.Target(cmd, args[1], "")
			if err != nil {
				return err
			}
			defer t.Close(&err)
			return resume(&f, cmd, t, furl.Seq(at))
		},
	}
	f.Add(cmd)
	cmd.Flags().IntVar(&at, "at-record", 0, "`number` of the last record to continue from (default the newest)")
	cmd.Flags().SetNormalizeFunc(cmdline.Renamed("at", "at-record"))
	return cmd
}

// resume writes a session for Claude Code.
func resume(f *cmdline.StoreFlags, cmd *cobra.Command, t *cmdline.Target, at furl.Seq) error {
	folder := t.Meta().Project
	if fi, err := os.Stat(folder); err != nil || !fi.IsDir() {
		if folder, err = os.Getwd(); err != nil {
			return err
		}
	}
	home := launch.Here().ClaudeFolder()
	if home == "" {
		return errors.New("no home folder, so the folder of Claude Code's sessions is unknown: set CLAUDE_CONFIG_DIR")
	}
	s := t.Wire()
	s.ID = newUUID()
	name := filepath.Join(home, "projects", claudeProject(folder), s.ID+".jsonl")
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	w, finish, err := cmdline.CreateFile(cmd.OutOrStdout(), name, false)
	if err != nil {
		return err
	}
	done, err := transcript.Export(cmd.Context(), w, "claude-code", s, &transcript.ExportOptions{View: true, At: at, Model: t.Model(t.Meta().Model)})
	if err = finish(err); err != nil {
		return err
	}
	for _, n := range done.Notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "furl: note:", cmdline.Label(n))
	}
	if f.Json {
		return cmdline.PrintJSON(cmd.OutOrStdout(), map[string]any{"session": s.ID, "file": name, "folder": folder, "messages": done.Messages, "notes": append([]string{}, done.Notes...)})
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Wrote %s as a new session of Claude Code. To continue:\n  cd %s && furl run -- claude --resume %s\n", numbers.Count(done.Messages, "message"), cmdline.Label(visible.QuoteArg(folder)), s.ID)
	return nil
}

// claudeProject returns the name of the folder in which Claude Code keeps the sessions of
// a project: its path with a dash for each character that is no letter or digit.
func claudeProject(project string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, project)
}

// newUUID returns a random UUID.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
