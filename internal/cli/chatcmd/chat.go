// Package chatcmd is furl chat and its slash commands. Package internal/conversation has the
// conversation, and internal/tui draws it.
package chatcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/internal/chat"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/conversation"
	"github.com/furlhq/furl/internal/membudget"
	"github.com/furlhq/furl/internal/models"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/tui"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// chatFlags are the flags of furl chat.
type chatFlags struct {
	cmdline.StoreFlags
	conversation.Options
	prompt, resume, policy string
	last                   bool
}

// Command returns furl chat.
func Command(p cmdline.Program) *cobra.Command {
	f := chatFlags{StoreFlags: cmdline.NewStoreFlags(p)}
	cmd := &cobra.Command{
		Use:   "chat [MESSAGE]",
		Short: "Chat with an agent in the terminal",
		Long: `Starts an agent in the terminal. It reads, searches and edits files of the current
folder and runs commands there; it asks before it changes something. The session is
recorded, and a policy keeps it inside the context window of the model. /help lists
the commands of the chat.

The models and how to reach them are in the configuration (chat.models). Without
these, furl uses Anthropic or OpenAI, whichever has its key in ANTHROPIC_API_KEY or
OPENAI_API_KEY. Without a key, a simulated model replies.

With -p it prints the reply to one message and exits, for scripts; text on standard
input is added to the message. Calls that change something are refused then, unless
--yes is set. --json prints each event as a line of JSON.`,
		Example: `  furl chat
  furl chat --continue               the newest chat of this folder
  furl chat --resume 01jd5
  furl chat -p "What does this program do?"
  git diff | furl chat -p "Review this change" --json`,
		Args:              cmdline.AtMost(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.Add(cmd)
	fl := cmd.Flags()
	fl.StringVarP(&f.prompt, "prompt", "p", "", "print the reply to this `message` and exit")
	fl.BoolVarP(&f.last, "continue", "c", false, "continue the newest chat of the working folder")
	fl.StringVarP(&f.resume, "resume", "r", "", "continue this `session`: id, its beginning, title, or latest")
	fl.StringVarP(&f.Model, "model", "m", "", "`name` of a model of the configuration, or a model's ID")
	fl.StringVar(&f.policy, "policy", "", "policy `name` for a new session (default that of the configuration, else auto)")
	fl.StringVarP(&f.Folder, "dir", "C", "", "working `folder` (default the current one)")
	fl.StringVar(&f.System, "system", "", "`file` with instructions for the model, instead of furl's")
	fl.BoolVarP(&f.Yes, "yes", "y", false, "run tools that change something without asking")
	fl.BoolVar(&f.NoTools, "no-tools", false, "offer no tools for files and commands")
	fl.BoolVar(&f.NoMCP, "no-mcp", false, "do not start the MCP servers of the configuration")
	fl.IntVar(&f.Steps, "max-steps", 0, "at most this `number` of requests for each message (default no limit)")
	fl.BoolVar(&f.Simulate, "sim", false, "let a simulated model reply")
	fl.StringVar(&f.Script, "script", "", "let a simulated model reply from this script `file`; see furl sim")
	fl.BoolVar(&f.Playback, "playback", false, "the replies come from a recording: hide nothing from the model")
	cmdline.Complete(cmd, "policy", p.PolicyNames)
	_ = cmd.RegisterFlagCompletionFunc("resume", func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		ids, _ := cmdline.CompleteSessions(&f.StoreFlags)(cmd, nil, begun)
		return ids, cobra.ShellCompDirectiveNoFileComp
	})
	_ = cmd.RegisterFlagCompletionFunc("model", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		c, _, err := config.Load(f.Config, p.Policies)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return models.KeyedNames(c), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// chatClient is storage.Meta.Client of the sessions of furl chat.
const chatClient = "furl chat"

// maxPrompt is the size of the longest message of standard input, in bytes.
const maxPrompt = 8 << 20

func (f *chatFlags) run(cmd *cobra.Command, args []string) (err error) {
	plain := cmd.Flags().Changed("prompt")
	switch {
	case f.last && f.resume != "":
		return cmdline.BadUsage("--continue and --resume exclude each other")
	case f.Json && !plain:
		return cmdline.BadUsage("--json requires -p with a message")
	case plain && len(args) > 0:
		return cmdline.BadUsage("-p and the argument %q are two messages; quote arguments with spaces", args[0])
	case f.Steps < 0:
		return cmdline.BadUsage("invalid --max-steps %d: expected 0 or more", f.Steps)
	}
	message := f.prompt
	if len(args) > 0 {
		message = args[0]
	}
	in, isFile := cmd.InOrStdin().(*os.File)
	terminal := isFile && term.IsTerminal(int(in.Fd()))
	switch {
	case plain && !terminal:
		if message, err = withInput(message, cmd.InOrStdin()); err != nil {
			return err
		}
		if message == "" {
			return cmdline.BadUsage("empty message: expected text after -p or on standard input")
		}
	case !plain && (!terminal || cmdline.Width(cmd.OutOrStdout()) == 0):
		return cmdline.BadUsage(`furl chat requires a terminal; use -p "MESSAGE" in scripts`)
	}
	membudget.SoftLimit(membudget.CommandMemory)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // a long session opens faster; the limit above holds
	}
	store, err := f.Open(cmd.Context())
	if err != nil {
		return err
	}
	defer workspace.CloseStore(store, &err)
	c, err := f.open(cmd.Context(), store)
	if err != nil {
		return err
	}
	defer c.Close()
	defer func() {
		if e := c.KeepSettings(context.WithoutCancel(cmd.Context())); e != nil && err == nil {
			err = fmt.Errorf("store the settings: %w", e)
		}
	}()
	if plain {
		return c.printRun(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), message, f.Json)
	}
	var first []agent.Input
	if message != "" {
		first = append(first, agent.Text(message))
	}
	return c.runScreen(cmd, in, first)
}

// withInput adds the text of standard input to a message.
func withInput(message string, in io.Reader) (string, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxPrompt+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read standard input: %w", err)
	case len(data) > maxPrompt:
		return "", fmt.Errorf("standard input is larger than %s bytes, the limit for a message", numbers.Thousands(maxPrompt))
	}
	text := strings.ToValidUTF8(strings.TrimRight(string(data), "\n"), "\uFFFD")
	switch {
	case strings.TrimSpace(text) == "":
		return strings.TrimSpace(message), nil
	case strings.TrimSpace(message) == "":
		return text, nil
	}
	return message + "\n\n" + text, nil
}

