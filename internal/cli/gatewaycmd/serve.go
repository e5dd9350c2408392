// Package gatewaycmd has the commands that run and set up gateways: serve, run, ui, mcp, demo,
// config, setup, uninstall, keys, tenants and audit.
package gatewaycmd

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/audit"
	"github.com/furlhq/furl/internal/certs"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/modelsapi"
	"github.com/furlhq/furl/internal/oidc"
	"github.com/furlhq/furl/internal/private"
	"github.com/furlhq/furl/internal/web"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/token"
	"github.com/furlhq/furl/upstream"
)

// ServeFlags are the flags of furl serve and furl run.
type ServeFlags struct {
	cmdline.StoreFlags
	Listen, Policy, Window, level string
	Anthropic, Openai, chatGPT    string
	printEnv                      string
	remote                        string // furl run and furl ui: the address of a running gateway; "": their own
	dryRun, recall, NoPage        bool
	playback                      bool
	Running                       bool                            // furl run
	only                          bool                            // furl ui: the page over an existing store, and no provider
	Usual                         string                          // default log level; "": info
	LogTo                         io.Writer                       // nil: standard error
	Finished                      func(*Settings)                 // called when all requests have ended; nil: nothing
	Handler                       func(http.Handler) http.Handler // wraps the gateway; nil: nothing
	tokens                        *oidc.Verifier                  // of the last configuration; nil: none
}

func (f *ServeFlags) add(cmd *cobra.Command) {
	f.StoreFlags.Add(cmd)
	fl := cmd.Flags()
	_ = fl.MarkHidden("json")
	fl.StringVar(&f.Listen, "listen", "", "`address` to listen on (default "+config.DefaultListen+")")
	fl.StringVar(&f.Anthropic, "anthropic", "", "base `URL` of a provider of Anthropic Messages, or none (default "+workspace.AnthropicAddress+")")
	fl.StringVar(&f.Openai, "openai", "", "base `URL` of a provider of Chat Completions and Responses, or none (default "+workspace.OpenaiAddress+")")
	fl.StringVar(&f.chatGPT, "chatgpt", "", "base `URL` for a login with ChatGPT, or none (default ChatGPT's, none with --openai)")
	fl.StringVar(&f.Policy, "policy", "", "policy `name`: "+strings.Join(f.Program.PolicyNames(), ", ")+" (default that of the configuration, else auto)")
	fl.StringVar(&f.Window, "window", "", "context window in `tokens`, such as 128k (default the model's)")
	fl.BoolVar(&f.dryRun, "dry-run", false, "report in the log and in headers what would be hidden, and hide nothing")
	fl.BoolVar(&f.playback, "playback", false, "the replies come from a recording: hide nothing from the model")
	fl.BoolVar(&f.recall, "recall", false, "give models tools to search what is hidden, in new sessions")
	fl.BoolVar(&f.NoPage, "no-page", false, "serve no page for browsers")
	fl.StringVar(&f.level, "log", "", "log `level`: debug, info, warn, error (default that of the configuration, else info)")
	cmdline.Complete(cmd, "policy", f.Program.PolicyNames)
	cmdline.Complete(cmd, "log", func() []string { return []string{"debug", "info", "warn", "error"} })
}

// addRemote adds the flag for a running gateway.
func (f *ServeFlags) addRemote(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.remote, "gateway", "", "use the running gateway at this `URL`")
}

