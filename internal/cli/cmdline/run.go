package cmdline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/furlhq/furl/internal/launch"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// RunWith runs a command with additional environment variables. It returns an exit code
// other than 0 as an error, computed as in shells. The terminal sends Ctrl-C to the
// command itself, which may handle it without exiting. Other signals are passed on.
func RunWith(ctx context.Context, cmd *cobra.Command, args []string, env ...string) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var told atomic.Value // the signal to pass on
	told.Store(os.Interrupt)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	var listening sync.WaitGroup
	defer listening.Wait()
	defer end()
	listening.Go(func() {
		for {
			select {
			case s := <-signals:
				if s == os.Interrupt && term.IsTerminal(int(os.Stdin.Fd())) {
					continue
				}
				told.Store(s)
				end()
			case <-ctx.Done():
				return
			}
		}
	})
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Stdin, c.Stderr, c.Stdout = cmd.InOrStdin(), cmd.ErrOrStderr(), cmd.OutOrStdout()
	if o, ok := c.Stdout.(*Output); ok {
		c.Stdout = Underlying(o)
	}
	c.Env = append(os.Environ(), env...)
	c.Cancel = func() error { return c.Process.Signal(told.Load().(os.Signal)) }
	c.WaitDelay = launch.StopTime
	err := c.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			return ExitCode(128 + int(s.Signal()))
		}
		return ExitCode(exit.ExitCode())
	}
	if errors.Is(err, context.Canceled) {
		return nil // the command ended after a signal
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", args[0], err)
	}
	return nil
}
