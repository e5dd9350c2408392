// Package cli is the furl command: its help, how it runs, and its exit codes. The packages in
// its folder have the commands.
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
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/cli/chatcmd"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/cli/gatewaycmd"
	"github.com/furlhq/furl/internal/cli/replaycmd"
	"github.com/furlhq/furl/internal/cli/storecmd"
	"github.com/furlhq/furl/internal/usage"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/policy"
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

// Main runs the command and returns its exit code. Flags and configuration files can
// name the policies of the set; if nil, the presets.
func Main(args []string, policies *policy.Set, in io.Reader, out, errs io.Writer) int {
	ctx, stop := untilSignal()
	defer stop()
	if err := absoluteEnvironment(); err != nil {
		cmdline.Complain(errs, err)
		return cmdline.ExitFailed
	}
	audited := new(cmdline.Audited)
	cmd := root(cmdline.Program{Policies: policies, Audited: audited})
	buffered := cmdline.NewOutput(out)
	cmd.SetArgs(args)
	cmd.SetIn(in)
	cmd.SetOut(buffered)
	cmd.SetErr(errs)
	help := cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		fitHelp(cmd, cmp.Or(cmdline.Width(buffered), helpColumns))
		help(cmd, args)
	})
	err := cmd.ExecuteContext(ctx)
	if full := buffered.Flush(); full != nil && err == nil {
		err = fmt.Errorf("write the output: %w", full)
	}
	audited.Finish(errs, err)
	if code := (cmdline.ExitCode(0)); errors.As(err, &code) {
		return int(code) // also if a signal ended the command that furl ran
	}
	switch {
	case err == nil:
		return cmdline.ExitOK
	case ctx.Err() != nil || errors.Is(err, context.Canceled):
		fmt.Fprintln(errs, "furl: interrupted")
		return cmdline.ExitInterrupt
	}
	cmdline.Complain(errs, err)
	if usage := (usage.Error{}); errors.As(err, &usage) {
		return cmdline.ExitUsage
	}
	return cmdline.ExitFailed
}

// Command returns the furl command with its subcommands, for manual pages and
// completion scripts.
func Command() *cobra.Command { return root(cmdline.Program{}) }

func root(p cmdline.Program) *cobra.Command {
	cmd := cmdline.NewRoot(p)
	cmd.Short = "Keep long-running LLM agents inside their context window"
	cmd.Long = `furl keeps long-running LLM agents inside their context window without losing
anything. Start with furl replay: it compares policies on the sessions that your
agents have recorded on this machine, and shows what each policy saves, costs and
hides. It needs no key and no network.

Exit codes: 0 success, 1 failure, 2 usage error, 130 interrupted.`
	cmd.Example = `  furl demo                demonstrate the gateway without a key
  furl replay              compare policies on your agents' sessions
  furl run -- claude       run an agent through the gateway
  furl chat                chat with furl's own agent`
	cmd.Version = workspace.Version()
	cmd.SuggestionsMinimumDistance = 2
	cmd.Args = cmdline.AtMost(0)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.SetVersionTemplate("furl {{.Version}}\n")
	group(cmd, "Start here", gatewaycmd.DemoCommand(p), replaycmd.ReplayCommand(p), gatewaycmd.SetupCommand(p), gatewaycmd.RunCommand(p), chatcmd.Command(p))
	group(cmd, "Look at sessions", storecmd.SessionsCommand(p), storecmd.ShowCommand(p), storecmd.GetCommand(p), storecmd.SearchCommand(p), storecmd.ContextCommand(p), storecmd.LostCommand(p), storecmd.BranchesCommand(p), storecmd.StatusCommand(p), replaycmd.UsageCommand(p), storecmd.StatsCommand(p), gatewaycmd.UICommand(p))
	group(cmd, "Change what the model sees", storecmd.OperationCommand(p, "pin"), storecmd.OperationCommand(p, "prefer"), storecmd.OperationCommand(p, "unpin"), storecmd.OperationCommand(p, "hide"), storecmd.OperationCommand(p, "restore"),
		storecmd.OperationCommand(p, "compact"), storecmd.ReduceCommand(p), storecmd.OperationCommand(p, "rewind"), storecmd.OperationCommand(p, "fork"), storecmd.SummaryCommand(p), storecmd.EditSummaryCommand(p), storecmd.SetCommand(p))
	group(cmd, "Move sessions", storecmd.ImportCommand(p), storecmd.ExportCommand(p), storecmd.ResumeInCommand(p), storecmd.FitCommand(p))
	group(cmd, "Run for agents and teams", gatewaycmd.ServeCommand(p), gatewaycmd.MCPCommand(p), gatewaycmd.ConfigCommand(p), replaycmd.ModelsCommand(p), storecmd.DoctorCommand(p), gatewaycmd.TenantsCommand(p), gatewaycmd.KeysCommand(p), gatewaycmd.AuditCommand(p))
	group(cmd, "Keep and delete", storecmd.DeleteCommand(p), storecmd.RedactCommand(p), storecmd.HoldCommand(p), storecmd.BackupCommand(p), storecmd.EncryptionCommand(p), gatewaycmd.UninstallCommand(p))
	group(cmd, "Measure and test", replaycmd.EvalCommand(p), replaycmd.SimCommand())
	cmd.AddCommand(versionCommand())
	cmd.InitDefaultHelpCmd()
	if help, _, err := cmd.Find([]string{"help"}); err == nil && help != cmd {
		help.Short, help.Long, help.Example = "Print the help of a command", "", "  furl help serve\n  furl help config init"
		help.Run, help.RunE = nil, runHelp
	}
	cmd.InitDefaultCompletionCmd("completion")
	if shells, _, err := cmd.Find([]string{"completion"}); err == nil && shells != cmd {
		shells.Args = cmdline.AtMost(0)
		shells.Short = "Print a completion script for your shell"
		shells.Long = "Prints a script that completes commands, flags and session ids with the tab key.\nThe help of each subcommand explains where to install it."
		shells.Example = "  source <(furl completion bash)\n  furl completion zsh --help"
		for _, shell := range shells.Commands() {
			shell.Args = cmdline.AtMost(0)
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
		return cmdline.NoCommand(found, append(rest, args...)[0])
	}
	found.InitDefaultHelpFlag()
	return found.Help()
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  furl version",
		Args:    cmdline.AtMost(0),
		Run:     func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), "furl", workspace.Version()) },
	}
}
