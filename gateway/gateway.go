// Package gateway is an HTTP gateway between an agent and its provider: an
// http.Handler that any agent can use by changing its base URL.
//
// It authorizes and routes requests. Requests to models go through package
// internal/exchange, which records them and reduces their context. Other requests are
// forwarded unchanged by a reverse proxy. The gateway also serves furl's
// API under /furl/v1.
package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/admission"
	"github.com/furlhq/furl/internal/membudget"
	"github.com/furlhq/furl/internal/origin"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// Upstreams are the providers that requests are forwarded to.
type Upstreams struct {
	// Anthropic serves the Messages API, OpenAI the Chat Completions and
	// Responses APIs. The APIs of a nil upstream are refused.
	Anthropic, OpenAI *upstream.Client
	// Gemini serves Google's generateContent, of the Gemini API or of Vertex AI.
	Gemini *upstream.Client
	// ChatGPT serves the Responses API to people who signed in with ChatGPT. It gets
	// the requests with the header chatgpt-account-id, and OpenAI the others.
	ChatGPT *upstream.Client
}

// headerChatGPT is the header with the account of a login with ChatGPT. Codex sends it.
const headerChatGPT = "Chatgpt-Account-Id"

// openAI returns the upstream for a request with these headers to OpenAI's APIs, and
// the refusal if there is none.
func (up *Upstreams) openAI(h http.Header) (*upstream.Client, *protocol.Refusal) {
	switch {
	case h.Get(headerChatGPT) != "" && up.ChatGPT != nil:
		return up.ChatGPT, nil
	case h.Get(headerChatGPT) != "":
		return nil, noChatGPT
	case up.OpenAI != nil:
		return up.OpenAI, nil
	}
	return nil, noUpstream("OpenAI", "openai")
}

// cure says how to send a credential that an upstream does not accept to the provider
// that it is for, "" if another address would not help.
func (up *Upstreams) cure(refusing *upstream.Client) string {
	key := ""
	switch refusing {
	case up.Anthropic:
		key = "anthropic"
	case up.OpenAI:
		key = "openai"
	case up.Gemini:
		key = "gemini"
	default:
		return ""
	}
	return "; if it is for another provider, set the base URL of that provider with --" + key + " or gateway." + key
}

var noChatGPT = &protocol.Refusal{
	Status:  http.StatusNotFound,
	Message: "furl: no provider for logins with ChatGPT is configured, and the request was not sent: set gateway.chatgpt or --chatgpt, or sign in with an API key",
}

