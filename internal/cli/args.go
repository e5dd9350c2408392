package cli

import (
	"github.com/spf13/cobra"
)

// atMost returns a usage error for more than n arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return unexpected(cmd, args[n], n)
		}
		return nil
	}
}

// oneSession returns a usage error unless there is one argument.
func oneSession(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return badUsage("%s requires one session or recording; furl sessions lists sessions, %[1]s --help shows examples", cmd.CommandPath())
	}
	return atMost(1)(cmd, args)
}

// sessionAnd returns a usage error unless a session and one to n other arguments are
// given. If n is 0, their number is not limited.
func sessionAnd(what string, n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		args = withSession(args)
		if len(args) < 2 {
			return badUsage("%s requires a session and %s; %[1]s --help shows examples", cmd.CommandPath(), what)
		}
		if n == 0 {
			return nil
		}
		return atMost(1+n)(cmd, args)
	}
}

// unexpected returns a usage error for an argument after the n that a command takes.
func unexpected(cmd *cobra.Command, arg string, n int) error {
	path := cmd.CommandPath()
	cure := "quote an argument that has spaces; " + path + " --help shows examples"
	switch {
	case n > 0:
	case cmd.HasAvailableSubCommands():
		return noCommand(cmd, arg)
	case cmd.Flags().Lookup("session") != nil:
		cure = "to choose a session, use --session " + quoteArg(printable(arg))
	default:
		cure = path + " takes no arguments, only flags; see " + path + " --help"
	}
	return badUsage("%s: unexpected argument %q: %s", path, printable(arg), cure)
}
