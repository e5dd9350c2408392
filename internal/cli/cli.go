// Package cli is the furl command.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/policy"
)

// Exit codes of the command.
const (
	exitOK        = 0
	exitFailed    = 1   // an operation failed
	exitUsage     = 2   // usage error
	exitInterrupt = 130 // interrupted by the user
)

// untilSignal returns a context that ends with the first interrupt or SIGTERM. A
// second signal ends the process at once: the default handlers are restored before
// the context ends.
func untilSignal() (ctx context.Context, stop context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
		case <-ctx.Done():
		}
		signal.Stop(signals)
		cancel()
	}()
	return ctx, cancel
}

// absoluteEnvironment makes the paths in furl's environment variables absolute. Programs
// that furl starts, such as agents, tools and MCP servers, read the same variables in
// other folders.
func absoluteEnvironment() error {
	for _, name := range []string{"FURL_DATA", "FURL_CONFIG", "FURL_STORE"} {
		value := os.Getenv(name)
		if value == "" || filepath.IsAbs(value) || strings.Contains(value, "://") {
			continue
		}
		path, err := filepath.Abs(value)
		if err == nil {
			err = os.Setenv(name, path)
		}
		if err != nil {
			return fmt.Errorf("$%s: %w", name, err)
		}
	}
	return nil
}

// program is shared by all commands.
type program struct {
	policies *policy.Set     // that flags and configuration can name; nil: the presets
	audited  *auditedCommand // the command that runs; nil: nothing is written down
}

// set returns the policies that exist without a configuration file.
func (p program) set() *policy.Set { return config.Policies(p.policies) }

// policyNames returns the names of the policies, for flag completion.
func (p program) policyNames() []string { return p.set().Names() }

// Main runs the command and returns its exit code. Flags and configuration files can
// name the policies of the set; if nil, the presets.
func Main(args []string, policies *policy.Set, in io.Reader, out, errs io.Writer) int {
	ctx, stop := untilSignal()
	defer stop()
	if err := absoluteEnvironment(); err != nil {
		complain(errs, err)
		return exitFailed
	}
	audited := new(auditedCommand)
	cmd := root(program{policies, audited})
	buffered := newOutput(out)
	cmd.SetArgs(args)
	cmd.SetIn(in)
	cmd.SetOut(buffered)
	cmd.SetErr(errs)
	help := cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		fitHelp(cmd, cmp.Or(width(buffered), helpColumns))
		help(cmd, args)
	})
	err := cmd.ExecuteContext(ctx)
	if full := buffered.Flush(); full != nil && err == nil {
		err = fmt.Errorf("write the output: %w", full)
	}
	audited.finish(errs, err)
	if code := (exitCode(0)); errors.As(err, &code) {
		return int(code) // also if a signal ended the command that furl ran
	}
	switch {
	case err == nil:
		return exitOK
	case ctx.Err() != nil || errors.Is(err, context.Canceled):
		fmt.Fprintln(errs, "furl: interrupted")
		return exitInterrupt
	}
	complain(errs, err)
	if usage := (usageError{}); errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

// Command returns the furl command with its subcommands, for manual pages and
// completion scripts.
func Command() *cobra.Command { return root(program{}) }

// complain prints an error, with a line for each joined error. The text may quote file
// names and contents, so it is made safe to print.
func complain(w io.Writer, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			complain(w, err)
		}
		return
	}
	text := printable(err.Error())
	if !strings.HasPrefix(text, "furl ") { // the name of a command, such as furl show
		text = "furl: " + text
	}
	fmt.Fprintln(w, text)
}

// usageError is an error of the command line.
type usageError struct{ err error }

func (u usageError) Error() string { return u.err.Error() }
func (u usageError) Unwrap() error { return u.err }

