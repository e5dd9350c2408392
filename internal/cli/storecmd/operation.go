package storecmd

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/models"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/internal/visible"
)

// OperationCommand is the command of an operation on one session.
func OperationCommand(p cmdline.Program, name string) *cobra.Command {
	o, f := operation.Named(name), cmdline.NewStoreFlags(p)
	in, use := o.Input(), "SESSION"
	if o.Optional {
		use = "[SESSION]"
	}
	cmd := &cobra.Command{
		Use:     strings.TrimSpace(o.Name + " " + use + " " + o.Usage()),
		Aliases: o.Aliases,
		Short:   o.Short,
		Long:    o.Long,
		Example: examples(o),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(cmdline.WithSession(args)) == 0 {
				return cmdline.BadUsage("%s requires a session; %[1]s --help shows examples", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: cmdline.CompleteSessions(&f),
		RunE: func(cmd *cobra.Command, args []string) error {
			args = cmdline.WithSession(args)
			if err := operation.Arguments(in, args[1:]); err != nil {
				return cmdline.BadUsage("%s: %w; %[1]s --help shows examples", cmd.CommandPath(), err)
			}
			return operate(&f, cmd, o, args[0], in)
		},
	}
	if o.Optional {
		cmd.Long += "\nIf the first handle names its session, as in the output of furl search, omit SESSION."
	}
	f.Add(cmd)
	operation.Flags(cmd.Flags(), in)
	return cmd
}

// examples returns the examples of an operation as commands.
func examples(o *operation.Operation) string {
	lines := make([]string, len(o.Example))
	for i, args := range o.Example {
		lines[i] = "  furl " + o.Command + " " + args
	}
	return strings.Join(lines, "\n")
}

// operate does an operation on the session with a name, and prints the result.
func operate(f *cmdline.StoreFlags, cmd *cobra.Command, o *operation.Operation, name string, in any) (err error) {
	t, err := f.Target(cmd, name, "")
	if err != nil {
		return err
	}
	defer t.Close(&err)
	if err := t.OnlyStored(cmd); err != nil && !operation.DryRun(in) {
		return err
	}
	c, _, err := config.Load(f.Config, f.Program.Policies)
	if err != nil {
		return err
	}
	t.Compactor = models.CompactorOf(c, t.Session)
	return operateOn(t, cmd, o, in, f.Json)
}

// operateOn does an operation on the session, and prints the result.
func operateOn(t *cmdline.Target, cmd *cobra.Command, o *operation.Operation, in any, asJSON bool) error {
	return run(cmd, &operation.Call{Context: cmd.Context(), Sessions: t.All, Session: t.Session, Compactor: t.Compactor}, o, in, asJSON)
}

// run does an operation, and prints the result.
func run(cmd *cobra.Command, call *operation.Call, o *operation.Operation, in any, asJSON bool) error {
	done, err := o.Do(call, in)
	if err != nil {
		return operationError(cmd, err)
	}
	if asJSON {
		out, err := done.JSON(call)
		if err != nil {
			return err
		}
		return cmdline.PrintJSON(cmd.OutOrStdout(), out)
	}
	printResult(cmd.OutOrStdout(), call, done)
	return nil
}

// operationError says what to do about an error of an operation.
func operationError(cmd *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[operation.Invalid](err); ok {
		return cmdline.BadUsage("%s: %w; %[1]s --help shows examples", cmd.CommandPath(), wrong)
	}
	if _, ok := errors.AsType[*operation.UnknownBlock](err); ok {
		return fmt.Errorf("%w; furl show prints record numbers, furl search prints handles", err)
	}
	return err
}

// printResult prints what an operation has done, or would do.
func printResult(w io.Writer, c *operation.Call, r *operation.Result) {
	for _, line := range ResultLines(c, r) {
		fmt.Fprintln(w, cmdline.Printable(line))
	}
	if r.Undo != nil && !c.Preview {
		fmt.Fprintln(w, "To undo this: furl "+cmdline.Printable(TypedCommand(operation.Named(r.Undo.Operation).Command, r.Undo, string(c.SessionKey().Session))))
	}
}

// ResultLines says what an operation has done, or what it would do and cost.
func ResultLines(c *operation.Call, r *operation.Result) []string {
	lines := append([]string{r.Text(c.Preview)}, r.Notes...)
	if r.Price != nil && c.Preview && r.Nothing == "" {
		words := operation.WordsOf(*r.Price, modelName(c.Session.Meta().Model))
		lines = append(append(lines, words.Size), words.Lines...)
	}
	return lines
}

// TypedCommand returns the command name of an operation as typed, with the session if there is one.
func TypedCommand(name string, u *operation.Undo, id string) string {
	words := []string{name}
	if id != "" && !operation.Named(u.Operation).NoSession {
		words = append(words, id)
	}
	for _, word := range operation.Words(u.Input) {
		if !strings.HasPrefix(word, "--") { // a flag
			word = visible.QuoteArg(word)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}
