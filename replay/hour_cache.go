package replay

import (
	"strings"

	"github.com/furlhq/furl/internal/keepalive"
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
		longer.Name, longer.hourCache = c.Name+HourCacheSuffix, true
		out = append(out, c, longer)
	}
	return out
}

// BasePolicy cuts the suffixes of settings from the name of a result's policy.
func BasePolicy(name string) (base, suffixes string) {
	base = strings.TrimSuffix(strings.TrimSuffix(name, KeepAliveSuffix), HourCacheSuffix)
	return base, name[len(base):]
}

// longPreamble reports whether the entries of instructions and tools live an hour for a
// request: the client's, or those that the run asks for after a pause.
func (r *run) longPreamble(q *request) bool {
	if !r.hourCache || q.long {
		return q.long
	}
	if !r.paused && !r.last.IsZero() && !q.at.IsZero() {
		r.paused = keepalive.IsPause(&q.model, q.at.Sub(r.last))
	}
	if !r.paused || !keepalive.HourPays(&q.model) {
		return false
	}
	_, ok := wire.For(r.s.codec.Format()).HourPreamble([]byte(`{"system":[{"cache_control":{}}]}`))
	return ok
}
