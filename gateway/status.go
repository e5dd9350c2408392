package gateway

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/upstream"
)

// Status is the response of GET /furl/v1/status. It contains no credentials and
// no content of sessions.
type Status struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	// Now is the gateway's clock.
	Now time.Time `json:"now"`
	// NotReady is why the gateway is not ready to serve, "" if it is ready.
	NotReady string `json:"not_ready,omitempty"`
	DryRun   bool   `json:"dry_run"`
	// Anthropic, OpenAI and ChatGPT are the upstream addresses, "" if not configured.
	Anthropic string `json:"anthropic,omitempty"`
	OpenAI    string `json:"openai,omitempty"`
	Gemini    string `json:"gemini,omitempty"`
	ChatGPT   string `json:"chatgpt,omitempty"`
	// CertificateExpires is when the gateway's certificate expires, zero if its
	// connections are not encrypted.
	CertificateExpires time.Time `json:"certificate_expires,omitzero"`
	// Keys reports whether client keys are required, Tenants whether sessions
	// are separated by tenant.
	Keys    bool `json:"keys"`
	Tenants bool `json:"tenants"`
	// Tenant is the tenant that the figures are for, by its name in the store;
	// "" for all tenants.
	Tenant furl.Tenant `json:"tenant,omitempty"`
	// UnderWay is the number of requests to models in flight, Sessions the
	// number of sessions in memory.
	UnderWay int `json:"requests_under_way"`
	Sessions int `json:"sessions_in_memory"`
	// Limits are those of the tenant, nil if it has none. BytesToday is what it has
	// used of its bytes per day.
	Limits     *access.Limits `json:"limits,omitempty"`
	BytesToday int64          `json:"bytes_today,omitempty"`
	// Spending is what the tenant has spent, nil without limits in dollars or tokens.
	// That of operators has the limits of all tenants.
	Spending *Spending `json:"spending,omitempty"`
	// Plans is what providers have said about the limits of accounts: of the tenant, or
	// for operators of all.
	Plans []PlanAccount `json:"plans,omitempty"`
	// Totals is nil in the status of one tenant.
	*Totals
}

// Totals are counts that are not kept by tenant.
type Totals struct {
	// StoreErrors, Failed and Unrecorded count failures since the gateway was
	// started: store errors, requests that furl could not prepare, and replies
	// that it could not record.
	StoreErrors int64 `json:"store_errors"`
	Failed      int64 `json:"exchanges_failed"`
	Unrecorded  int64 `json:"answers_unrecorded"`
	// UnknownWindows is the number of requested models with an unknown context
	// window. Their requests are not reduced to fit.
	UnknownWindows int `json:"unknown_windows"`
	// UnknownTypes is the number of requests with types of blocks and items that furl
	// does not know, by type. Their steps are never hidden.
	UnknownTypes map[string]int `json:"unknown_types,omitempty"`
	// AssumedModels is the number of requested models that the catalogue lacks and whose
	// rules are assumed from their family.
	AssumedModels int `json:"assumed_models"`
	// Shared has a fingerprint of each setting that must be equal on all gateways of a
	// store, by its name. Fingerprints can be compared with those of another gateway
	// for the same salt. nil without ?salt=.
	Shared map[string]string `json:"shared,omitempty"`
}

// status serves GET /furl/v1/status: the figures of all tenants to operators, and
// those of the own tenant to others.
func (g *Gateway) status(r *http.Request) (*Status, error) {
	st := &Status{
		Version: g.o.Version, Started: g.started, Now: g.o.Now().UTC(), NotReady: g.notReady(r.Context()), DryRun: g.o.DryRun,
		Anthropic: addressOf(g.up.Anthropic), OpenAI: addressOf(g.up.OpenAI), Gemini: addressOf(g.up.Gemini), ChatGPT: addressOf(g.up.ChatGPT),
		Keys: g.guard != nil && g.guard.Required(), Tenants: len(g.o.TenantSecret) > 0,
	}
	if g.o.Certificate != nil {
		st.CertificateExpires = g.o.Certificate().NotAfter.UTC()
	}
	if a := g.admissionOf(r); a != nil && !a.Operates() {
		own := g.sessionsOf(r)
		st.Tenant = own.Tenant()
		st.Limits, st.BytesToday = a.Usage()
		st.Spending = g.spendingOf(r.Context(), st.Tenant)
		st.Plans = g.plansOf(&st.Tenant)
		st.UnderWay, st.Sessions = g.inFlightByTenant.count(st.Tenant), own.Stats().Own
		return st, nil
	}
	if st.Spending = g.spendingOfAll(r.Context()); !st.Tenants && g.o.Limits != nil {
		st.Limits = &g.o.Limits.Default
	}
	st.Plans = g.plansOf(nil)
	st.UnderWay = int(g.inFlight.Load())
	stats := g.sessions.Stats()
	st.Sessions = stats.Sessions
	st.Totals = &Totals{
		StoreErrors: stats.StoreErrors, Failed: exchange.Of(g.sessions).Failures(), Unrecorded: g.metrics.unrecordedCount(),
		UnknownWindows: stats.UnknownWindows, UnknownTypes: stats.UnknownTypes, AssumedModels: stats.AssumedModels,
	}
	var err error
	st.Shared, err = g.o.fingerprints(r.URL.Query().Get("salt"))
	return st, err
}

