package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/operation"
)

// operationCommand is the command of an operation on one session.
func operationCommand(p program, name string) *cobra.Command {
	o, f := operation.Named(name), storeFlags{program: p}
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
			if len(withSession(args)) == 0 {
				return badUsage("%s requires a session; %[1]s --help shows examples", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: completeSessions(&f),
		RunE: func(cmd *cobra.Command, args []string) error {
			args = withSession(args)
			if err := operation.Arguments(in, args[1:]); err != nil {
				return badUsage("%s: %w; %[1]s --help shows examples", cmd.CommandPath(), err)
			}
			return f.operate(cmd, o, args[0], in)
		},
	}
	if o.Optional {
		cmd.Long += "\nIf the first handle names its session, as in the output of furl search, omit SESSION."
	}
	f.add(cmd)
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
func (f *storeFlags) operate(cmd *cobra.Command, o *operation.Operation, name string, in any) (err error) {
	t, err := f.target(cmd, name, "")
	if err != nil {
		return err
	}
	defer t.close(&err)
	if !operation.DryRun(in) {
		if err := t.onlyStored(cmd); err != nil {
			return err
		}
	}
	c, _, err := config.Load(f.config, f.program.policies)
	if err != nil {
		return err
	}
	t.compactor = compactorOf(c, t.Session)
	return t.operate(cmd, o, in, f.json)
}

// operate does an operation on the session, and prints the result.
func (t *target) operate(cmd *cobra.Command, o *operation.Operation, in any, asJSON bool) error {
	call := &operation.Call{Context: cmd.Context(), Sessions: t.all, Session: t.Session, Compactor: t.compactor}
	done, err := o.Do(call, in)
	if err != nil {
		return operationError(cmd, err)
	}
	if asJSON {
		out, err := done.JSON(call)
		if err != nil {
			return err
		}
		return printJSON(cmd.OutOrStdout(), out)
	}
	printResult(cmd.OutOrStdout(), call, done)
	return nil
}

// operationError says what to do about an error of an operation.
func operationError(cmd *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[operation.Invalid](err); ok {
		return badUsage("%s: %w; %[1]s --help shows examples", cmd.CommandPath(), wrong)
	}
	if _, ok := errors.AsType[*operation.UnknownBlock](err); ok {
		return fmt.Errorf("%w; furl show prints record numbers, furl search prints handles", err)
	}
	return err
}

// printResult prints what an operation has done, or would do.
func printResult(w io.Writer, c *operation.Call, r *operation.Result) {
	for _, line := range resultLines(c, r) {
		fmt.Fprintln(w, printable(line))
	}
	if r.Undo != nil && !c.Preview {
		fmt.Fprintln(w, "To undo this: furl "+printable(typedCommand(r.Undo, string(c.Session.ID()))))
	}
}

// resultLines says what an operation has done, or what it would do and cost.
func resultLines(c *operation.Call, r *operation.Result) []string {
	lines := append([]string{r.Text(c.Preview)}, r.Notes...)
	if r.Price != nil && c.Preview && r.Nothing == "" {
		words := operation.WordsOf(*r.Price, modelName(c.Session.Meta().Model))
		lines = append(append(lines, words.Size), words.Lines...)
	}
	return lines
}

// typedCommand returns an operation as typed, with the session if there is one.
func typedCommand(u *operation.Undo, id string) string {
	words := []string{operation.Named(u.Operation).Command}
	if id != "" {
		words = append(words, id)
	}
	for _, word := range operation.Words(u.Input) {
		if !strings.HasPrefix(word, "--") { // a flag
			word = quoteArg(word)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}
