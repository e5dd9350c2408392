package replay

import (
	"fmt"
	"strings"

	"github.com/furlhq/furl/internal/keepalive"
	"github.com/furlhq/furl/internal/numbers"
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

// PolicyLabel returns the name of a result's policy in reports. Policy none hides nothing,
// so its result is the session as recorded.
func PolicyLabel(name string) string {
	base, settings := BasePolicy(name)
	if base == none {
		base = "as recorded"
	}
	return base + settings
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
		if !before.at.IsZero() && !q.at.IsZero() && !q.long && s.canExtend(q) && keepalive.IsPause(&q.model, q.at.Sub(before.at)) {
			n++
		}
	}
	return n
}

// canExtend reports whether entries of one hour pay for a request after a pause.
func (s *session) canExtend(q *request) bool {
	if !keepalive.HourPays(&q.model) {
		return false
	}
	_, ok := wire.For(s.codec.Format()).HourPreamble([]byte(`{"system":[{"cache_control":{}}]}`))
	return ok
}

// addPauseNote names the settings that keep the cache over pauses, if no row has them.
func (r *Report) addPauseNote(pauses int, o *Options) {
	if pauses == 0 || o.HourCache || o.KeepAlive > 0 {
		return
	}
	r.Notes = append(r.Notes, fmt.Sprintf("%s of 5 to 60 minutes, in which the prompt cache expires: add --cache-1h or --keep-alive 4 to see what keeping it saves.", numbers.Count(pauses, "pause")))
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
	return r.paused && r.s.canExtend(q)
}
