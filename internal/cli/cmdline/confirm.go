package cmdline

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Confirm asks on the terminal. Without a terminal it fails.
func Confirm(cmd *cobra.Command, question string) error {
	in := cmd.InOrStdin()
	if file, ok := in.(interface{ Fd() uintptr }); !ok || !term.IsTerminal(int(file.Fd())) {
		return BadUsage("not a terminal; use --yes")
	}
	fmt.Fprint(cmd.ErrOrStderr(), question+" [y/N] ")
	answer, err := bufio.NewReader(io.LimitReader(in, 100)).ReadString('\n')
	if err != nil && answer == "" {
		return fmt.Errorf("read the answer: %w", err)
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return errors.New("nothing was deleted")
	}
	return nil
}