// Options are the settings of a Gateway. The zero value suits a gateway for one
// user on the loopback interface.
type Options struct {
	// ClientKeys are the keys of which a client must send one, in X-Furl-Key or
	// as its provider credential. If empty, anybody who can reach the gateway may
	// use it; see CheckListen.
	ClientKeys []string
	// Keys are named keys of clients, with scopes and an expiry. If not nil, clients
	// must identify themselves, also if it has none.
	Keys *Keys
	// Tokens verifies tokens that identify clients. If nil, there are none.
	Tokens TokenVerifier
	// Proxy is a proxy that identifies its users. If nil, there is none.
	Proxy *TrustedProxy
	// ClientIdentity is the part of a client's certificate that names the client, such
	// as IdentitySubject. If empty, certificates identify nobody.
	ClientIdentity string
	// ClientCertRequired reports that the listener requires a client certificate.
	ClientCertRequired bool
	// Limits are what each tenant may use. If nil, there are none.
	Limits *LimitSet
	// Audit records accesses. If nil, they are not recorded.
	Audit AuditLog
	// AuditRequired refuses requests whose access cannot be recorded.
	AuditRequired bool
	// TenantSecret keys the hash that names a tenant, so that the store holds no
	// key or credential. If empty, all users are one tenant. If set, requests
	// that do not identify a tenant are refused.
	TenantSecret []byte
	// TenantBy is the part of a request that identifies its tenant. If empty,
	// defaults to the client key if ClientKeys is set, else to the credential. It
	// requires a TenantSecret.
	TenantBy TenantBy
	// OperatorKeys are the keys for operations that concern all tenants: metrics,
	// totals in the status, reload. They are sent like client keys. If empty,
	// these operations are denied with a TenantSecret, and open to every client
	// without one.
	OperatorKeys []string
	// Finish is how long furl keeps reading a response, to record it, after the
	// client has disconnected. If zero, the provider's request is cancelled at
	// once.
	Finish time.Duration
	// Stall is how long a client may take to accept a write of a response before
	// it is disconnected. If zero, defaults to 5 minutes.
	Stall time.Duration
	// Hosts are the host names under which furl's API may be addressed, in
	// addition to localhost and IP addresses.
	Hosts []string
	// Origins are the origins of web pages and applications that may send
	// requests from a browser: an origin such as https://app.example, or all of a
	// scheme other than http and https, such as vscode-webview://*. They get the
	// same access as a local client. If empty, pages of other sites are refused.
	Origins []string
	// MaxBody is the largest request body in bytes, decoded. If zero, defaults to
	// 64 MiB.
	MaxBody int64
	// BodyGrace is how long a request body may take to arrive, plus a second for
	// every 16 KiB. If zero, defaults to 30 seconds.
	BodyGrace time.Duration
	// MemoryWait is how long a request waits for memory while other requests use
	// all of it, before it is refused with status 503. If zero, defaults to 30
	// seconds.
	MemoryWait time.Duration
	// MaxRequests is the largest number of concurrent requests to models; more
	// are refused with status 503. If zero, defaults to 1024.
	MaxRequests int
	// PassThreads sends on requests with a message thread of Anthropic; see
	// furlhttp.Options.
	PassThreads bool
	// HoldBilling sends a session's first billing line to providers other than
	// Anthropic; see furlhttp.Options.
	HoldBilling bool
	// DryRun makes every request a dry run: furl plans and reports what it would
	// hide, records the conversation, and sends each request unchanged.
	DryRun bool
	// Summaries configures the writing of summaries, for policies that use them.
	Summaries SummaryOptions
	// Recall adds recall tools to the requests of new sessions, and answers the
	// model's calls of them.
	Recall bool
	// KeepAlive is how many pings keep the prompt cache of a session alive in a
	// pause, as long as they can be expected to pay; see Gateway.KeepAlive. Pings
	// are sent with the credential of the session's last request. With a
	// TenantSecret, only requests with the header X-Furl-Keep-Alive: true are kept
	// alive. If zero, none.
	KeepAlive int
	// HourCache says when requests ask the provider for cache entries of one hour for
	// the client's instructions and tools. They cost more to write, which the request's
	// credential pays for. With a TenantSecret, only requests with the header
	// X-Furl-Cache-1h: true ask for them.
	HourCache protocol.HourCache
	// Models asks providers about the models of requests. If nil, they are not asked.
	Models ModelsAPI
	// Page is the web page at the root and under /furl/. If nil, there is none, and
	// GET / responds to browsers with a text.
	Page Page
	// Reload reads the configuration again and applies it. If nil, reloading is
	// not supported.
	Reload func(ctx context.Context) (*Reloaded, error)
	// Shared are the settings that must be equal on all gateways of a store, by name:
	// keys, and what the policy depends on. The status has their fingerprints.
	Shared map[string]string
	// Certificate returns the certificate of the gateway's listener, for metrics and
	// the status. If nil, its connections are not encrypted.
	Certificate func() *x509.Certificate
	// Tracer starts a span for each request to a model. If nil, tracing is off
	// and trace headers are passed through.
	Tracer trace.Tracer
	// Version is furl's version, for metrics and the status.
	Version string
	// Logger logs each request, never its contents. If nil, nothing is logged.
	Logger *slog.Logger
	// Now is the clock, called by several goroutines at once. If nil, time.Now.
	Now func() time.Time
}

// ModelsAPI asks providers about models, with the client's own credential.
type ModelsAPI interface {
	// Ask asks a provider about a model in the background, if that is due. header is
	// that of a request for the model, as it was sent to the provider, which has
	// accepted it.
	Ask(up *upstream.Client, format furl.Format, model string, header http.Header)
}

// Gateway is an http.Handler. Use New to create one.
type Gateway struct {
	sessions *session.Sessions
	up       Upstreams
	guard    *admission.Guard // nil: nothing is configured that is about clients
	o        Options
	log      *slog.Logger
	mux      *http.ServeMux
	slots    chan struct{} // one per request in flight
	proxy    *httputil.ReverseProxy
	*sharedState

	summaries *summaries
	keeper    *keeper
}

// ErrNoUpstream is the error of New without an upstream and without a page.
var ErrNoUpstream = errors.New("no upstream configured: set gateway.anthropic, gateway.openai, gateway.gemini or gateway.chatgpt")