// tenantCounts counts the requests to models in flight by tenant. It has no
// entries for tenants without requests.
type tenantCounts struct {
	mu       sync.Mutex
	requests map[furl.Tenant]int
}

// begin counts a request of a tenant until the returned end is called.
func (b *tenantCounts) begin(tenant furl.Tenant) (end func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.requests == nil {
		b.requests = make(map[furl.Tenant]int)
	}
	b.requests[tenant]++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.requests[tenant]--; b.requests[tenant] == 0 {
			delete(b.requests, tenant)
		}
	}
}

func (b *tenantCounts) count(tenant furl.Tenant) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.requests[tenant]
}

func addressOf(c *upstream.Client) string {
	if c == nil {
		return ""
	}
	return c.Address()
}

// echoes are the streams by which a client detects a proxy that buffers responses.
// The first event contains a random word. A client that receives it in time can
// send it back while the stream still waits.
type echoes struct {
	mu      sync.Mutex
	waiting map[string]chan struct{}
}

// Limits of echoes.
const (
	maxEchoes = 16
	echoWait  = 3 * time.Second
)

// begin returns a new word and a channel that end closes. ok is false if too many
// streams wait.
func (e *echoes) begin() (word string, heard <-chan struct{}, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) >= maxEchoes {
		return "", nil, false
	}
	if e.waiting == nil {
		e.waiting = make(map[string]chan struct{})
	}
	word = rand.Text()
	c := make(chan struct{})
	e.waiting[word] = c
	return word, c, true
}

// end removes a word and closes its channel. It returns false if the word is
// unknown.
func (e *echoes) end(word string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, ok := e.waiting[word]
	if ok {
		close(c)
		delete(e.waiting, word)
	}
	return ok
}

// echo serves GET /furl/v1/echo. It sends the event "word", and then "heard" as
// soon as that word arrives at POST /furl/v1/echo/WORD, or "late" after echoWait.
func (g *Gateway) echo(w http.ResponseWriter, r *http.Request) {
	word, heard, ok := g.echoes.begin()
	if !ok {
		apiError(w, http.StatusServiceUnavailable, "too many concurrent echo requests; try again later")
		return
	}
	defer g.echoes.end(word)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprintf(w, "event: word\ndata: %s\n\n", word)
	_ = http.NewResponseController(w).Flush() // a failure means that the response is buffered
	wait := time.NewTimer(echoWait)
	defer wait.Stop()
	select {
	case <-heard:
		fmt.Fprint(w, "event: heard\ndata: {}\n\n")
	case <-wait.C:
		fmt.Fprint(w, "event: late\ndata: {}\n\n")
	case <-r.Context().Done():
	}
}

// echoReceived serves POST /furl/v1/echo/WORD.
func (g *Gateway) echoReceived(w http.ResponseWriter, r *http.Request) {
	if !g.echoes.end(r.PathValue("word")) {
		apiError(w, http.StatusNotFound, "unknown or expired word")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// ready serves GET /readyz.
func (g *Gateway) ready(w http.ResponseWriter, r *http.Request) {
	if why := g.notReady(r.Context()); why != "" {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// notReady returns why the gateway is not ready to serve, "" if it is ready.
func (g *Gateway) notReady(ctx context.Context) string {
	if g.draining.Load() {
		return "draining"
	}
	if g.reach.store(ctx, g.sessions.Store()) != nil {
		return "the store cannot be read"
	}
	if g.sessions.Stats().StoreRefuses {
		return "the store cannot be written: requests are served and not recorded; see the log"
	}
	return ""
}
