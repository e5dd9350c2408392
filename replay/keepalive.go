package replay

import (
	"fmt"
	"strings"
	"time"

	"github.com/furlhq/furl/internal/keepalive"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/wire"
)

// KeepAliveSuffix ends the name of a policy that was tried with pings.
const KeepAliveSuffix = "+keep-alive"

// withKeepAlive adds to each candidate one with at most n pings in a pause.
func withKeepAlive(candidates []Candidate, n int) []Candidate {
	out := make([]Candidate, 0, 2*len(candidates))
	for _, c := range candidates {
		pinged := c
		pinged.Name, pinged.pings = c.Name+KeepAliveSuffix, n
		out = append(out, c, pinged)
	}
	return out
}

// keepAlive is the pause after the latest request of a run. Pings are sent when
// they are due, without knowing when the session continues.
type keepAlive struct {
	max    int      // pings in a pause; 0: none
	of     *request // the request that pings repeat; nil: it was not accepted
	tokens int      // the size of its prompt
	kept   int      // how much of it has entries of one hour
	sent   int      // pings since
	last   time.Time
}

// pause starts the pause after a request.
func (r *run) pause(q *request) {
	k := &r.keepAlive
	k.of, k.sent, k.last = nil, 0, time.Time{}
	if _, ok := wire.For(r.s.codec.Format()).CacheOnly([]byte(`{"max_tokens":1}`)); !ok {
		return // the provider has no pings
	}
	if last := r.each[len(r.each)-1]; last.sendable && !q.at.IsZero() {
		k.of, k.tokens, k.kept = q, r.trail.Points[len(r.trail.Points)-1].Tokens, 0
		if r.cache.long {
			k.kept = min(k.tokens, q.fixed)
		}
	}
}

// cacheUsed returns when the cache entries of the latest prompt were last used.
func (r *run) cacheUsed() time.Time {
	if r.keepAlive.last.After(r.last) {
		return r.keepAlive.last
	}
	return r.last
}

// ping sends the pings of the pause that ends with a request.
func (r *run) ping(until time.Time) { r.pingWhile(func(at time.Time) bool { return at.Before(until) }) }

// pingAfterLast sends the pings after the last request. Its outcome pays for them, and for a
// compaction after it.
func (r *run) pingAfterLast() {
	r.pingWhile(func(time.Time) bool { return true })
	if n := len(r.each); n > 0 {
		for _, paid := range []bought{r.own, r.agent} {
			r.each[n-1].add(paid)
			r.out.all.add(paid)
		}
		r.out.Split.Own += r.own.dollars
		r.out.Split.Compactions += r.agent.dollars
	}
	r.own, r.agent = bought{}, bought{}
}

// pingWhile sends the pings that pay, as long as the session has not continued at
// their time.
func (r *run) pingWhile(idle func(at time.Time) bool) {
	k := &r.keepAlive
	for k.of != nil && k.sent < k.max {
		at := r.cacheUsed().Add(keepalive.Interval(&k.of.model))
		if !keepalive.Pays(&k.of.model, k.tokens, k.kept, at.Sub(r.last), at) || !idle(at) {
			return
		}
		k.sent, k.last = k.sent+1, at
		s := r.cache.ping(at)
		cost := bill(&k.of.model, s, at).Input()
		r.out.Pings++
		r.out.PingCost += cost
		r.own.add(bought{cost, s.prompt()})
	}
}

// ping repeats the agent's latest request.
func (c *promptCache) ping(at time.Time) split {
	c.at = at
	s := c.cache.Lookup(c.rules, c.chain, c.pieces, at)
	c.cache.Store(c.rules, c.chain, c.pieces, at)
	return split{Read: s.Read, Write: s.Write, WriteLong: s.WriteLong, Fresh: s.Fresh}
}

// addKeepAliveNote says what the pings of the policies cost.
func (r *Report) addKeepAliveNote(limit int) {
	if limit == 0 {
		return
	}
	var parts []string
	for i := range r.Totals {
		t := &r.Totals[i]
		if t.Window == r.Totals[0].Window && strings.HasSuffix(t.Policy, KeepAliveSuffix) {
			name := PolicyLabel(strings.TrimSuffix(t.Policy, KeepAliveSuffix))
			parts = append(parts, fmt.Sprintf("%s $%.2f for %s", name, t.PingCost, numbers.Count(t.Pings, "ping")))
		}
	}
	if len(parts) == 0 {
		return
	}
	r.Notes = append(r.Notes, fmt.Sprintf("Keep-alive: at most %d pings in a pause; the cost includes them: %s.", limit, strings.Join(parts, ", ")))
}