// New returns a Gateway that records in sessions. Without upstreams, it serves only
// Options.Page and furl's API. The caller closes sessions and
// upstreams after the last request has ended and the gateway is closed.
func New(sessions *session.Sessions, up Upstreams, opts *Options) (*Gateway, error) {
	g := &Gateway{sessions: sessions, up: up, sharedState: &sharedState{drained: make(chan struct{})}}
	if opts != nil {
		g.o = *opts
	}
	if err := g.init(); err != nil {
		return nil, err
	}
	g.started = g.o.Now().UTC()
	_, _ = rand.Read(g.accountSecret[:]) // never fails
	// The largest body needs its size three times: as received, without zstd, and for the
	// decoder's window.
	g.bodyMemory = membudget.New(max(maxBodies, 3*g.o.MaxBody), maxWaiting)
	g.decodedMemory = membudget.New(maxDecoded, maxWaiting)
	g.summaries = newSummaries(g.o.Summaries)
	g.keeper = newKeeper()
	g.metrics = newMetrics(g)
	g.routes()
	return g, nil
}

// init validates the options, sets defaults, and initializes the fields that
// depend on them.
func (g *Gateway) init() error {
	if g.up == (Upstreams{}) && g.o.Page == nil {
		return ErrNoUpstream
	}
	g.o.Hosts, g.o.Origins = slices.Clone(g.o.Hosts), slices.Clone(g.o.Origins)
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
	var err error
	if g.guard, err = g.newGuard(); err != nil {
		return err
	}
	if g.guard != nil {
		g.o.TenantBy = g.guard.TenantBy() // with its default
	}
	g.proxy = g.newProxy()
	g.slots = make(chan struct{}, g.o.MaxRequests)
	return nil
}

// Drain makes /readyz report that the gateway is not ready, so that a load
// balancer sends it no new requests. Requests that arrive are still served. Event
// streams end, because nothing else would end them.
func (g *Gateway) Drain() {
	if !g.draining.Swap(true) {
		close(g.drained)
	}
}

// untilDrained returns a context that is canceled with ctx or by Drain. The caller
// must call end.
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

// ServeHTTP serves the providers' APIs and furl's API.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer g.recoverRequest(r)
	if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
		// The request may also have had a Content-Length, which net/http does
		// not report. A proxy in front may have used that, so the next bytes on
		// the connection may not be a request (RFC 9112, section 6.3).
		w.Header().Set("Connection", "close")
	}
	serveAndDrain(w, r, func(w http.ResponseWriter, r *http.Request) {
		if g.forPage(r) { // it has rules of its own for pages of other sites
			g.serve(w, r)
			return
		}
		g.admitPage(w, r, g.serve)
	})
}

// serve serves a request after the check of its origin.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		g.refuse(w, g.destination(r).route, &protocol.Refusal{Status: http.StatusMethodNotAllowed, Message: "furl: CONNECT is not supported; set furl as the base URL"})
		return
	}
	if r, ok := cleanPath(r); ok {
		g.mux.ServeHTTP(w, r)
		return
	}
	g.refuse(w, g.destination(r).route, &protocol.Refusal{Status: http.StatusBadRequest, Message: `furl: the path contains "." or ".." segments`})
}

// logPanic logs and counts a panic that a request to path caused. The panic's
// value is not logged, because it may contain message content.
func (g *Gateway) logPanic(path string, p any) {
	g.metrics.panics.Inc()
	g.log.Error("furl panicked", "path", path, "panic", upstream.Panicked(p), "stack", string(debug.Stack()))
}

// logPanicError logs and counts an error if it is a panic.
func (g *Gateway) logPanicError(path string, err error) {
	if p, ok := errors.AsType[*session.PanicError](err); ok {
		g.metrics.panics.Inc()
		g.log.Error("furl panicked", "path", path, "panic", p.Text, "stack", string(p.Stack))
	}
}

// recoverRequest is deferred around a request. It recovers panics, because the
// server would log their values. It closes the client's connection, as the
// server does.
func (g *Gateway) recoverRequest(r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p != http.ErrAbortHandler {
		g.logPanic(upstream.Path(r.URL), p)
	}
	panic(http.ErrAbortHandler)
}

// recoverAfter is deferred around work that runs after the response.
func (g *Gateway) recoverAfter(path string) {
	if p := recover(); p != nil {
		g.logPanic(path, p)
	}
}

// recoverSummary is deferred around the writing of a summary. A panic may leave
// sessions in memory half changed, so they are dropped.
func (g *Gateway) recoverSummary(path string) {
	if p := recover(); p != nil {
		g.sessions.Drop()
		g.logPanic(path, p)
	}
}
