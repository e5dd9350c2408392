package storecmd

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/launch"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/transcript"
)

// resumeFlags are the flags of furl resume.
type resumeFlags struct {
	cmdline.StoreFlags
	to, folder string
	at         int
	view, dry  bool
}

// ResumeInCommand returns furl resume.
func ResumeInCommand(p cmdline.Program) *cobra.Command {
	f := resumeFlags{StoreFlags: cmdline.NewStoreFlags(p)}
	cmd := &cobra.Command{
		Use:   "resume SESSION|FILE --to AGENT",
		Short: "Continue a session in another agent",
		Long: `Writes a session as a new session of an agent, where the agent keeps its sessions,
and prints the command that resumes it there. Use it to change the agent, to
continue from an earlier record, or without what furl has hidden. AGENT is one of ` + strings.Join(agents.Successors(), ", ") + `.

The new session has all messages of the current branch; with --view, what the model
sees of them. Notes on standard error say what was changed or left out: the new agent
has its own instructions and tools, and another provider does not accept thinking.
Nothing that exists is changed. opencode takes the session by its own import command.

The agent resumes the session in the project's folder, or in the current one if that
does not exist; --dir chooses another one.`,
		Example: `  furl resume latest --to codex
  furl resume latest --to codex --dry-run        what would be changed
  furl resume 01jd5 --to claude --view           without what furl has hidden
  furl resume 01jd5 --to claude --at-record 42   from an earlier record
  furl resume session.jsonl --to pi --dir .      a session in a file`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.former(args) {
				return nil
			}
			if err := cmdline.AtMost(1)(cmd, args); err != nil {
				return err
			}
			if len(args) == 0 || f.to == "" {
				return cmdline.BadUsage("%s requires a session and an agent, such as furl resume latest --to codex", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: cmdline.CompleteSessions(&f.StoreFlags),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.Add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.to, "to", "", "`agent` that continues the session: "+strings.Join(agents.Successors(), ", "))
	fl.BoolVar(&f.view, "view", false, "write what the model sees instead of all messages")
	fl.IntVar(&f.at, "at-record", 0, "`number` of the last record to continue from (default the newest)")
	fl.StringVar(&f.folder, "dir", "", "`folder` to continue in (default the session's project)")
	fl.BoolVar(&f.dry, "dry-run", false, "show what would be written, change nothing")
	fl.SetNormalizeFunc(cmdline.Renamed("at", "at-record"))
	cmdline.Complete(cmd, "to", agents.Successors)
	return cmd
}

// former reports whether the arguments have the form of earlier versions, AGENT SESSION.
func (f *resumeFlags) former(args []string) bool {
	if len(args) != 2 || f.to != "" {
		return false
	}
	_, known := agents.SuccessorNamed(args[0])
	return known
}

// run is furl resume.
func (f *resumeFlags) run(cmd *cobra.Command, args []string) (err error) {
	if err := cmdline.Positive(cmd, "at-record", f.at); err != nil {
		return err
	}
	if f.former(args) {
		f.to, f.view, args = args[0], true, args[1:]
	}
	agent, known := agents.SuccessorNamed(f.to)
	if !known {
		return cmdline.BadUsage("unknown agent %q: expected one of %s; furl export writes sessions for other programs", f.to, strings.Join(agents.Successors(), ", "))
	}
	t, err := f.Target(cmd, args[0], "")
	if err != nil {
		return err
	}
	defer t.Close(&err)
	h := &handover{resumeFlags: f, cmd: cmd, agent: agent, s: t.Wire()}
	h.opts = transcript.ExportOptions{View: f.view, At: furl.Seq(f.at), Model: t.Model(t.Meta().Model)}
	if agent.Name == "codex" {
		h.opts.Provider = launch.Here().CodexProvider()
	}
	if h.s.Project, err = f.project(t.Meta().Project); err != nil {
		return err
	}
	h.s.ID = newUUID()
	if agent.Import != nil {
		err = h.load()
	} else {
		err = h.write()
	}
	if err != nil {
		return err
	}
	return h.print()
}

// project returns the folder in which the session is continued, without links: agents resolve
// them.
func (f *resumeFlags) project(recorded string) (string, error) {
	folder := cmp.Or(f.folder, recorded)
	if fi, err := os.Stat(folder); err != nil || !fi.IsDir() {
		if f.folder != "" {
			return "", cmdline.BadUsage("--dir %s: no such folder", cmdline.Label(f.folder))
		}
		if folder, err = os.Getwd(); err != nil {
			return "", err
		}
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(folder)
}

// handover writes a session for an agent.
type handover struct {
	*resumeFlags
	cmd   *cobra.Command
	agent agents.Successor
	s     *transcript.Session
	opts  transcript.ExportOptions
	done  *transcript.Exported
	file  string // of the session, "" if the agent has imported it
}

// write writes the file of the session.
func (h *handover) write() (err error) {
	if h.file, err = h.agent.File(h.s.Project, h.s.ID, time.Now()); err != nil {
		return err
	}
	if h.dry {
		return h.export(io.Discard)
	}
	if err := os.MkdirAll(filepath.Dir(h.file), 0o700); err != nil {
		return err
	}
	w, finish, err := cmdline.CreateFile(h.cmd.OutOrStdout(), h.file, false)
	if err != nil {
		return err
	}
	return finish(h.export(w))
}

func (h *handover) export(w io.Writer) (err error) {
	h.done, err = transcript.Export(h.cmd.Context(), w, h.agent.Format, h.s, &h.opts)
	return err
}

// load has the agent import the session from a temporary file.
func (h *handover) load() (err error) {
	var session bytes.Buffer
	if err := h.export(&session); err != nil {
		return err
	}
	var head struct {
		Info struct {
			ID string `json:"id"`
		} `json:"info"`
	}
	if err := json.Unmarshal(session.Bytes(), &head); err != nil {
		return err
	}
	h.s.ID = head.Info.ID
	if h.dry {
		return nil
	}
	program, err := exec.LookPath(h.agent.Name)
	if err != nil {
		return fmt.Errorf("%s is not installed or not on the path: %w; furl export --format %s writes a file for %s", h.agent.Title, err, h.agent.Format, strings.Join(append([]string{h.agent.Name}, h.agent.Import...), " "))
	}
	file, err := os.CreateTemp("", "furl-*.json") // mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()
	_, err = file.Write(session.Bytes())
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	run := exec.CommandContext(h.cmd.Context(), program, append(slices.Clone(h.agent.Import), file.Name())...)
	run.Dir, run.Env = h.s.Project, append(os.Environ(), "NO_COLOR=1")
	out, err := run.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte(h.s.ID)) { // opencode reports some failures with status 0
		return fmt.Errorf("%s: %w: %s", strings.Join(append([]string{h.agent.Name}, h.agent.Import...), " "), cmp.Or(err, errors.New("the session was not imported")), cmdline.Label(string(bytes.TrimSpace(out[:min(len(out), 2000)]))))
	}
	return nil
}

// tokens is the size of what was written.
func (h *handover) tokens() (n int, err error) {
	state := h.s.Log.State()
	if h.at > 0 {
		if state, err = furl.Fold(h.s.Log, furl.Seq(h.at)); err != nil {
			return 0, err
		}
	}
	if h.view {
		return state.View(h.opts.Model).Tokens, nil
	}
	for i := range state.Len() {
		_, m := state.Message(i)
		n += m.Tokens()
	}
	return n, nil
}

// print reports what was written and how to continue.
func (h *handover) print() error {
	tokens, err := h.tokens()
	if err != nil {
		return err
	}
	for _, n := range h.done.Notes {
		fmt.Fprintln(h.cmd.ErrOrStderr(), "furl: note:", cmdline.Label(n))
	}
	resume := h.agent.Resume(h.s.ID)
	if h.Json {
		return cmdline.PrintJSON(h.cmd.OutOrStdout(), map[string]any{
			"session": h.s.ID, "agent": h.agent.Name, "file": h.file, "folder": h.s.Project, "command": resume, "messages": h.done.Messages, "tokens": tokens,
			"dry_run": h.dry, "notes": append([]string{}, h.done.Notes...),
		})
	}
	size := fmt.Sprintf("%s, %s tokens", numbers.Count(h.done.Messages, "message"), numbers.Thousands(tokens))
	if h.dry {
		fmt.Fprintf(h.cmd.OutOrStdout(), "Would write %s as a new session of %s in %s\n", size, h.agent.Title, cmdline.Label(cmp.Or(h.file, h.s.Project)))
		return nil
	}
	fmt.Fprintf(h.cmd.OutOrStdout(), "Wrote %s as a new session of %s. To continue:\n  cd %s && %s\n", size, h.agent.Title, cmdline.Label(visible.QuoteArg(h.s.Project)), strings.Join(resume, " "))
	return nil
}

// newUUID returns a random UUID.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
