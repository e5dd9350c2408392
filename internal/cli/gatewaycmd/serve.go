// Package gatewaycmd has the commands that run and set up gateways: serve, run, ui, mcp, demo,
// config, setup, uninstall, keys, tenants and audit.
package gatewaycmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/launch"
	"github.com/furlhq/furl/internal/serving"
	"github.com/furlhq/furl/internal/workspace"
)

// serveFlags are the flags of furl serve, furl run and furl ui.
type serveFlags struct {
	serving.Gateway
	store    cmdline.StoreFlags
	printEnv string
	remote   string // furl run and furl ui: the address of a running gateway; "": their own
}

// start prepares the gateway for a command.
func (f *serveFlags) start(cmd *cobra.Command) {
	f.Workspace, f.Command = f.store.Workspace, cmd.CommandPath()
	if f.LogTo == nil {
		f.LogTo = cmd.ErrOrStderr()
	}
}

func (f *serveFlags) add(cmd *cobra.Command) {
	f.store.Add(cmd)
	fl := cmd.Flags()
	_ = fl.MarkHidden("json")
	fl.StringVar(&f.Listen, "listen", "", "`address` to listen on (default "+config.DefaultListen+")")
	fl.StringVar(&f.Anthropic, "anthropic", "", "base `URL` of a provider of Anthropic Messages, or none (default "+workspace.AnthropicAddress+")")
	fl.StringVar(&f.Openai, "openai", "", "base `URL` of a provider of Chat Completions and Responses, or none (default "+workspace.OpenaiAddress+")")
	fl.StringVar(&f.Gemini, "gemini", "", "base `URL` of a provider of Gemini's format, or none (default "+workspace.GeminiAddress+")")
	fl.StringVar(&f.ChatGPT, "chatgpt", "", "base `URL` for a login with ChatGPT, or none (default ChatGPT's, none with --openai)")
	fl.StringVar(&f.Policy, "policy", "", "policy `name`: "+strings.Join(f.store.Program.PolicyNames(), ", ")+" (default that of the configuration, else auto)")
	fl.StringVar(&f.Window, "window", "", "context window in `tokens`, such as 128k (default the model's)")
	fl.BoolVar(&f.DryRun, "dry-run", false, "report in the log and in headers what would be hidden, and hide nothing")
	fl.BoolVar(&f.Playback, "playback", false, "the replies come from a recording: hide nothing from the model")
	fl.BoolVar(&f.Recall, "recall", false, "give models tools to search what is hidden, in new sessions")
	fl.BoolVar(&f.NoPage, "no-page", false, "serve no page for browsers")
	fl.StringVar(&f.Level, "log", "", "log `level`: debug, info, warn, error (default that of the configuration, else info)")
	cmdline.Complete(cmd, "policy", f.store.Program.PolicyNames)
	cmdline.Complete(cmd, "log", func() []string { return []string{"debug", "info", "warn", "error"} })
}

// addRemote adds the flag for a running gateway.
func (f *serveFlags) addRemote(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.remote, "gateway", "", "use the running gateway at this `URL`")
}

// ServeCommand returns furl serve.
func ServeCommand(p cmdline.Program) *cobra.Command {
	f := serveFlags{store: cmdline.NewStoreFlags(p)}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the gateway",
		Long: `Runs a gateway that passes requests to the providers. It records each session,
keeps it inside its context window with a policy, and lets you search, show and
restore what was hidden. Credentials are passed through and neither stored nor
logged. Its address shows the sessions in a browser.

Requests that furl does not recognize are passed through unchanged. If recording
fails, requests are passed through too (unless gateway.refuse is set).

--print-env prints the settings for an agent. furl run starts an agent with them.`,
		Example: `  furl serve
  furl serve --print-env claude
  furl serve --openai http://localhost:11434 --anthropic none --window 32k
  ANTHROPIC_BASE_URL=http://` + config.DefaultListen + ` claude`,
		Args: cmdline.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.start(cmd)
			if f.printEnv != "" {
				return f.environment(cmd.OutOrStdout())
			}
			return f.Serve(cmd.Context(), serving.ServeShutdown, func(ctx context.Context, s *serving.Running, url string) error {
				text := fmt.Sprintf("furl listens on %s\n  ANTHROPIC_BASE_URL=%s\n  OPENAI_BASE_URL=%s/v1\n  GOOGLE_GEMINI_BASE_URL=%s\n", url, url, url, url)
				if f.HasPage(s.Config) {
					text += fmt.Sprintf("Sessions in a browser: %s/\n", url)
				}
				fmt.Fprint(cmd.ErrOrStderr(), text)
				<-ctx.Done()
				return nil
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.printEnv, "print-env", "", "print the settings for this `agent` and exit: "+strings.Join(launch.AgentNames(), ", "))
	cmdline.Complete(cmd, "print-env", launch.AgentNames)
	return cmd
}

// environment prints the settings for an agent.
func (f *serveFlags) environment(w io.Writer) error {
	c, _, err := config.Load(f.Config, f.Policies)
	if err != nil {
		return err
	}
	client, ok := agents.ClientNamed(f.printEnv)
	if !ok || !client.PrintsEnv() {
		return cmdline.BadUsage("unknown agent %q: choose one of %s", f.printEnv, strings.Join(launch.AgentNames(), ", "))
	}
	url := launch.GatewayAt(cmp.Or(f.Listen, c.Gateway.Listen, config.DefaultListen), c)
	_, err = io.WriteString(w, launch.EnvText(client, url))
	return err
}