// exitCode is the exit code of a command that furl ran. It is passed on without an
// error message.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func badUsage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func root(p program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "furl",
		Short: "Keep long-running LLM agents inside their context window",
		Long: `furl keeps long-running LLM agents inside their context window without losing
anything. Start with furl replay: it compares policies on the sessions that your
agents have recorded on this machine, and shows what each policy saves, costs and
hides. It needs no key and no network.

Exit codes: 0 success, 1 failure, 2 usage error, 130 interrupted.`,
		Example: `  furl demo                demonstrate the gateway without a key
  furl replay              compare policies on your agents' sessions
  furl run -- claude       run an agent through the gateway
  furl chat                chat with furl's own agent`,
		Version:                    version(),
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		SilenceUsage:               true,
		Args:                       atMost(0),
		PersistentPreRunE:          p.auditCommandLine,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return badUsage("%w; see %s --help", flagError(err), c.CommandPath())
	})
	cmd.SetVersionTemplate("furl {{.Version}}\n")
	group(cmd, "Start here", demoCommand(p), replayCommand(p), setupCommand(p), runCommand(p), chatCommand(p))
	group(cmd, "Look at sessions", sessionsCommand(p), showCommand(p), getCommand(p), searchCommand(p), contextCommand(p), branchesCommand(p), statusCommand(p), statsCommand(p), uiCommand(p))
	group(cmd, "Change what the model sees", operationCommand(p, "pin"), operationCommand(p, "prefer"), operationCommand(p, "unpin"), operationCommand(p, "hide"), operationCommand(p, "restore"),
		operationCommand(p, "compact"), reduceCommand(p), operationCommand(p, "rewind"), operationCommand(p, "fork"), summaryCommand(p), editSummaryCommand(p), setCommand(p))
	group(cmd, "Move sessions", importCommand(p), exportCommand(p), resumeInCommand(p), fitCommand(p))
	group(cmd, "Run for agents and teams", serveCommand(p), mcpCommand(p), configCommand(p), modelsCommand(p), doctorCommand(p), tenantsCommand(p), keysCommand(p), auditCommand(p))
	group(cmd, "Keep and delete", deleteCommand(p), redactCommand(p), holdCommand(p), backupCommand(p), encryptionCommand(p), uninstallCommand(p))
	group(cmd, "Measure and test", evalCommand(p), simCommand())
	cmd.AddCommand(versionCommand())
	cmd.InitDefaultHelpCmd()
	if help, _, err := cmd.Find([]string{"help"}); err == nil && help != cmd {
		help.Short, help.Long, help.Example = "Print the help of a command", "", "  furl help serve\n  furl help config init"
		help.Run, help.RunE = nil, runHelp
	}
	cmd.InitDefaultCompletionCmd("completion")
	if shells, _, err := cmd.Find([]string{"completion"}); err == nil && shells != cmd {
		shells.Args = atMost(0)
		shells.Short = "Print a completion script for your shell"
		shells.Long = "Prints a script that completes commands, flags and session ids with the tab key.\nThe help of each subcommand explains where to install it."
		shells.Example = "  source <(furl completion bash)\n  furl completion zsh --help"
		for _, shell := range shells.Commands() {
			shell.Args = atMost(0)
			shell.Short = "Print the script for " + shell.Name()
		}
		shells.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	noFiles(cmd)
	return cmd
}

// group adds commands under a title in the help.
func group(cmd *cobra.Command, title string, list ...*cobra.Command) {
	cmd.AddGroup(&cobra.Group{ID: title, Title: title + ":"})
	for _, c := range list {
		c.GroupID = title
	}
	cmd.AddCommand(list...)
}

// runHelp prints the help of the command that its arguments name. Cobra's own returns
// no error for an unknown command.
func runHelp(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		if found == nil {
			found = cmd.Root()
		}
		return noCommand(found, append(rest, args...)[0])
	}
	found.InitDefaultHelpFlag()
	return found.Help()
}

// noCommand returns a usage error for an unknown subcommand.
func noCommand(cmd *cobra.Command, name string) error {
	hint := cmd.CommandPath() + " --help lists them"
	if cmd.SuggestionsMinimumDistance == 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return badUsage("unknown command %q: %s", name, hint)
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  furl version",
		Args:    atMost(0),
		Run:     func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), "furl", version()) },
	}
}

// version returns the module's version, or the commit that it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				return "devel " + s.Value[:12]
			}
		}
		return "devel"
	}
	return v
}

// flagError describes the invalid value of a flag without the words of strconv.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) || !errors.Is(err, strconv.ErrSyntax) && !errors.Is(err, strconv.ErrRange) {
		return err
	}
	expected := "a number"
	switch kind := invalid.GetFlag().Value.Type(); {
	case kind == "bool":
		expected = "true or false"
	case errors.Is(err, strconv.ErrRange):
		expected = "a smaller number"
	case strings.Contains(kind, "int"):
		expected = "an integer"
	}
	return fmt.Errorf("--%s %s: expected %s", invalid.GetFlag().Name, printable(invalid.GetValue()), expected)
}
