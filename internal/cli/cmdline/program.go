// Package cmdline has what the commands of furl share: their arguments and flags, the store
// and the session that these name, and how text, tables and progress are printed.
package cmdline

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/usage"
	"github.com/furlhq/furl/policy"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit codes of the command.
const (
	ExitOK        = 0
	ExitFailed    = 1   // an operation failed
	ExitUsage     = 2   // usage error
	ExitInterrupt = 130 // interrupted by the user
)

// Program is shared by all commands.
type Program struct {
	Policies *policy.Set // that flags and configuration can name; nil: the presets
	Audited  *Audited    // the command that runs; nil: nothing is written down
}

// Set returns the policies that exist without a configuration file.
func (p Program) Set() *policy.Set { return config.Policies(p.Policies) }

// PolicyNames returns the names of the policies, for flag completion.
func (p Program) PolicyNames() []string { return p.Set().Names() }

// Complain prints an error, with a line for each joined error. The text may quote file
// names and contents, so it is made safe to print.
func Complain(w io.Writer, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			Complain(w, err)
		}
		return
	}
	text := Printable(err.Error())
	if !strings.HasPrefix(text, "furl ") { // the name of a command, such as furl show
		text = "furl: " + text
	}
	fmt.Fprintln(w, text)
}

// ExitCode is the exit code of a command that furl ran. It is passed on without an
// error message.
type ExitCode int

func (e ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// AsUsage makes an error one of the command line.
func AsUsage(err error) error { return usage.Wrap(err) }

// BadUsage is fmt.Errorf for an error of the command line.
func BadUsage(format string, args ...any) error { return usage.Errorf(format, args...) }

// NewRoot returns the furl command without subcommands and help.
func NewRoot(p Program) *cobra.Command {
	cmd := &cobra.Command{Use: "furl", SilenceErrors: true, SilenceUsage: true, PersistentPreRunE: p.auditCommandLine}
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return BadUsage("%w; see %s --help", FlagError(err), c.CommandPath())
	})
	return cmd
}

// FlagError describes the invalid value of a flag without the words of strconv.
func FlagError(err error) error {
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
	return fmt.Errorf("--%s %s: expected %s", invalid.GetFlag().Name, Printable(invalid.GetValue()), expected)
}
