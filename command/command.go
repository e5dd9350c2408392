// Package command is the furl command as a function. A Go program that calls it
// is a furl of its own: configuration files and flags can name its policies and
// stages in replay, serve, run and all other commands.
package command

import (
	"os"

	"github.com/furlhq/furl/internal/cli"
	"github.com/furlhq/furl/policy"
)

// Main runs the furl command with arguments such as os.Args[1:] and returns its
// exit code. The policies can be chosen by name; nil means the presets. It reads
// standard input, writes to standard output and standard error, and handles
// interrupts. Call it once.
func Main(args []string, policies *policy.Set) int {
	return cli.Main(args, policies, os.Stdin, os.Stdout, os.Stderr)
}
