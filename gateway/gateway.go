// Package gateway is furl between an agent and its provider: an http.Handler
// that any agent reaches by changing one base URL.
//
// It is a guard and routes in front of a reverse proxy. Requests to models go
// through package furlhttp, which records and plans for them; other requests go
// to their provider as they are. Besides, the gateway serves furl's API.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"runtime/debug"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/furlhq/furl/internal/membudget"
	"github.com/furlhq/furl/internal/origin"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// Upstreams are the providers that requests go on to, by their formats.
type Upstreams struct {
	// Anthropic serves Messages, OpenAI Chat Completions and Responses. One
	// that is nil is not served.
	Anthropic, OpenAI *upstream.Client
}

// Options are the settings of a Gateway. The zero value is useful on a
// machine of one's own.
type Options struct {
	// ClientKeys are what clients must show, in X-Furl-Key or as their
	// provider's credential. If empty, everybody who can reach the gateway
	// may use it; see CheckListen.
	ClientKeys []string
	// TenantSecret keys the hash that names a tenant, so that the store holds no
	// key or credential. If empty, all users are one tenant. If set, requests
	// that do not identify a tenant are refused.
	TenantSecret []byte
	// TenantBy is the part of a request that identifies its tenant. If empty,
	// the client key if there are ClientKeys, else the credential. It needs a
	// TenantSecret.
	TenantBy TenantBy
	// OperatorKeys give access to what concerns all tenants: metrics, totals in
	// the status, reload. The operator sends one as clients send theirs. If
	// empty, HTTP access is denied. Without a TenantSecret every client
	// has.
	OperatorKeys []string
	// Finish is how long an answer is read on for its record after the client
	// has left. If zero, the provider's work is cancelled at once.
	Finish time.Duration
	// Stall is how long a client may take to accept a piece of an answer before
	// it counts as gone. If zero, 5 minutes.
	Stall time.Duration
	// Hosts are names under which furl's API may be addressed, besides
	// localhost and addresses.
	Hosts []string
	// Origins are the web pages and applications that may send requests from a
	// browser: an origin such as https://app.example, or all of a scheme that
	// is not http or https, such as vscode-webview://*. They may do what any
	// client on this machine may. If empty, pages of other sites are refused.
	Origins []string
	// MaxBody bounds a request's body in bytes, decoded. If zero, 64 MiB.
	MaxBody int64
	// BodyGrace is how long a request's body may take to come, beside a second
	// for every 16 KiB of it. If zero, 30 seconds.
	BodyGrace time.Duration
	// MemoryWait is how long a request waits while the requests under way use
	// all the memory there is for them, before it is answered with 503. If
	// zero, 30 seconds.
	MemoryWait time.Duration
	// MaxRequests bounds how many requests to models are under way at once;
	// more are answered with 503. If zero, 1024.
	MaxRequests int
	// DryRun makes every request a dry run: furl plans and says what it would
	// hide, records the conversation, and sends each request as it came.
	DryRun bool
	// Summaries says who writes summaries, for policies that show them.
	Summaries SummaryOptions
	// Recall adds recall tools to the requests of sessions that begin from now
	// on, and answers the model's calls of them.
	Recall bool
	// Reload reads the configuration anew and has it hold. If nil, there is
	// none.
	Reload func(ctx context.Context) (*Reloaded, error)
	// Tracer makes a span of each request to a model. If nil, tracing is off, and
	// what clients say of their traces goes on as it came.
	Tracer trace.Tracer
	// Version is furl's own, for metrics and for who asks.
	Version string
	// Logger is told what happened to each request, contents never. If nil,
	// nothing is logged.
	Logger *slog.Logger
	// Now is the clock. If nil, time.Now.
	Now func() time.Time
}

// Gateway is the handler. Make one with New.
type Gateway struct {
	sessions *session.Sessions
	up       Upstreams
	guard    *guard
	o        Options
	log      *slog.Logger
	mux      *http.ServeMux
	slots    chan struct{} // one per request under way
	proxy    *httputil.ReverseProxy
	*life

	summaries *summaries
}