// ServeCommand returns furl serve.
func ServeCommand(p cmdline.Program) *cobra.Command {
	f := ServeFlags{StoreFlags: cmdline.NewStoreFlags(p)}
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
			if f.printEnv != "" {
				return f.environment(cmd.OutOrStdout())
			}
			return f.Serve(cmd, serveShutdown, func(ctx context.Context, s *Settings, url string) error {
				text := fmt.Sprintf("furl listens on %s\n  ANTHROPIC_BASE_URL=%s\n  OPENAI_BASE_URL=%s/v1\n", url, url, url)
				if f.hasPage(s.config) {
					text += fmt.Sprintf("Sessions in a browser: %s/\n", url)
				}
				fmt.Fprint(cmd.ErrOrStderr(), text)
				<-ctx.Done()
				return nil
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.printEnv, "print-env", "", "print the settings for this `agent` and exit: "+strings.Join(agentNames(), ", "))
	cmdline.Complete(cmd, "print-env", agentNames)
	return cmd
}

// Settings are those of a running gateway, and the objects made from them.
type Settings struct {
	store    storage.Store
	Sessions *session.Sessions
	indexer  *recall.Indexer // nil: furl ui
	vectors  *recall.Vectors // nil: no embeddings
	tenants  []byte          // key of the hash that identifies tenants; nil: a single tenant
	master   string          // master keys of the store's encryption; "": none
	page     *web.Page
	traces   *traces       // nil: tracing is off
	tls      *certs.Server // nil: connections are not encrypted
	received atomic.Int64  // requests, without those to furl's API
	listen   string
	audit    *audit.Log // nil: accesses are not written down
	models   *modelsapi.Book
	log      *slog.Logger

	// Changed by reload.
	reloading sync.Mutex
	config    *config.Config
	keys      gatewayKeys
	named     *access.Keys
	keyless   bool                        // started without client keys
	providers map[string]*upstream.Client // by address
	gateway   atomic.Pointer[gateway.Gateway]
	retention atomic.Pointer[session.Retention]
	// askedProviders are the providers whose models APIs furl requests; none if empty.
	askedProviders atomic.Pointer[gateway.Upstreams]
	level          slog.LevelVar
}

func (s *Settings) close() error {
	s.models.Close()
	for _, up := range s.providers {
		up.Close()
	}
	var err error
	if s.audit != nil {
		err = s.audit.Close()
	}
	return errors.Join(err, s.traces.close(), s.store.Close())
}

// settings reads the configuration file and opens the store.
func (f *ServeFlags) settings(cmd *cobra.Command) (*Settings, error) {
	c, file, err := config.Load(f.Config, f.Program.Policies)
	if err != nil {
		return nil, err
	}
	s := &Settings{config: c, listen: cmp.Or(f.Listen, c.Gateway.Listen, config.DefaultListen), providers: make(map[string]*upstream.Client)}
	logTo := f.LogTo
	if logTo == nil {
		logTo = cmd.ErrOrStderr()
	}
	s.log = slog.New(slog.NewTextHandler(logTo, &slog.HandlerOptions{Level: &s.level}))
	if c.Gateway.Tenants {
		if s.tenants, err = tenantSecret(); err != nil {
			return nil, err
		}
	}
	if s.master, err = workspace.MasterText(c, file); err != nil {
		return nil, err
	}
	if err := f.useTLS(s, c, file); err != nil {
		return nil, err
	}
	if s.audit, err = cmdline.OpenAudit(c, file); err != nil {
		return nil, err
	}
	s.models = modelsapi.Open(workspace.ModelsFile(), s.log, nil)
	s.page = web.New(&web.Options{Version: cmdline.Version(), Logger: s.log})
	l, err := f.live(s, c, file)
	if err != nil {
		return nil, err
	}
	if s.traces, err = newTraces(cmd.Context(), c.Telemetry, s.log); err != nil {
		return nil, err
	}
	f.Log = s.log
	open := f.Open
	if f.only {
		open = f.Existing
	}
	if s.store, err = open(cmd.Context()); err != nil {
		return nil, errors.Join(err, s.traces.close())
	}
	l.options.Tracer = s.traces.tracer()
	if !f.only { // else each search reads what is not indexed yet
		s.indexer = recall.NewIndexer(s.store, &recall.IndexerOptions{Log: s.log})
	}
	if err := s.useStore(l); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// useStore creates the objects that use the store.
func (s *Settings) useStore(l *live) (err error) {
	l.sessions.Indexer = s.indexer
	l.sessions.Reported = s.reported
	s.useProviders(l)
	if s.vectors, err = workspace.VectorsOf(s.store, s.config); err != nil {
		return err
	}
	l.sessions.Vectors = s.vectors
	if s.Sessions, err = session.New(s.store, l.sessions); err != nil {
		return err
	}
	g, err := gateway.New(s.Sessions, l.up, &l.options)
	if err != nil {
		return err
	}
	s.gateway.Store(g)
	s.keys, s.named, s.keyless = l.keys(), l.options.Keys, len(l.options.ClientKeys) == 0
	s.retention.Store(&l.retention)
	s.level.Set(l.level)
	return nil
}

const tenantSecretName = "tenants.key"

// tenantSecretFile is the path of the key for the tenants' hashes.
func tenantSecretFile() (string, error) {
	dir, err := config.DataDir()
	return filepath.Join(dir, tenantSecretName), err
}

// tenantSecret reads the key for the tenants' hashes, or creates it the first time.
// Without the same key, tenants lose access to their sessions.
func tenantSecret() ([]byte, error) {
	name, err := tenantSecretFile()
	if err != nil {
		return nil, err
	}
	secret, err := private.Read(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeTenantSecret(name); err != nil {
			return nil, fmt.Errorf("create the tenants' key: %w", err)
		}
		secret, err = private.Read(name)
	}
	if err != nil {
		return nil, fmt.Errorf("the tenants' key: %w", err)
	}
	if len(secret) < 16 {
		return nil, fmt.Errorf("the tenants' key: %s has no key; restore the file that the store was used with", name)
	}
	return secret, nil
}

// makeTenantSecret creates the file atomically, unless another process has created it.
func makeTenantSecret(name string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	w, err := os.CreateTemp(filepath.Dir(name), "tenants.key.") // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(w.Name())
	_, err = w.WriteString(rand.Text() + rand.Text())
	if err := errors.Join(err, w.Sync(), w.Close()); err != nil {
		return err
	}
	if err := os.Link(w.Name(), name); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Limits of the server. The time to read a request is limited, the duration of streams
// is not.
const (
	serveHeader  = 20 * time.Second
	serveIdle    = 5 * time.Minute
	serveMaxHead = 1 << 20
	serveStreams = 250 // concurrent requests on an HTTP/2 connection

	// Time for requests in progress when the gateway stops. A second signal ends
	// them at once. Under furl run the agent has exited and waits for no response.
	serveShutdown = 5 * time.Minute
	RunShutdown   = 30 * time.Second
)

// Serve runs the gateway until while returns or the user stops it. Requests in
// progress then have the shutdown time to end.
func (f *ServeFlags) Serve(cmd *cobra.Command, shutdown time.Duration, while func(ctx context.Context, s *Settings, url string) error) (err error) {
	cmdline.SoftLimit(cmdline.GatewayMemory)
	hangups, done := f.hangups() // before waiting for the store: a SIGHUP would end the process
	defer done()
	s, err := f.settings(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	defer func() {
		s.gateway.Load().Close()
		if f.Finished != nil {
			f.Finished(s)
		}
	}()
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", s.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen on %s: the address is in use, perhaps by another %s; choose another one with --listen", s.listen, cmd.CommandPath())
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.listen, err)
	}
	var handler http.Handler = s
	if f.Handler != nil {
		handler = f.Handler(s)
	}
	srv := &http.Server{
		Handler: handler, ReadHeaderTimeout: serveHeader, IdleTimeout: serveIdle, MaxHeaderBytes: serveMaxHead,
		ErrorLog: log.New(libraries{s.log}, "", 0), Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: serveStreams},
	}
	// The HTTP client logs there and may quote data of providers.
	was := log.Writer()
	log.SetOutput(libraries{s.log})
	defer log.SetOutput(was)
	srv.Protocols.SetHTTP1(true)
	listen, url := srv.Serve, ReachedAt(ln.Addr().String())
	if s.tls != nil {
		srv.Protocols.SetHTTP2(true)
		srv.TLSConfig, srv.Handler = s.tls.Config(), s.tls.Handler(srv.Handler)
		listen = func(ln net.Listener) error { return srv.ServeTLS(ln, "", "") }
		url = gatewayAt(ln.Addr().String(), s.config)
	} else {
		srv.Protocols.SetUnencryptedHTTP2(true)
	}
	group, working := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := listen(ln); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve: %w", err)
		}
		return nil
	})
	if !f.only {
		s.goMaintain(working, group)
	}
	if s.tls != nil {
		group.Go(func() error { return s.tls.Run(working, s.log) })
	}
	group.Go(func() error { return f.onHangup(working, s, hangups) })
	group.Go(func() error { return whenIdle(working, s.Sessions) })
	group.Go(func() error {
		err := while(working, s, url)
		s.gateway.Load().Drain()
		if !f.Running {
			s.awaitBalancer()
		}
		drain(srv, shutdown)
		cancel()
		return err
	})
	return group.Wait()
}

