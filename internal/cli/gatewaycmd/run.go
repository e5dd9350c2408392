package gatewaycmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/launch"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/internal/serving"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/storage"
)

// RunCommand returns furl run.
func RunCommand(p cmdline.Program) *cobra.Command {
	f := serveFlags{store: cmdline.NewStoreFlags(p)}
	cmd := &cobra.Command{
		Use:                   "run [flags] -- COMMAND ARGUMENTS…",
		DisableFlagsInUseLine: true,
		Short:                 "Run an agent through the gateway",
		Long: `Starts the gateway on a free port and runs a command with base URLs that point to
it. When the command ends, furl says what it has recorded and saved, and exits with
the command's exit code, or with 128 plus the signal number if a signal ended it.
The command handles Ctrl-C. The log goes to run.log in the data folder.

Claude Code gets furl's status line for this run, unless it has one of its own.

With --gateway, it uses a running gateway instead of starting one, such as that of a
company. FURL_KEY is sent as its key. FURL_CA_FILE names a private authority of its
certificate, FURL_CERT_FILE and FURL_CERT_KEY_FILE a certificate to send it.`,
		Example: `  furl run -- claude
  furl run -- codex exec "fix the failing test"
  furl run --policy auto:faithful -- python agent.py
  furl run --gateway https://furl.internal:7410 -- claude`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || cmd.ArgsLenAtDash() != 0 {
				return cmdline.BadUsage(`furl run requires a command after "--", such as furl run -- claude`)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.remote != "" {
				return f.runRemote(cmd, args)
			}
			return f.run(cmd, args)
		},
	}
	f.add(cmd)
	f.addRemote(cmd)
	cmd.Flags().Lookup("listen").Usage = "`address` to listen on (default a free port)"
	cmd.Flags().Lookup("log").Usage = "log `level`: debug, info, warn, error (default that of the configuration, else warn)"
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return cmdline.BadUsage(`%w; put the command and its arguments after "--", such as furl run -- claude`, cmdline.FlagError(err))
	})
	return cmd
}

// run runs an agent through a gateway of its own.
func (f *serveFlags) run(cmd *cobra.Command, args []string) error {
	if f.Listen == "" {
		f.Listen = launch.FreePort
	}
	f.Running, f.Usual = true, "warn"
	errs := cmd.ErrOrStderr()
	log := launch.OpenRunLog()
	defer log.Close()
	f.LogTo = log
	f.start(cmd)
	c, _, err := config.Load(f.Config, f.Policies)
	if err != nil {
		return err
	}
	to := f.Forwarding(c)
	to.Keep = func(flag, address string) string {
		return "start furl run --" + flag + " " + visible.QuoteArg(address) + " -- " + launch.CommandName(args[0])
	}
	route := launch.Connect(launch.Here(), args, to)
	f.Anthropic = cmp.Or(f.Anthropic, route.Anthropic)
	route.Print(errs)
	r := agentRun{f: f, args: args, log: log, problems: route.Problems}
	f.Finished = func(s *serving.Running) {
		if r.started {
			r.print(errs, s)
		}
	}
	told := cmd.Context()
	ctx := context.WithoutCancel(told) // RunWith handles signals from here on
	return f.Serve(ctx, serving.RunShutdown, func(ctx context.Context, _ *serving.Running, url string) error {
		if err := told.Err(); err != nil {
			return err
		}
		if note := route.AddStatusLine(f.Place, f.Config); note != "" {
			fmt.Fprintf(errs, "furl: note: %s\n", cmdline.Printable(note))
		}
		err := cmdline.RunWith(ctx, cmd, route.Args(url), route.Env(url)...)
		_, exited := err.(cmdline.ExitCode)
		r.started = err == nil || exited
		return err
	})
}

// agentRun is a run of an agent, for the lines at its end.
type agentRun struct {
	f        *serveFlags
	args     []string
	log      *launch.RunLog
	problems []string // why requests may not reach furl
	started  bool     // the command was started
}

