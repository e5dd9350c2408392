package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/internal/keepalive"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// With Options.KeepAlive, the gateway keeps the prompt cache of a session alive while
// the session pauses: shortly before the cache expires it sends the last request
// again, changed to generate nothing (wire.API.CacheOnly). That spends the user's
// tokens with the user's credential, so the last request is held in memory, and only
// while pings can follow. docs/operate/security.md says when it is released.

// headerKeepAlive, set to false, excludes a request from keep-alive, headerHourCache
// from cache entries of one hour. With tenants, requests must set them to true: a
// tenant's tokens are not the operator's to spend.
const (
	headerKeepAlive = "X-Furl-Keep-Alive"
	headerHourCache = "X-Furl-Cache-1h"
)

// Limits of the held requests, and of pings.
const (
	maxPaused      = 256
	maxPausedBytes = 64 << 20
	maxPings       = 4 // concurrent ones
	pingTimeout    = time.Minute
	maxPingReply   = 1 << 20
	maxRefused     = 4096
)

// pausedSession is a session that waits for its client, and the request that pings
// send.
type pausedSession struct {
	key    furl.SessionKey
	rt     *route
	url    *url.URL
	header http.Header
	body   []byte
	name   string // the model's in requests
	model  furl.Model
	tokens int       // the size of the prompt
	kept   int       // how much of it has entries of one hour
	start  time.Time // of the client's request
	used   time.Time // when the cache entries were last used
	sent   int       // pings
	most   int
	busy   bool // a ping is in flight
}

// due returns when the next ping is sent.
func (p *pausedSession) due() time.Time { return p.used.Add(keepalive.Interval(&p.model)) }

// expects reports whether the next ping pays and is allowed.
func (p *pausedSession) expects() bool {
	return p.sent < p.most && keepalive.Pays(&p.model, p.tokens, p.kept, p.due().Sub(p.start), p.due())
}

// keeper holds the paused sessions.
type keeper struct {
	work sync.WaitGroup // pings in flight
	wake chan struct{}

	mu       sync.Mutex
	running  bool // requests are held only while KeepAlive runs
	paused   map[furl.SessionKey]*pausedSession
	bytes    int
	inFlight map[furl.SessionKey]int // requests of clients
	pings    int                     // in flight
	refused  map[furl.SessionKey]struct{}

	sent, failed atomic.Int64
}

func newKeeper() *keeper {
	return &keeper{
		wake: make(chan struct{}, 1), paused: make(map[furl.SessionKey]*pausedSession),
		inFlight: make(map[furl.SessionKey]int), refused: make(map[furl.SessionKey]struct{}),
	}
}

// begin ends the pause of a session: its client has sent a request.
func (k *keeper) begin(key furl.SessionKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.inFlight[key]++
	k.drop(k.paused[key])
}

// end ends a request of a client. If it was the last one of its session, the session
// pauses with p, if that is not nil.
func (k *keeper) end(key furl.SessionKey, p *pausedSession) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.inFlight[key]--; k.inFlight[key] > 0 {
		return
	}
	delete(k.inFlight, key)
	if _, refused := k.refused[key]; p == nil || p.key != key || !k.running || refused || len(p.body) > maxPausedBytes {
		return
	}
	for len(k.paused) >= maxPaused || k.bytes+len(p.body) > maxPausedBytes {
		k.drop(k.oldest())
	}
	k.paused[key] = p
	k.bytes += len(p.body)
	k.notify()
}

// oldest returns the session that has paused for the longest time. k is locked.
func (k *keeper) oldest() (out *pausedSession) {
	for _, p := range k.paused {
		if out == nil || p.start.Before(out.start) {
			out = p
		}
	}
	return out
}

// drop releases the request of a paused session. k is locked, p may be nil.
func (k *keeper) drop(p *pausedSession) {
	if p == nil || k.paused[p.key] != p {
		return
	}
	delete(k.paused, p.key)
	k.bytes -= len(p.body)
	if !p.busy { // else the ping in flight releases it
		p.release()
	}
}

// release releases what belongs to the client.
func (p *pausedSession) release() { p.url, p.header, p.body = nil, nil, nil }

// dropAll releases all held requests.
func (k *keeper) dropAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.paused {
		k.drop(p)
	}
}

// run sets whether requests are held.
func (k *keeper) run(on bool) {
	k.mu.Lock()
	k.running = on
	k.mu.Unlock()
	if !on {
		k.dropAll()
	}
}

