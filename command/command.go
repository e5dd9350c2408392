// Package command runs the furl command from a Go program, with custom policies and
// stages. Configuration files and flags of all commands can name them.
package command

import (
	"os"

	"github.com/furlhq/furl/internal/cli"
	"github.com/furlhq/furl/policy"
)

// Main runs the furl command with arguments such as os.Args[1:] and returns its exit
// code. Flags and configuration files can name the policies of the set; if nil, the
// presets. Main uses the standard streams and handles interrupts. Call it once.
func Main(args []string, policies *policy.Set) int {
	return cli.Main(args, policies, os.Stdin, os.Stdout, os.Stderr)
}