// New gives a gateway that records in sessions. Both stay the caller's to
// close, the upstreams after the last request has ended and the gateway is
// closed.
func New(sessions *session.Sessions, up Upstreams, opts *Options) (*Gateway, error) {
	g := &Gateway{sessions: sessions, up: up, life: &life{drained: make(chan struct{})}}
	if opts != nil {
		g.o = *opts
	}
	if err := g.prepare(); err != nil {
		return nil, err
	}
	g.started = g.o.Now().UTC()
	g.bodies = membudget.New(max(maxBodies, 2*g.o.MaxBody), maxWaiting)
	g.decoded = membudget.New(maxDecoded, maxWaiting)
	g.summaries = newSummaries(g.o.Summaries)
	g.metrics = newMetrics(g)
	g.routes()
	return g, nil
}

// prepare fills in what is not set, and makes what follows from the options.
func (g *Gateway) prepare() error {
	if g.up.Anthropic == nil && g.up.OpenAI == nil {
		return errors.New("a gateway needs an upstream: with none for both providers there is nowhere to send requests")
	}
	for _, o := range g.o.Origins {
		if err := origin.Check(o); err != nil {
			return fmt.Errorf("invalid origin: %w", err)
		}
	}
	g.o.MaxBody = cmp.Or(g.o.MaxBody, 64<<20)
	g.o.BodyGrace = cmp.Or(g.o.BodyGrace, bodyGrace)
	g.o.Stall = cmp.Or(g.o.Stall, 5*time.Minute)
	g.o.MemoryWait = cmp.Or(g.o.MemoryWait, memoryWait)
	g.o.MaxRequests = cmp.Or(g.o.MaxRequests, 1024)
	if g.o.Now == nil {
		g.o.Now = time.Now
	}
	g.log = g.o.Logger
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	if err := g.o.tenancy(); err != nil {
		return err
	}
	g.guard = newGuard(&g.o)
	g.proxy = g.newProxy()
	g.slots = make(chan struct{}, g.o.MaxRequests)
	return nil
}

// Drain makes the gateway say that it is not ready, so that no new work is
// sent to it; what comes is still served. Streams of events end, which have no
// end of their own.
func (g *Gateway) Drain() {
	if !g.draining.Swap(true) {
		close(g.drained)
	}
}

// untilDrained gives a context that ends with ctx, or when the gateway drains.
// end must be called.
func (g *Gateway) untilDrained(ctx context.Context) (until context.Context, end func()) {
	until, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-g.drained:
			cancel()
		case <-until.Done():
		}
	})
	return until, func() { cancel(); waiting.Wait() }
}

// ServeHTTP serves the providers' API and furl's own.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer g.contain(r)
	if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
		// There may have been a length beside it, which the server does not
		// tell. A proxy in front may have gone by that, so what comes next on
		// the connection may not be a request (RFC 9112, 6.3).
		w.Header().Set("Connection", "close")
	}
	withDrain(w, r, func(w http.ResponseWriter, r *http.Request) { g.admitPage(w, r, g.serve) })
}

// serve serves a request that no foreign page has sent.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		g.refuse(w, g.destination(r).route, &protocol.Refusal{Status: http.StatusMethodNotAllowed, Message: "furl: CONNECT is not supported; set furl as the base URL"})
		return
	}
	if r, ok := straight(r); ok {
		g.mux.ServeHTTP(w, r)
		return
	}
	g.refuse(w, g.destination(r).route, &protocol.Refusal{Status: http.StatusBadRequest, Message: `furl: the path contains "." or ".." segments`})
}

// panicked notes a panic over something asked for at a path. Its value is left
// out: there may be anything in it.
func (g *Gateway) panicked(path string, p any) {
	g.metrics.panics.Inc()
	g.log.Error("furl panicked", "path", path, "panic", upstream.Panicked(p), "stack", string(debug.Stack()))
}

// contain is deferred around a whole request: the server would log what was
// panicked with. The client's connection is cut, as the server does.
func (g *Gateway) contain(r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p != http.ErrAbortHandler {
		g.panicked(upstream.Path(r.URL), p)
	}
	panic(http.ErrAbortHandler)
}

// containAfter is deferred around what runs when nobody is there any more whose
// connection could be cut.
func (g *Gateway) containAfter(path string) {
	if p := recover(); p != nil {
		g.panicked(path, p)
	}
}

// containSummary is deferred around the writing of a summary. If it
// panics, what is in memory may be half changed, and is dropped.
func (g *Gateway) containSummary(path string) {
	if p := recover(); p != nil {
		g.sessions.Drop()
		g.panicked(path, p)
	}
}
