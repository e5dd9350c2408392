package replay

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/keepalive"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/token"
	"github.com/furlhq/furl/wire"
)

// HourCacheSuffix ends the name of a policy that was tried with cache entries of one
// hour for instructions and tools. KeepAliveSuffix follows it if there are pings too.
const HourCacheSuffix = "+cache-1h"

// withHourCache adds to each candidate one with such entries.
func withHourCache(candidates []Candidate) []Candidate {
	out := make([]Candidate, 0, 2*len(candidates))
	for _, c := range candidates {
		longer := c
		longer.Name, longer.hourCache = c.Name+HourCacheSuffix, protocol.HourAlways
		out = append(out, c, longer)
	}
	return out
}

// PolicyLabel returns the name of a policy in reports. Policy none hides nothing, so it is the
// session as recorded.
func PolicyLabel(name string) string {
	base, settings := BasePolicy(name)
	if base == none {
		base = "as recorded"
	}
	return base + settings
}

// Acted reports whether a policy changed any request, or may have.
func (r *Result) Acted() bool {
	return r.Reductions > 0 || r.Pings > 0 || r.HourRequests > 0 || r.Split.Own > 0 || r.CostShare == nil || math.Abs(*r.CostShare-1) > 1e-9
}

// Label returns the name of the policy in reports. What was sent is "billed" if the provider
// reported usage, and "without furl" if furl has hidden something in it.
func (r *Result) Label() string {
	switch {
	case r.Policy == none && r.withoutFurl:
		return "without furl"
	case r.Policy == none && r.reported > 0:
		return "billed"
	}
	return PolicyLabel(r.Policy)
}

// BasePolicy cuts the suffixes of settings from the name of a result's policy.
func BasePolicy(name string) (base, suffixes string) {
	base = strings.TrimSuffix(strings.TrimSuffix(name, KeepAliveSuffix), HourCacheSuffix)
	return base, name[len(base):]
}

// pauses is the number of pauses that entries of one hour outlive, where the gateway can
// ask for them.
func (s *session) pauses() (n int) {
	for i := 1; i < len(s.requests); i++ {
		before, q := s.requests[i-1], s.requests[i]
		if !q.again && !before.at.IsZero() && !q.at.IsZero() && !q.long && s.canExtend(q) && keepalive.IsPause(&q.model, q.at.Sub(before.at)) {
			n++
		}
	}
	return n
}

// canExtend reports whether entries of one hour pay for a request after a pause.
func (s *session) canExtend(q *request) bool {
	if !keepalive.HourPays(&q.model, q.at) {
		return false
	}
	_, ok := wire.For(s.codec.Format()).HourPreamble([]byte(`{"system":[{"cache_control":{}}]}`))
	return ok
}

// addHourNote names the policies that asked for entries of one hour by themselves.
func (r *Report) addHourNote() {
	var names []string
	for i := range r.Totals {
		t := &r.Totals[i]
		if base, _ := BasePolicy(t.Policy); t.HourRequests > 0 && !strings.Contains(t.Policy, HourCacheSuffix) && !slices.Contains(names, base) {
			names = append(names, base)
		}
	}
	if len(names) > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("After pauses, %s asked for cache entries of one hour for instructions and tools: --cache-1h=false shows the costs without.", strings.Join(names, ", ")))
	}
}

// addPauseNote names the settings that keep the cache over pauses, if no row has them.
func (r *Report) addPauseNote(pauses int, o *Options) {
	if pauses == 0 || o.HourCache == protocol.HourAlways || o.KeepAlive > 0 {
		return
	}
	r.Notes = append(r.Notes, fmt.Sprintf("%s of 5 to 60 minutes, in which the prompt cache expires: add --cache-1h (for every policy) or --keep-alive 4 to see what keeping it saves.", numbers.Count(pauses, "pause")))
}

// longPreamble reports whether the entries of instructions and tools live an hour in a
// request with a view, because the client or the run asks for it.
func (r *run) longPreamble(q *request, b *furl.Budget, v *furl.View) bool {
	had := r.hadHourCache
	r.hadHourCache = false
	if q.long || r.last.IsZero() || q.at.IsZero() {
		return q.long
	}
	h := keepalive.Hour{
		When: r.hourCache, Policy: func() bool { return policy.WantsHourCache(r.policy, b) },
		At: q.at, Since: q.at.Sub(r.last), Idle: q.at.Sub(b.LastUse), Had: had, Fixed: min(q.fixed, r.s.preamble),
		Hidden: func() int {
			all, shown := q.shown, token.PartOfView(v)
			all.Thinking, shown.Thinking = 0, 0
			return r.s.sizes.Added(all) - r.s.sizes.Added(shown)
		},
	}
	if r.hadHourCache = h.Wanted(&q.model) && r.s.canExtend(q); r.hadHourCache {
		r.out.HourRequests++
	}
	return r.hadHourCache
}