// print says in at most four lines what was recorded and saved.
func (r *agentRun) print(w io.Writer, s *serving.Running) {
	savings := s.Sessions.Stats().Savings
	say := func(format string, args ...any) {
		fmt.Fprintf(w, "furl: %s\n", cmdline.Printable(fmt.Sprintf(format, args...)))
	}
	if len(savings) == 0 {
		r.printNothing(say, s.Received.Load())
		return
	}
	keys := slices.SortedFunc(maps.Keys(savings), func(a, b furl.SessionKey) int {
		return cmp.Or(cmp.Compare(savings[b].Requests, savings[a].Requests), strings.Compare(string(a.Session), string(b.Session)))
	})
	var sum storage.Savings
	for _, one := range savings {
		sum.Add(one)
	}
	main := keys[0]
	var meta storage.Meta
	if one, err := s.Sessions.For(main.Tenant).Open(context.Background(), main.Session); err == nil { // otherwise the lines are shorter
		meta = one.Meta()
	}
	others := ""
	if n := len(keys) - 1; n > 0 {
		others = fmt.Sprintf(" and %s (furl sessions lists them)", numbers.Count(n, "other"))
	}
	see := "furl show " + string(main.Session) + " --view shows what the model sees"
	if main.Tenant != "" {
		see = "it belongs to a tenant, see furl tenants"
	}
	say("session %s%s: %s recorded%s; %s", main.Session, others, numbers.Count(sum.Requests, "request"), r.warnings(), see)
	hidden := "nothing was hidden from the model"
	if meta.Ledger != nil && meta.Ledger.Hidden > 0 {
		hidden = fmt.Sprintf("%s tokens are hidden from the model and can be restored", numbers.Thousands(meta.Ledger.Hidden))
	}
	if r.f.DryRun {
		hidden = "dry run: nothing was hidden; with --log info, " + r.log.Path + " says what would have been"
	}
	say("%s", hidden)
	say("%s", operation.SavedWords(sum))
	if next := resumeCommand(r.args, meta.Hint); next != "" {
		say("continue with: %s", next)
	}
}

// warnings names the log if it has warnings or errors.
func (r *agentRun) warnings() string {
	n := r.log.Warnings()
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s in %s)", numbers.Count(n, "warning"), r.log.Path)
}

// printNothing says why nothing was recorded.
func (r *agentRun) printNothing(say func(string, ...any), received int64) {
	if received > 0 {
		say("%s reached furl, but none was recorded%s", numbers.Count(int(received), "request"), r.warnings())
		if r.log.Warnings() == 0 {
			say("the agent may only have listed the models, or its format is not supported; --log info writes the reasons to %s", r.log.Path)
		}
		return
	}
	say("no request reached furl, so nothing was recorded%s", r.warnings())
	for _, problem := range r.problems[:min(len(r.problems), 2)] {
		say("%s", problem)
	}
	if len(r.problems) > 0 {
		return
	}
	say("if the agent sent requests, it does not use ANTHROPIC_BASE_URL, OPENAI_BASE_URL or GOOGLE_GEMINI_BASE_URL: see furl serve --print-env AGENT")
}

// resumeCommand returns the command that continues a session, "" if the agent has
// none. The hint is the agent's own id of the session.
func resumeCommand(args []string, hint string) string {
	hint, _, _ = strings.Cut(hint, "/") // the session of a sub-agent is continued by its parent
	if hint == "" || cmdline.Label(hint) != hint {
		return ""
	}
	var rest []string
	switch launch.CommandName(args[0]) {
	case "claude":
		rest = []string{"--resume", hint}
	case "codex":
		rest = []string{"resume", hint}
	case "opencode":
		rest = []string{"--session", hint}
	default:
		return ""
	}
	words := []string{"furl", "run"}
	for _, arg := range ownArgs(os.Args) {
		words = append(words, cmdline.QuoteFlag(arg))
	}
	words = append(words, "--", visible.QuoteArg(args[0]))
	for _, arg := range rest {
		words = append(words, cmdline.QuoteFlag(arg))
	}
	return strings.Join(words, " ")
}

// ownArgs returns furl's own flags of a command line: those between run and "--".
func ownArgs(line []string) []string {
	begin, end := slices.Index(line, "run"), slices.Index(line, "--")
	if begin < 0 || end < begin {
		return nil
	}
	return line[begin+1 : end]
}