func (k *keeper) notify() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// held returns the number of held requests.
func (k *keeper) held() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.paused)
}

// KeepAlive sends the pings of Options.KeepAlive until ctx ends or the gateway drains.
// It returns when the last ping has ended and no request is held any more. Without it,
// no request is held.
func (g *Gateway) KeepAlive(ctx context.Context) error {
	k := g.keeper
	k.run(true)
	defer k.work.Wait()
	defer k.run(false)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-g.drained:
			return nil
		case <-k.wake:
		case <-timer.C:
		}
		timer.Reset(g.sendDuePings(ctx))
	}
}

// sendDuePings starts the pings that are due. It returns the time until the next one.
func (g *Gateway) sendDuePings(ctx context.Context) time.Duration {
	k, now := g.keeper, g.wallClock()
	k.mu.Lock()
	defer k.mu.Unlock()
	next := time.Hour
	for _, p := range k.paused {
		wait := p.due().Sub(now)
		idle := now.Sub(p.used)
		switch {
		case p.busy:
		case idle < 0 || idle >= p.model.Caching.Lifetime:
			// The machine has slept, or the clock was set. The cache has expired,
			// so a ping would write it.
			k.drop(p)
		case wait > 0:
			next = min(next, wait)
		case k.pings < maxPings:
			k.pings++
			p.busy = true
			k.work.Go(func() { g.ping(ctx, p) })
		}
	}
	return next
}

// wallClock returns the time without the monotonic clock, which stops while a machine
// sleeps.
func (g *Gateway) wallClock() time.Time { return g.o.Now().Round(0) }

// ping sends one ping and decides whether another one follows.
func (g *Gateway) ping(ctx context.Context, p *pausedSession) {
	k, at := g.keeper, g.wallClock()
	var result pingResult
	defer func() { k.pinged(p, at, result) }()
	defer g.recoverAfter(p.rt.codec.RequestPath("", false))
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	s, err := g.sessions.For(p.key.Tenant).Open(ctx, p.key.Session)
	if err != nil {
		return // the session was deleted, or the store cannot record the cost
	}
	if continuedElsewhere(s, p.start) {
		return // the gateway of the latest request sends the pings
	}
	if len(s.Info().Redactions) > 0 {
		return // the request may have what was redacted
	}
	if g.checkSpendingOf(ctx, s) != nil {
		return
	}
	k.sent.Add(1)
	usage, err := p.send(ctx)
	g.recordPing(ctx, s, p, at, usage)
	g.noteSpending(s)
	attrs := []any{"session", p.key.Session, "model", p.name, "read", usage.CacheRead, "written", usage.CacheWrite + usage.CacheWrite1h, "took", g.wallClock().Sub(at)}
	if err != nil {
		if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return // the gateway is closing
		}
		k.failed.Add(1)
		if refusal, ok := errors.AsType[*pingRefusedError](err); ok && refusal.status < 500 && refusal.status != http.StatusTooManyRequests {
			result = pingRefused
		}
		g.log.Warn("keep-alive failed", append(attrs, "error", upstream.Text(err))...)
		return
	}
	if usage.CacheRead > 0 {
		result = pingRenewed
	} // else the cache was lost before, so pings are of no use
	g.log.Info("kept the prompt cache alive", append(attrs, "ping", p.sent+1)...)
}

// continuedElsewhere reports whether another gateway has recorded a request of the
// session that was sent later. One of this gateway would have ended the pause.
func continuedElsewhere(s *session.Session, since time.Time) bool {
	for _, r := range slices.Backward(s.Records(0)) {
		if _, ok := r.Body.(*furl.Exchange); ok {
			return r.At.After(since)
		}
	}
	return false
}

// pingResult is what follows from a ping.
type pingResult int

const (
	pingFailed  pingResult = iota // no further pings in this pause
	pingRefused                   // no further pings for this session
	pingRenewed                   // the entries were renewed
)

// pinged ends a ping. The request is held on if another ping can follow.
func (k *keeper) pinged(p *pausedSession, at time.Time, result pingResult) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pings--
	p.busy = false
	p.sent++
	switch result {
	case pingRefused:
		if len(k.refused) >= maxRefused {
			clear(k.refused)
		}
		k.refused[p.key] = struct{}{}
	case pingRenewed:
		p.used = at
	}
	switch {
	case k.paused[p.key] != p: // dropped meanwhile
		p.release()
	case result != pingRenewed || !p.expects():
		k.drop(p)
	}
	k.notify()
}