// goMaintain starts what a gateway does in addition to requests, until ctx ends: it keeps the
// indexes up to date, deletes expired sessions, records summaries, and keeps
// prompt caches alive.
func (s *Settings) goMaintain(working context.Context, group *errgroup.Group) {
	group.Go(func() error {
		err := s.indexer.Run(working)
		if working.Err() != nil {
			return nil // stopped
		}
		return err
	})
	if s.vectors != nil {
		group.Go(func() error {
			err := s.vectors.Run(working)
			if working.Err() != nil {
				return nil // stopped
			}
			return err
		})
	}
	group.Go(func() error {
		token.O200k().Count("") // load the vocabulary before the first request
		return nil
	})
	group.Go(func() error { return s.expiry().run(working) })
	group.Go(func() error { return s.gateway.Load().RecordSummaries(working) })
	group.Go(func() error { return s.gateway.Load().KeepAlive(working) })
}

// libraries logs messages of libraries without quoted data.
type libraries struct{ log *slog.Logger }

func (l libraries) Write(p []byte) (int, error) {
	l.log.Warn(upstream.Text(errors.New(strings.TrimSpace(string(p)))))
	return len(p), nil
}

// awaitBalancer waits for gateway.drain_delay after /readyz has begun to report that the
// gateway is not ready. Until a load balancer has noticed, it still sends requests.
func (s *Settings) awaitBalancer() {
	s.reloading.Lock()
	delay := s.config.Gateway.DrainDelay
	s.reloading.Unlock()
	if delay <= 0 {
		return
	}
	s.log.Info("draining: requests are accepted until the load balancer has noticed", "drain_delay", delay)
	<-time.After(delay)
}

// drain waits for requests in progress, up to a time.
func drain(srv *http.Server, shutdown time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), shutdown)
	defer cancel()
	if srv.Shutdown(ctx) != nil {
		_ = srv.Close() // cuts off the remaining requests
	}
}

// environment prints the settings for an agent.
func (f *ServeFlags) environment(w io.Writer) error {
	c, _, err := config.Load(f.Config, f.Program.Policies)
	if err != nil {
		return err
	}
	if f.printEnv == "gemini" {
		return ErrGemini
	}
	client, ok := agents.ClientNamed(f.printEnv)
	if !ok || !client.PrintsEnv() {
		return cmdline.BadUsage("unknown agent %q: choose one of %s", f.printEnv, strings.Join(agentNames(), ", "))
	}
	url := gatewayAt(cmp.Or(f.Listen, c.Gateway.Listen, config.DefaultListen), c)
	_, err = io.WriteString(w, envText(client, url))
	return err
}
