package cli

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
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/token"
	"github.com/furlhq/furl/upstream"
)

// The providers' own addresses.
const (
	anthropicAddress = "https://api.anthropic.com"
	openaiAddress    = "https://api.openai.com"
)

// serveFlags are those of furl serve and furl run.
type serveFlags struct {
	storeFlags
	listen, anthropic, openai, policy, window, level string
	printEnv                                         string
	dryRun, recall                                   bool
	running                                          bool   // furl run
	usual                                            string // level of the log, unless configured; "": info
}

func (f *serveFlags) add(cmd *cobra.Command) {
	f.storeFlags.add(cmd)
	fl := cmd.Flags()
	_ = fl.MarkHidden("json")
	fl.StringVar(&f.listen, "listen", "", "`address` to listen on (default "+config.DefaultListen+")")
	fl.StringVar(&f.anthropic, "anthropic", "", "base `address` of a provider of Anthropic Messages, or none (default "+anthropicAddress+")")
	fl.StringVar(&f.openai, "openai", "", "base `address` of a provider of Chat Completions and Responses, or none (default "+openaiAddress+")")
	fl.StringVar(&f.policy, "policy", "", "`name` of the policy: "+strings.Join(f.program.policyNames(), ", ")+" (default what the configuration says, else auto)")
	fl.StringVar(&f.window, "window", "", "context window to stay within, in `tokens` such as 128k (default the model's)")
	fl.BoolVar(&f.dryRun, "dry-run", false, "say in the log and in headers what would be hidden, and hide nothing")
	fl.BoolVar(&f.recall, "recall", false, "give models tools that find what is hidden from them, in sessions that begin from now on")
	fl.StringVar(&f.level, "log", "", "`level` of the log: debug, info, warn, error (default what the configuration says, else info)")
	complete(cmd, "policy", f.program.policyNames)
	complete(cmd, "log", func() []string { return []string{"debug", "info", "warn", "error"} })
}

