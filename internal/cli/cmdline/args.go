package cmdline

import (
	"strings"

	"github.com/spf13/cobra"
)

// AtMost returns a usage error for more than n arguments.
func AtMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return unexpected(cmd, args[n], n)
		}
		return nil
	}
}

// OneSession returns a usage error unless there is one argument.
func OneSession(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return BadUsage("%s requires one session or recording; furl sessions lists sessions, %[1]s --help shows examples", cmd.CommandPath())
	}
	return AtMost(1)(cmd, args)
}

// SessionAnd returns a usage error unless a session and one to n other arguments are
// given. If n is 0, their number is not limited.
func SessionAnd(what string, n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		args = WithSession(args)
		if len(args) < 2 {
			return BadUsage("%s requires a session and %s; %[1]s --help shows examples", cmd.CommandPath(), what)
		}
		if n == 0 {
			return nil
		}
		return AtMost(1+n)(cmd, args)
	}
}

// unexpected returns a usage error for an argument after the n that a command takes.
func unexpected(cmd *cobra.Command, arg string, n int) error {
	path := cmd.CommandPath()
	cure := "quote an argument that has spaces; " + path + " --help shows examples"
	switch {
	case n > 0:
	case cmd.HasAvailableSubCommands():
		return NoCommand(cmd, arg)
	default:
		cure = path + " takes no arguments, only flags; see " + path + " --help"
	}
	return BadUsage("%s: unexpected argument %q: %s", path, Printable(arg), cure)
}

// NoCommand returns a usage error for an unknown subcommand.
func NoCommand(cmd *cobra.Command, name string) error {
	hint := cmd.CommandPath() + " --help lists them"
	if cmd.SuggestionsMinimumDistance == 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return BadUsage("unknown command %q: %s", name, hint)
}

// Exactly returns a check for a number of arguments, which the error names.
func Exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return BadUsage("%s requires %s", cmd.CommandPath(), what)
		}
		return AtMost(n)(cmd, args)
	}
}

// Positive returns a usage error if a flag was set to a number below 1.
func Positive(cmd *cobra.Command, flag string, n int) error {
	if cmd.Flags().Changed(flag) && n < 1 {
		return BadUsage("invalid --%s %d: expected 1 or more", flag, n)
	}
	return nil
}
