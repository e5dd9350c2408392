package gatewaycmd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/remote"
	"github.com/furlhq/furl/internal/serving"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// uiListen is where furl ui listens.
const uiListen = "127.0.0.1:7412"

// UICommand returns furl ui.
func UICommand(p cmdline.Program) *cobra.Command {
	f := serveFlags{
		Gateway: serving.Gateway{Only: true, Anthropic: "none", Openai: "none", Gemini: "none", ChatGPT: "none", Usual: "warn"},
		store:   cmdline.NewStoreFlags(p),
	}
	noOpen := false
	cmd := &cobra.Command{
		Use:   "ui [SESSION]",
		Short: "Open the page that shows what the model sees",
		Long: `Serves the page over the store and opens it in a browser. The page lists the
sessions. For each one it shows the transcript, what is hidden and why, and the size
of the context over time.

furl serve has the same page at its root. furl ui needs no provider and passes on no
requests to models. It may run while furl serve uses the store, and it uses the same
configuration. On addresses other than loopback it requires client keys.

With --gateway, it opens the page of a running gateway instead, with the key and the
certificates of the environment, see furl run.`,
		Example: `  furl ui
  furl ui latest
  furl ui --store old.db --listen 127.0.0.1:0 --no-open
  furl ui --gateway https://furl.internal:7410`,
		Args:              cmdline.AtMost(1),
		ValidArgsFunction: cmdline.CompleteSessions(&f.store),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.ui(cmd, args, noOpen) },
	}
	f.store.Add(cmd)
	f.addRemote(cmd)
	_ = cmd.Flags().MarkHidden("json")
	cmd.Flags().StringVar(&f.Listen, "listen", uiListen, "`address` to listen on")
	cmd.Flags().BoolVar(&noOpen, "no-open", false, "print the address and open no browser")
	return cmd
}

// ui is furl ui.
func (f *serveFlags) ui(cmd *cobra.Command, args []string, noOpen bool) error {
	show := func(ctx context.Context, at string) error {
		fmt.Fprintf(cmd.ErrOrStderr(), "furl ui listens on %s\nPress Ctrl-C to stop.\n", at)
		if !noOpen && cmdline.Width(cmd.OutOrStdout()) > 0 {
			if err := openBrowser(at); err != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "Open this address in a browser (furl could not: %s)\n", cmdline.Printable(err.Error()))
			}
		}
		<-ctx.Done()
		return nil
	}
	if f.remote != "" {
		if cmd.Flags().Changed("store") {
			return cmdline.BadUsage("--store has no effect with --gateway, which has its own settings")
		}
		r, err := remote.Open(f.remote, os.Getenv)
		if err != nil {
			return err
		}
		return r.Serve(cmd.Context(), f.Listen, func(ctx context.Context, base string) error {
			at := base + "/"
			if len(args) > 0 {
				at = base + sessionPath(args[0])
			}
			return show(ctx, at)
		})
	}
	f.start(cmd)
	return f.Serve(cmd.Context(), serving.PageShutdown, func(ctx context.Context, s *serving.Running, base string) error {
		at := base + "/"
		if len(args) > 0 {
			path, err := pagePath(s, ctx, args[0])
			if err != nil {
				return err
			}
			at = base + path
		}
		return show(ctx, at)
	})
}

// pagePath returns the path of a session's page. With tenants, the page itself finds
// the session among those of the visitor's tenant.
func pagePath(s *serving.Running, ctx context.Context, name string) (string, error) {
	id := name
	if s.Tenants == nil {
		found, err := s.Sessions.Find(ctx, name)
		if ambiguous := (*session.AmbiguousError)(nil); errors.As(err, &ambiguous) {
			return "", cmdline.AsUsage(cmdline.ListAmbiguous(ambiguous))
		}
		if errors.Is(err, storage.ErrNoSession) {
			return "", fmt.Errorf("%w; furl sessions lists the sessions of the store", err)
		}
		if err != nil {
			return "", err
		}
		id = string(found.ID())
	}
	return sessionPath(id), nil
}

// sessionPath returns the path of a session's page.
func sessionPath(id string) string { return "/furl/sessions/" + url.PathEscape(id) }
