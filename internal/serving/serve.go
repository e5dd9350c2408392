// Package serving runs a gateway as its configuration says: store, keys, certificates, providers,
// traces, retention, and what a reload changes.
package serving

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

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/audit"
	"github.com/furlhq/furl/internal/certs"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/launch"
	"github.com/furlhq/furl/internal/membudget"
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
	"golang.org/x/sync/errgroup"
)

// Gateway say what a gateway does. Where they are empty, the configuration does.
type Gateway struct {
	workspace.Workspace
	Listen, Policy, Window, Level string
	Anthropic, Openai, ChatGPT    string
	Gemini                        string
	DryRun, Recall, NoPage        bool
	Playback                      bool
	Running                       bool   // furl run
	Only                          bool   // furl ui: the page over an existing store, and no provider
	Usual                         string // default log level; "": info
	Command                       string // that runs it, for errors
	LogTo                         io.Writer
	Finished                      func(*Running)                  // called when all requests have ended; nil: nothing
	Handler                       func(http.Handler) http.Handler // wraps the gateway; nil: nothing
	tokens                        *oidc.Verifier                  // of the last configuration; nil: none
}

// Running are those of a running gateway, and the objects made from them.
type Running struct {
	store    storage.Store
	Sessions *session.Sessions
	indexer  *recall.Indexer // nil: furl ui
	vectors  *recall.Vectors // nil: no embeddings
	Tenants  []byte          // key of the hash that identifies tenants; nil: a single tenant
	master   string          // master keys of the store's encryption; "": none
	page     *web.Page
	traces   *traces       // nil: tracing is off
	tls      *certs.Server // nil: connections are not encrypted
	Received atomic.Int64  // requests, without those to furl's API
	listen   string
	audit    *audit.Log // nil: accesses are not written down
	models   *modelsapi.Book
	log      *slog.Logger

	// Changed by reload.
	reloading sync.Mutex
	Config    *config.Config
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

func (s *Running) close() error {
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
func (f *Gateway) settings(ctx context.Context) (*Running, error) {
	c, file, err := config.Load(f.Config, f.Policies)
	if err != nil {
		return nil, err
	}
	s := &Running{Config: c, listen: cmp.Or(f.Listen, c.Gateway.Listen, config.DefaultListen), providers: make(map[string]*upstream.Client)}
	s.log = slog.New(slog.NewTextHandler(f.LogTo, &slog.HandlerOptions{Level: &s.level}))
	if c.Gateway.Tenants {
		if s.Tenants, err = TenantSecret(); err != nil {
			return nil, err
		}
	}
	if s.master, err = workspace.MasterText(c, file); err != nil {
		return nil, err
	}
	if err := f.useTLS(s, c, file); err != nil {
		return nil, err
	}
	if s.audit, err = workspace.OpenAudit(c, file); err != nil {
		return nil, err
	}
	s.models = modelsapi.Open(workspace.ModelsFile(), s.log, nil)
	s.page = web.New(&web.Options{Version: workspace.Version(), Logger: s.log})
	l, err := f.live(s, c, file)
	if err != nil {
		return nil, err
	}
	if s.traces, err = newTraces(ctx, c.Telemetry, s.log); err != nil {
		return nil, err
	}
	f.Log = s.log
	open := f.Open
	if f.Only {
		open = f.Existing
	}
	if s.store, err = open(ctx); err != nil {
		return nil, errors.Join(err, s.traces.close())
	}
	l.options.Tracer = s.traces.tracer()
	if !f.Only { // else each search reads what is not indexed yet
		s.indexer = recall.NewIndexer(s.store, &recall.IndexerOptions{Log: s.log})
	}
	if err := s.useStore(l); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// useStore creates the objects that use the store.
func (s *Running) useStore(l *live) (err error) {
	l.sessions.Indexer = s.indexer
	l.sessions.Reported = s.reported
	s.useProviders(l)
	if s.vectors, err = workspace.VectorsOf(s.store, s.Config); err != nil {
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

// TenantSecretName is the file, in furl's data folder, of the key for the tenants' hashes.
const TenantSecretName = "tenants.key"

// TenantSecretFile is the path of the key for the tenants' hashes.
func TenantSecretFile() (string, error) {
	dir, err := config.DataDir()
	return filepath.Join(dir, TenantSecretName), err
}

// TenantSecret reads the key for the tenants' hashes, or creates it the first time.
// Without the same key, tenants lose access to their sessions.
func TenantSecret() ([]byte, error) {
	name, err := TenantSecretFile()
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
	HeaderTimeout = 20 * time.Second
	IdleTimeout   = 5 * time.Minute
	MaxHeader     = 1 << 20
	serveStreams  = 250 // concurrent requests on an HTTP/2 connection

	// Time for requests in progress when the gateway stops. A second signal ends
	// them at once. Under furl run the agent has exited and waits for no response.
	ServeShutdown = 5 * time.Minute
	// PageShutdown is that of furl ui.
	PageShutdown = 3 * time.Second
	RunShutdown  = 30 * time.Second
)

// Serve runs the gateway until while returns or the user stops it. Requests in
// progress then have the shutdown time to end.
func (f *Gateway) Serve(ctx context.Context, shutdown time.Duration, while func(ctx context.Context, s *Running, url string) error) (err error) {
	membudget.SoftLimit(membudget.GatewayMemory)
	hangups, done := f.hangups() // before waiting for the store: a SIGHUP would end the process
	defer done()
	s, err := f.settings(ctx)
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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", s.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen on %s: the address is in use, perhaps by another %s; choose another one with --listen", s.listen, f.Command)
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.listen, err)
	}
	var handler http.Handler = s
	if f.Handler != nil {
		handler = f.Handler(s)
	}
	srv := &http.Server{
		Handler: handler, ReadHeaderTimeout: HeaderTimeout, IdleTimeout: IdleTimeout, MaxHeaderBytes: MaxHeader,
		ErrorLog: LibraryLog(s.log), Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: serveStreams},
	}
	// The HTTP client logs there and may quote data of providers.
	was := log.Writer()
	log.SetOutput(libraries{s.log})
	defer log.SetOutput(was)
	srv.Protocols.SetHTTP1(true)
	listen, url := srv.Serve, launch.ReachedAt(ln.Addr().String())
	if s.tls != nil {
		srv.Protocols.SetHTTP2(true)
		srv.TLSConfig, srv.Handler = s.tls.Config(), s.tls.Handler(srv.Handler)
		listen = func(ln net.Listener) error { return srv.ServeTLS(ln, "", "") }
		url = launch.GatewayAt(ln.Addr().String(), s.Config)
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
	if !f.Only {
		s.goMaintain(working, group)
	}
	if s.tls != nil {
		group.Go(func() error { return s.tls.Run(working, s.log) })
	}
	group.Go(func() error { return f.onHangup(working, s, hangups) })
	group.Go(func() error { return WhenIdle(working, s.Sessions) })
	group.Go(func() error {
		err := while(working, s, url)
		s.gateway.Load().Drain()
		if !f.Running {
			s.awaitBalancer()
		}
		Drain(srv, shutdown)
		cancel()
		return err
	})
	return group.Wait()
}

// goMaintain starts what a gateway does in addition to requests, until ctx ends: it keeps the
// indexes up to date, deletes expired sessions, records summaries, and keeps
// prompt caches alive.
func (s *Running) goMaintain(working context.Context, group *errgroup.Group) {
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

// LibraryLog returns a log for messages of libraries, without data that they quote.
func LibraryLog(l *slog.Logger) *log.Logger { return log.New(libraries{l}, "", 0) }

// libraries logs messages of libraries without quoted data.
type libraries struct{ log *slog.Logger }

func (l libraries) Write(p []byte) (int, error) {
	l.log.Warn(upstream.Text(errors.New(strings.TrimSpace(string(p)))))
	return len(p), nil
}

// awaitBalancer waits for gateway.drain_delay after /readyz has begun to report that the
// gateway is not ready. Until a load balancer has noticed, it still sends requests.
func (s *Running) awaitBalancer() {
	s.reloading.Lock()
	delay := s.Config.Gateway.DrainDelay
	s.reloading.Unlock()
	if delay <= 0 {
		return
	}
	s.log.Info("draining: requests are accepted until the load balancer has noticed", "drain_delay", delay)
	<-time.After(delay)
}

// Drain waits for requests in progress, up to a time.
func Drain(srv *http.Server, shutdown time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), shutdown)
	defer cancel()
	if srv.Shutdown(ctx) != nil {
		_ = srv.Close() // cuts off the remaining requests
	}
}
