package gatewaycmd

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/launch"
	"github.com/furlhq/furl/internal/remote"
	"github.com/furlhq/furl/internal/usage"
)

// runRemote is furl run with --gateway.
func (f *serveFlags) runRemote(cmd *cobra.Command, args []string) error {
	for _, name := range []string{"store", "anthropic", "openai", "gemini", "chatgpt", "policy", "window", "dry-run", "recall", "no-page", "log"} {
		if cmd.Flags().Changed(name) {
			return usage.Errorf("--%s has no effect with --gateway, which has its own settings", name)
		}
	}
	r, err := remote.Open(f.remote, os.Getenv)
	if err != nil {
		return err
	}
	listen := f.Listen
	if listen == "" {
		listen = launch.FreePort
	}
	told := cmd.Context()
	return r.Serve(context.WithoutCancel(told), listen, func(ctx context.Context, url string) error { // runWith handles signals
		if err := told.Err(); err != nil {
			return err
		}
		route := launch.Connect(launch.Here(), args, r.Forwarding(ctx))
		route.Print(cmd.ErrOrStderr())
		err := cmdline.RunWith(ctx, cmd, route.Args(url), route.Env(url)...)
		r.Recorded(cmd.ErrOrStderr())
		return err
	})
}
