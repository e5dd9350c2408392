package replaycmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/launch"
	"github.com/furlhq/furl/sim"
)

// simShutdown is the time that streams of the simulated provider have to end.
const simShutdown = 5 * time.Second

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
	srv := &http.Server{Handler: s, ReadHeaderTimeout: launch.HeaderTimeout}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	url := launch.ReachedAt(ln.Addr().String())
	bill := cmd.OutOrStdout()
	var ran error
	if len(args) > 0 {
		bill = cmd.ErrOrStderr() // standard output belongs to the command
		ran = runAgainst(ctx, cmd, args, url)
	} else {
		fmt.Fprintf(cmd.ErrOrStderr(), "furl sim listens on %s; press Ctrl-C to stop it and print the totals\n", url)
		fmt.Fprintf(cmd.ErrOrStderr(), "  ANTHROPIC_BASE_URL=%s OPENAI_BASE_URL=%s/v1 GOOGLE_GEMINI_BASE_URL=%s, with any key\n", url, url, url)
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
	return cmdline.RunWith(context.WithoutCancel(ctx), cmd, args,
		"ANTHROPIC_BASE_URL="+url, "ANTHROPIC_API_KEY=furl-sim", "ANTHROPIC_AUTH_TOKEN=",
		"OPENAI_BASE_URL="+url+"/v1", "OPENAI_API_KEY=furl-sim",
		"GOOGLE_GEMINI_BASE_URL="+url, "GOOGLE_VERTEX_BASE_URL="+url, "GEMINI_API_KEY=furl-sim",
		"FURL_SIM_URL="+url)
}