// recordPing adds a ping to the session's ledger and to the metrics.
func (g *Gateway) recordPing(ctx context.Context, s *session.Session, p *pausedSession, at time.Time, usage furl.Usage) {
	if usage == (furl.Usage{}) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxRecording) // it is paid for
	defer cancel()
	cost, err := s.RecordPing(ctx, session.Ping{Model: p.name, Of: &p.model, At: at, Usage: usage})
	g.metrics.spent.WithLabelValues("keep_alive").Add(max(0, cost))
	if err != nil {
		g.log.Warn("cost of keep-alive could not be recorded", "session", p.key.Session, "error", upstream.Text(err))
	}
}

// pingRefusedError is the error of a ping that the provider has refused. It does not
// have the provider's message, which may repeat the client's content.
type pingRefusedError struct {
	status int
	typ    string
}

func (e *pingRefusedError) Error() string {
	return fmt.Sprintf("provider refused the request: status %d, %s", e.status, e.typ)
}

// send sends a ping and returns its usage. The reply has no content.
func (p *pausedSession) send(ctx context.Context) (furl.Usage, error) {
	x := exchange.Plain(p.rt.codec, p.name, p.body)
	resp, err := x.Send(ctx, exchange.SendOptions{Post: p.rt.postTo(p.url, p.header)})
	if err != nil {
		return furl.Usage{}, err
	}
	reply, cut, unread := x.Read(resp, maxPingReply, nil)
	switch {
	case cut != nil:
		return reply.Usage, cut
	case resp.StatusCode >= 300 && reply.Refusal != nil:
		return reply.Usage, &pingRefusedError{resp.StatusCode, reply.Refusal.Type}
	case resp.StatusCode >= 300:
		return reply.Usage, &pingRefusedError{resp.StatusCode, "unknown error"}
	}
	return reply.Usage, unread
}

// pausedAfter returns the pause of a session after a request, nil if no ping follows.
func (c *call) pausedAfter(x *session.Exchange, reply *protocol.Reply) *pausedSession {
	g := c.g
	most := g.pingsFor(c.r)
	if most == 0 || g.draining.Load() || x.Session == nil || x.Fit == nil || x.Dry || x.AskNothing || c.sentAt.IsZero() || !reply.Complete || reply.Refusal != nil {
		return nil
	}
	if len(x.Session.Info().Redactions) > 0 {
		return nil // the client may still send what was redacted
	}
	if u := reply.Usage; u.CacheRead+u.CacheWrite+u.CacheWrite1h == 0 {
		return nil // nothing is cached
	}
	p := &pausedSession{
		key: x.Session.Info().SessionKey, rt: c.rt, name: x.Fit.Model, model: x.Fit.Budget.Model,
		tokens: reply.Usage.Prompt(), start: c.sentAt, used: c.sentAt, most: most,
	}
	if x.Fit.HourCache {
		p.kept = min(p.tokens, x.Fit.Budget.Fixed)
	}
	if !p.expects() {
		return nil
	}
	body, ok := c.rt.codec.CacheOnly(x.Body)
	if !ok {
		return nil
	}
	c.lent = true
	u := *c.r.URL
	p.url, p.header, p.body = &u, c.r.Header.Clone(), body
	for _, name := range perRequestHeaders {
		p.header.Del(name)
	}
	p.header.Set("Accept-Encoding", "identity")
	return p
}

// pingsFor returns how many pings may follow a request.
func (g *Gateway) pingsFor(r *http.Request) int {
	if !g.maySpend(r, headerKeepAlive) {
		return 0
	}
	return max(0, g.o.KeepAlive)
}

// hourCache says when a request asks for cache entries of one hour.
func (g *Gateway) hourCache(r *http.Request) protocol.HourCache {
	if !g.maySpend(r, headerHourCache) {
		return protocol.HourNever
	}
	return g.o.HourCache
}

// maySpend reports whether furl may spend the request's tokens on the cache, by the
// header of that name.
func (g *Gateway) maySpend(r *http.Request, header string) bool {
	on, err := strconv.ParseBool(r.Header.Get(header))
	return on || err != nil && len(g.o.TenantSecret) == 0
}
