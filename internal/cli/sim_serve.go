package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/furlhq/furl/sim"
)

// Limits of the simulated provider's server.
const (
	headerTimeout = 30 * time.Second
	simShutdown   = 5 * time.Second
)

func runSim(cmd *cobra.Command, args []string, f *simFlags) error {
	opts, journal, err := f.options(cmd)
	if err != nil {
		return err
	}
	s := sim.New(opts)
	err = f.serve(cmd, args, s)
	if closing := journal.Close(); closing != nil && err == nil {
		err = fmt.Errorf("journal: %w", closing)
	}
	if bad := s.Err(); bad != nil && err == nil {
		err = fmt.Errorf("journal: %w", bad)
	}
	return err
}

// serve runs until its command ends or the user interrupts it, and prints the totals.
func (f *simFlags) serve(cmd *cobra.Command, args []string, s *sim.Sim) error {
	ctx := cmd.Context()
	address := f.listen
	if len(args) > 0 && !cmd.Flags().Changed("listen") {
		address = "127.0.0.1:0"
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", address, err)
	}
	srv := &http.Server{Handler: s, ReadHeaderTimeout: headerTimeout}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	url := reachedAt(ln.Addr().String())
	bill := cmd.OutOrStdout()
	var ran error
	if len(args) > 0 {
		bill = cmd.ErrOrStderr() // standard output belongs to the command
		ran = runAgainst(ctx, cmd, args, url)
	} else {
		fmt.Fprintf(cmd.ErrOrStderr(), "furl sim listens on %s; press Ctrl-C to stop it and print the totals\n", url)
		fmt.Fprintf(cmd.ErrOrStderr(), "  ANTHROPIC_BASE_URL=%s OPENAI_BASE_URL=%s/v1, with any key\n", url, url)
		select {
		case <-ctx.Done():
		case err := <-served:
			return fmt.Errorf("serve: %w", err)
		}
	}
	if err := stop(srv, served); err != nil {
		return err
	}
	return errors.Join(f.printBill(bill, s), ran)
}

// stop waits for streams to end, up to simShutdown, and then ends them.
func stop(srv *http.Server, served <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), simShutdown)
	defer cancel()
	if srv.Shutdown(ctx) != nil {
		_ = srv.Close() // cuts off the remaining streams
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// runAgainst runs a command with base URLs of the simulated provider.
func runAgainst(ctx context.Context, cmd *cobra.Command, args []string, url string) error {
	return runWith(context.WithoutCancel(ctx), cmd, args,
		"ANTHROPIC_BASE_URL="+url, "ANTHROPIC_API_KEY=furl-sim", "ANTHROPIC_AUTH_TOKEN=",
		"OPENAI_BASE_URL="+url+"/v1", "OPENAI_API_KEY=furl-sim",
		"FURL_SIM_URL="+url)
}

// runWith runs a command with additional environment variables. It returns an exit code
// other than 0 as an error, computed as in shells. The terminal sends Ctrl-C to the
// command itself, which may handle it without exiting. Other signals are passed on.
func runWith(ctx context.Context, cmd *cobra.Command, args []string, env ...string) error {
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
	if o, ok := c.Stdout.(*output); ok {
		c.Stdout = underlying(o)
	}
	c.Env = append(os.Environ(), env...)
	c.Cancel = func() error { return c.Process.Signal(told.Load().(os.Signal)) }
	c.WaitDelay = simShutdown
	err := c.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			return exitCode(128 + int(s.Signal()))
		}
		return exitCode(exit.ExitCode())
	}
	if errors.Is(err, context.Canceled) {
		return nil // the command ended after a signal
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", args[0], err)
	}
	return nil
}

// underlying returns the file of an output, for a command that writes to it directly.
func underlying(o *output) io.Writer {
	_ = o.Flush() // an error is returned again at the end
	return o.under
}