func serveCommand(p program) *cobra.Command {
	f := serveFlags{storeFlags: storeFlags{program: p}}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the gateway",
		Long: `Serves the providers' APIs and passes requests on to them. Each conversation is
recorded, kept inside its context window by a policy, and can be searched,
shown, and restored. Credentials pass through and are neither stored nor logged.

What furl does not know goes through untouched. Where furl itself fails,
requests go on without it.

--print-env says what to set for an agent; furl run starts one with it set.`,
		Example: `  furl serve
  furl serve --print-env claude
  furl serve --openai http://localhost:11434 --anthropic none --window 32k
  ANTHROPIC_BASE_URL=http://` + config.DefaultListen + ` claude`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.printEnv != "" {
				return f.environment(cmd.OutOrStdout())
			}
			return f.serve(cmd, serveShutdown, func(ctx context.Context, url string) error {
				fmt.Fprintf(cmd.ErrOrStderr(), "furl serves %s\n  ANTHROPIC_BASE_URL=%s\n  OPENAI_BASE_URL=%s/v1\n", url, url, url)
				<-ctx.Done()
				return nil
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.printEnv, "print-env", "", "say what to set for this `agent` and end: "+strings.Join(agentNames(), ", "))
	complete(cmd, "print-env", agentNames)
	return cmd
}

func runCommand(p program) *cobra.Command {
	f := serveFlags{storeFlags: storeFlags{program: p}}
	cmd := &cobra.Command{
		Use:                   "run [flags] -- COMMAND ARGUMENTS…",
		DisableFlagsInUseLine: true,
		Short:                 "Run an agent through the gateway",
		Long: `Starts the gateway on a free port, runs the command with its base URLs set to
reach it, and ends with it, and with its exit code: 128 and its number if it was a
signal that ended it. Ctrl-C is the command's to answer.`,
		Example: `  furl run -- claude
  furl run -- codex exec "fix the failing test"
  furl run --policy auto:faithful -- python agent.py`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || cmd.ArgsLenAtDash() != 0 {
				return badUsage(`furl run takes a command after "--", such as furl run -- claude`)
			}
			if isGemini(args) {
				return errGemini
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.listen == "" {
				f.listen = "127.0.0.1:0"
			}
			f.running, f.usual = true, "warn"
			told := cmd.Context()
			cmd.SetContext(context.WithoutCancel(told)) // from here on runWith hears what the user says
			return f.serve(cmd, runShutdown, func(ctx context.Context, url string) error {
				if err := told.Err(); err != nil {
					return err
				}
				return runWith(ctx, cmd, agentArgs(args, url),
					"ANTHROPIC_BASE_URL="+url, "OPENAI_BASE_URL="+url+"/v1", "FURL_URL="+url)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().Lookup("listen").Usage = "`address` to listen on (default a free port)"
	cmd.Flags().Lookup("log").Usage = "`level` of the log: debug, info, warn, error (default what the configuration says, else warn)"
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return badUsage(`%w; furl run takes the command and its arguments after "--", such as furl run -- claude`, err)
	})
	return cmd
}

// settings are what a configuration and flags come to, and what is made of
// them.
type settings struct {
	store    storage.Store
	sessions *session.Sessions
	indexer  *recall.Indexer
	vectors  *recall.Vectors // nil: none are kept
	tenants  []byte          // keys the hash that keeps them apart; nil: they are one
	traces   *traces         // nil: none are sent
	listen   string
	log      *slog.Logger

	// What reload changes.
	reloading sync.Mutex
	config    *config.Config
	keys      gatewayKeys
	keyless   bool                        // it was started without client keys
	providers map[string]*upstream.Client // by address
	gateway   atomic.Pointer[gateway.Gateway]
	retention atomic.Pointer[session.Retention]
	level     slog.LevelVar
}

func (s *settings) close() error {
	for _, up := range s.providers {
		up.Close()
	}
	return errors.Join(s.traces.close(), s.store.Close())
}

// settings reads the configuration and opens what the gateway needs.
func (f *serveFlags) settings(cmd *cobra.Command) (*settings, error) {
	c, file, err := config.Load(f.config, f.program.policies)
	if err != nil {
		return nil, err
	}
	s := &settings{config: c, listen: cmp.Or(f.listen, c.Gateway.Listen, config.DefaultListen), providers: make(map[string]*upstream.Client)}
	s.log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: &s.level}))
	if c.Gateway.Tenants {
		if s.tenants, err = tenantSecret(); err != nil {
			return nil, err
		}
	}
	l, err := f.live(s, c, file)
	if err != nil {
		return nil, err
	}
	if s.traces, err = newTraces(cmd.Context(), c.Telemetry, s.log); err != nil {
		return nil, err
	}
	f.log = s.log
	if s.store, err = f.open(cmd.Context()); err != nil {
		return nil, errors.Join(err, s.traces.close())
	}
	l.options.Tracer = s.traces.tracer()
	if err := s.begin(l); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// begin makes what uses the store.
func (s *settings) begin(l *live) (err error) {
	s.indexer = recall.NewIndexer(s.store, &recall.IndexerOptions{Log: s.log})
	l.sessions.Indexer = s.indexer
	if s.vectors, err = vectorsOf(s.store, s.config); err != nil {
		return err
	}
	l.sessions.Vectors = s.vectors
	if s.sessions, err = session.New(s.store, l.sessions); err != nil {
		return err
	}
	g, err := gateway.New(s.sessions, l.up, &l.options)
	if err != nil {
		return err
	}
	s.gateway.Store(g)
	s.keys, s.keyless = l.keys(), len(l.options.ClientKeys) == 0
	s.retention.Store(&l.retention)
	s.level.Set(l.level)
	return nil
}

// finishFor is how long an answer is read on for the transcript after its
// client has gone.
const finishFor = 2 * time.Minute

// tenantSecretFile is where the key of the tenants' hashes is.
func tenantSecretFile() (string, error) {
	dir, err := config.DataDir()
	return filepath.Join(dir, "tenants.key"), err
}

// tenantSecret reads the key of the tenants' hashes, and makes it the first
// time. Without it no tenant finds its sessions again.
func tenantSecret() ([]byte, error) {
	name, err := tenantSecretFile()
	if err != nil {
		return nil, err
	}
	secret, err := readPrivate(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeTenantSecret(name); err != nil {
			return nil, fmt.Errorf("make the tenants' key: %w", err)
		}
		secret, err = readPrivate(name)
	}
	if err != nil {
		return nil, fmt.Errorf("the tenants' key: %w", err)
	}
	if len(secret) < 16 {
		return nil, fmt.Errorf("the tenants' key: %s holds no key: put back the one that the store was used with", name)
	}
	return secret, nil
}

// makeTenantSecret makes the file, whole or not at all, unless another process
// has made it.
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

// Limits of the server. Streams may take as long as they do; what has a limit
// is how long a client may take to say what it wants.
const (
	serveHeader  = 20 * time.Second
	serveIdle    = 5 * time.Minute
	serveMaxHead = 1 << 20
	serveStreams = 250 // requests at once on a connection of HTTP/2

	// What is under way when the gateway is told to end may take so long. A
	// second signal ends it at once. Under furl run the agent is gone, and nothing
	// waits for an answer.
	serveShutdown = 5 * time.Minute
	runShutdown   = 30 * time.Second
)

// serve runs the gateway until while returns or the user ends it, and then lets
// streams come to their end, for as long as shutdown.
func (f *serveFlags) serve(cmd *cobra.Command, shutdown time.Duration, while func(ctx context.Context, url string) error) (err error) {
	softLimit(gatewayMemory)
	hangups, done := f.hangups() // before a store is waited for: one would end the process
	defer done()
	s, err := f.settings(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	defer func() { s.gateway.Load().Close() }()
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", s.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen on %s: another program listens there, perhaps furl serve; --listen takes another address", s.listen)
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.listen, err)
	}
	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: serveHeader, IdleTimeout: serveIdle, MaxHeaderBytes: serveMaxHead,
		ErrorLog: log.New(libraries{s.log}, "", 0), Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: serveStreams},
	}
	// The HTTP client says there what it makes of a provider's bytes.
	was := log.Writer()
	log.SetOutput(libraries{s.log})
	defer log.SetOutput(was)
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	group, working := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		err := s.indexer.Run(working)
		if working.Err() != nil {
			return nil // it was ended
		}
		return err
	})
	if s.vectors != nil {
		group.Go(func() error {
			err := s.vectors.Run(working)
			if working.Err() != nil {
				return nil // it was ended
			}
			return err
		})
	}
	group.Go(func() error {
		token.O200k().Count("") // so that the first request finds the vocabulary ready
		return nil
	})
	group.Go(func() error { return s.expiry().run(working) })
	group.Go(func() error { return f.onHangup(working, s, hangups) })
	group.Go(func() error { return whenIdle(working, s.sessions) })
	group.Go(func() error { return s.gateway.Load().PlaceSummaries(working) })
	group.Go(func() error {
		err := while(working, reachedAt(ln.Addr().String()))
		s.gateway.Load().Drain()
		drain(srv, shutdown)
		cancel()
		return err
	})
	return group.Wait()
}

// libraries takes what libraries log, which may quote what came over the wire.
type libraries struct{ log *slog.Logger }

func (l libraries) Write(p []byte) (int, error) {
	l.log.Warn(upstream.Text(errors.New(strings.TrimSpace(string(p)))))
	return len(p), nil
}

// drain lets requests end that are under way, for a while.
func drain(srv *http.Server, shutdown time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), shutdown)
	defer cancel()
	if srv.Shutdown(ctx) != nil {
		_ = srv.Close() // what is left is cut off on purpose
	}
}

// environment says what to set for an agent.
func (f *serveFlags) environment(w io.Writer) error {
	c, _, err := config.Load(f.config, f.program.policies)
	if err != nil {
		return err
	}
	if f.printEnv == "gemini" {
		return errGemini
	}
	text, ok := agentSetup[f.printEnv]
	if !ok {
		return badUsage("--print-env %s: there are %s", f.printEnv, strings.Join(agentNames(), ", "))
	}
	url := reachedAt(cmp.Or(f.listen, c.Gateway.Listen, config.DefaultListen))
	_, err = io.WriteString(w, strings.ReplaceAll(text, "{url}", url))
	return err
}
