package gateway

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/upstream"
)

// Status is what GET /furl/v1/status answers: how a running gateway is. It
// holds no credential and nothing of any session.
type Status struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	// Now is the gateway's clock.
	Now time.Time `json:"now"`
	// NotReady is "" if it takes work, else why not.
	NotReady string `json:"not_ready,omitempty"`
	DryRun   bool   `json:"dry_run"`
	// Anthropic and OpenAI are where requests go on to, "" for none.
	Anthropic string `json:"anthropic,omitempty"`
	OpenAI    string `json:"openai,omitempty"`
	// Keys says that clients must show one, Tenants that their sessions are
	// kept apart.
	Keys    bool `json:"keys"`
	Tenants bool `json:"tenants"`
	// Tenant is whose figures these are, by the name that the store has for it;
	// "" if they are those of all.
	Tenant furl.Tenant `json:"tenant,omitempty"`
	// UnderWay counts the requests to models that are being answered,
	// Sessions those open in memory.
	UnderWay int `json:"requests_under_way"`
	Sessions int `json:"sessions_in_memory"`
	// Totals are nil in the status of one tenant.
	*Totals
}

// Totals are counts that a gateway does not keep by tenant.
type Totals struct {
	// StoreErrors, Failed and Unrecorded count what went wrong since it was
	// started: failures of the store, requests that furl could not prepare,
	// answers that it could not record.
	StoreErrors int64 `json:"store_errors"`
	Failed      int64 `json:"exchanges_failed"`
	Unrecorded  int64 `json:"answers_unrecorded"`
	// UnknownWindows counts the models that were asked for and whose window
	// is unknown, so that nothing is hidden for want of room.
	UnknownWindows int `json:"unknown_windows"`
}

// status gives the figures of all to whoever may see them, and to others those
// of their tenant.
func (g *Gateway) status(r *http.Request) (any, error) {
	st := &Status{
		Version: g.o.Version, Started: g.started, Now: g.o.Now().UTC(), NotReady: g.notReady(r.Context()), DryRun: g.o.DryRun,
		Anthropic: addressOf(g.up.Anthropic), OpenAI: addressOf(g.up.OpenAI),
		Keys: len(g.o.ClientKeys) > 0, Tenants: len(g.o.TenantSecret) > 0,
	}
	if g.guard.operate(r) != nil {
		own, err := g.sessionsOf(r)
		if err != nil {
			return nil, err
		}
		st.Tenant = own.Tenant()
		st.UnderWay, st.Sessions = g.busy.of(st.Tenant), own.Stats().Own
		return st, nil
	}
	st.UnderWay = int(g.underWay.Load())
	stats := g.sessions.Stats()
	st.Sessions = stats.Sessions
	st.Totals = &Totals{
		StoreErrors: stats.StoreErrors, Failed: exchange.Of(g.sessions).Failures(), Unrecorded: g.metrics.unrecordedSoFar(),
		UnknownWindows: stats.UnknownWindows,
	}
	return st, nil
}

// busy counts the requests to models that are being answered, by tenant. It has
// no entry for a tenant without any.
type busy struct {
	mu       sync.Mutex
	requests map[furl.Tenant]int
}

// begin counts a request of a tenant until end is called.
func (b *busy) begin(tenant furl.Tenant) (end func()) {
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

func (b *busy) of(tenant furl.Tenant) int {
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

// echoes are streams by which a client finds out whether something on the way
// holds streams back: the first event carries a word, and only who has got it
// can send it back while the stream still waits.
type echoes struct {
	mu      sync.Mutex
	waiting map[string]chan struct{}
}

// Bounds of echoes.
const (
	maxEchoes = 16
	echoWait  = 3 * time.Second
)

// begin gives a new word; ok is false if too many wait.
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

// end forgets a word, and tells who waits for it that it was heard.
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

// echo is GET /furl/v1/echo: an event "word", and then "heard" as soon as
// somebody has sent that word to POST /furl/v1/echo/WORD, or "late" if nobody
// has for a while.
func (g *Gateway) echo(w http.ResponseWriter, r *http.Request) {
	word, heard, ok := g.echoes.begin()
	if !ok {
		apiError(w, http.StatusServiceUnavailable, "too many of these at once")
		return
	}
	defer g.echoes.end(word)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprintf(w, "event: word\ndata: %s\n\n", word)
	_ = http.NewResponseController(w).Flush() // what holds it back is what is looked for
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

// hear is POST /furl/v1/echo/WORD.
func (g *Gateway) hear(w http.ResponseWriter, r *http.Request) {
	if !g.echoes.end(r.PathValue("word")) {
		apiError(w, http.StatusNotFound, "no request waits for this word")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// ready says whether requests can be served.
func (g *Gateway) ready(w http.ResponseWriter, r *http.Request) {
	if why := g.notReady(r.Context()); why != "" {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// readyWait bounds how long the store may take to say that it is there: who asks
// waits a second or two, and a store that is slower is not ready.
const readyWait = 2 * time.Second

// notReady says why requests cannot be served, "" if they can.
func (g *Gateway) notReady(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	if g.draining.Load() {
		return "draining"
	}
	for _, err := range g.sessions.Store().Sessions(ctx, "", storage.SessionQuery{Limit: 1}) {
		if err != nil {
			return "the store cannot be read"
		}
	}
	if g.sessions.Stats().StoreRefuses {
		return "the store takes nothing: requests go on and are not recorded; the log says why"
	}
	return ""
}