// runScreen runs the chat on the terminal.
func (c *chatRun) runScreen(cmd *cobra.Command, in *os.File, first []agent.Input) error {
	history := ""
	if dir, err := config.DataDir(); err == nil {
		history = filepath.Join(dir, workspace.ChatHistory)
	}
	out := cmd.OutOrStdout()
	if o, ok := out.(*cmdline.Output); ok {
		out = cmdline.Underlying(o)
	}
	c.color = cmdline.Styled(out)
	err := tui.Run(cmd.Context(), c, tui.Options{In: in, Out: out, History: history, First: first})
	if err == nil && c.Session().Head() > 0 {
		fmt.Fprintf(out, "To continue this chat: furl chat --resume %s\n", c.Session().ID())
	}
	return err
}

// pick opens the session that the flags name, or creates one.
func (f *chatFlags) pick(ctx context.Context, all *session.Sessions, dir string) (*session.Session, error) {
	switch {
	case f.resume != "":
		s, err := all.Find(ctx, f.resume)
		if ambiguous := (*session.AmbiguousError)(nil); errors.As(err, &ambiguous) {
			return nil, cmdline.AsUsage(cmdline.ListAmbiguous(ambiguous))
		}
		if errors.Is(err, storage.ErrNoSession) {
			return nil, fmt.Errorf("%w; furl sessions lists the sessions of the store", err)
		}
		return s, err
	case f.last:
		for info, err := range all.List(ctx, storage.SessionQuery{}) {
			if err != nil {
				return nil, err
			}
			if info.Client == chatClient && info.Project == dir {
				return all.Open(ctx, info.Session)
			}
		}
		return nil, fmt.Errorf("no chat in the folder %s: start one without --continue, or name a session with --resume", cmdline.Label(dir))
	}
	meta := storage.Meta{Client: chatClient, Project: dir}
	if f.policy != "" {
		if err := f.CheckPolicy(f.policy); err != nil {
			return nil, err
		}
		meta.Policy = f.policy
	}
	return all.Create(meta), nil
}

var _ chat.Conversation = (*chatRun)(nil)

// shortSession is the beginning of a session's id for the screen.
func shortSession(id furl.SessionID) string { return string(id[:min(len(id), 8)]) }
