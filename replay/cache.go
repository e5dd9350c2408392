package replay

import (
	"hash/maphash"
	"slices"
	"sort"
	"time"

	"github.com/furlhq/furl"
)

// piece is one element of a rendered request as the cache sees it: equal ids
// mean equal bytes.
type piece struct {
	id        uint64
	tokens    int // the provider's, estimated
	positions int // what the lookback counts: blocks, runs of calls or results as one
}

// promptCache simulates a provider's prompt cache for the requests of one
// session, after the providers' documentation as of 2026-10:
//
//   - Automatic (OpenAI): a request reads the longest prefix it shares with an
//     earlier one, in whole granules, if that is the minimum at least.
//   - Explicit (Anthropic): what is cached ends at marks. A request carries
//     three: behind its instructions, at its end, and where it leaves the
//     request before, which is that one's end unless something in it changed.
//     From each mark back, at most Lookback positions are searched for an
//     entry that an earlier request wrote at a mark of its own. Prefixes below
//     the minimum are not written.
//
// An entry lives for Lifetime after its last use. Reading one is a use of it
// and of those it contains. Each model has a cache of its own. Entries of the
// one-hour lifetime, and what other sessions or requests that were not
// recorded leave in the cache, are not simulated.
type promptCache struct {
	rules   furl.Caching
	entries map[prefix]time.Time // last use; explicit
	sent    []sentPrompt         // automatic
	model   string               // of the agent's last request
	last    []prefix             // of it, the prefixes that end at its pieces
	at      time.Time            // of it
	chain   []prefix             // of the current request
}

// prefix names what stands in a prompt from its begin on, and the model.
type prefix uint64

// sentPrompt is an earlier prompt, all of whose prefixes are cached.
type sentPrompt struct {
	chain []prefix
	used  time.Time
}

// maxSent bounds how many prompts with different ends are remembered.
const maxSent = 16

// split says how one request's prompt is billed, in tokens.
type split struct {
	Read, Write, Fresh int
	// Broke says that the request does not go on where the agent's last one
	// to the same model ended, though the cache was warm.
	Broke bool
}

func (s split) prompt() int { return s.Read + s.Write + s.Fresh }

// request runs the agent's next request through the cache. The first piece is
// the instructions.
func (c *promptCache) request(rules furl.Caching, model string, pieces []piece, at time.Time) split {
	c.begin(rules, model, pieces)
	if model != c.model {
		c.last = c.last[:0]
	}
	left := shared(c.last, c.chain)
	out := c.serve(pieces, left, at)
	out.Broke = rules.Lifetime > 0 && left < len(c.last) && c.alive(c.at, at)
	c.model, c.at = model, at
	c.last = append(c.last[:0], c.chain...)
	return out
}

// aside runs a request that the agent does not go on from.
func (c *promptCache) aside(rules furl.Caching, model string, pieces []piece, at time.Time) split {
	c.begin(rules, model, pieces)
	return c.serve(pieces, shared(c.last, c.chain), at)
}

// begin names the prefixes of a request.
func (c *promptCache) begin(rules furl.Caching, model string, pieces []piece) {
	c.rules = rules
	c.chain = c.chain[:0]
	h := maphash.String(seed, model)
	for i := range pieces {
		h = (h ^ pieces[i].id) * 0x9e3779b97f4a7c15
		h ^= h >> 29
		c.chain = append(c.chain, prefix(h))
	}
}

// serve looks a request up and stores it. It leaves the request before after
// so many pieces.
func (c *promptCache) serve(pieces []piece, left int, at time.Time) split {
	total := sum(pieces)
	switch {
	case c.rules.Lifetime == 0:
		return split{Fresh: total}
	case c.rules.Explicit:
		return c.explicit(pieces, left, total, at)
	}
	return c.automatic(pieces, total, at)
}

func (c *promptCache) explicit(pieces []piece, left, total int, at time.Time) split {
	marks := [...]int{1, left, len(pieces)}
	hit := 0
	for _, m := range marks {
		hit = c.find(pieces, hit, m, at)
	}
	for _, p := range c.chain[:hit] {
		if used, ok := c.entries[p]; ok && c.alive(used, at) {
			c.entries[p] = at
		}
	}
	if c.entries == nil {
		c.entries = make(map[prefix]time.Time)
	}
	for _, m := range marks {
		if m > 0 && sum(pieces[:m]) >= c.rules.MinPrefix {
			c.entries[c.chain[m-1]] = at
		}
	}
	if total < c.rules.MinPrefix {
		return split{Fresh: total}
	}
	read := sum(pieces[:hit])
	return split{Read: read, Write: total - read}
}

// find gives the number of pieces of the longest live entry within reach of
// the mark behind piece m-1, best if none is longer.
func (c *promptCache) find(pieces []piece, best, m int, at time.Time) int {
	passed := 0
	for i := m; i > best; i-- {
		if used, ok := c.entries[c.chain[i-1]]; ok && c.alive(used, at) {
			return i
		}
		passed += pieces[i-1].positions
		if c.rules.Lookback > 0 && passed >= c.rules.Lookback {
			break
		}
	}
	return best
}

func (c *promptCache) automatic(pieces []piece, total int, at time.Time) split {
	hit := 0
	var space []prefix
	c.sent = slices.DeleteFunc(c.sent, func(p sentPrompt) bool {
		alive := c.alive(p.used, at)
		n := 0
		if alive {
			n = shared(p.chain, c.chain)
			hit = max(hit, n)
		}
		if alive && n < len(p.chain) {
			return false
		}
		space = p.chain // this request holds all of it
		return true
	})
	if len(c.sent) == maxSent {
		space = c.sent[0].chain
		c.sent = slices.Delete(c.sent, 0, 1)
	}
	c.sent = append(c.sent, sentPrompt{append(space[:0], c.chain...), at})
	if total < c.rules.MinPrefix {
		return split{Fresh: total}
	}
	read := sum(pieces[:hit])
	if g := c.rules.Granule; g > 1 {
		read -= read % g
	}
	if read < c.rules.MinPrefix {
		read = 0
	}
	return split{Read: read, Write: total - read}
}

// alive reports whether an entry used at one time still lives at another.
// Recordings without times are taken as one request after the other.
func (c *promptCache) alive(used, at time.Time) bool {
	return used.IsZero() || at.IsZero() || at.Sub(used) <= c.rules.Lifetime
}

// shared is how many pieces two requests have in common from the begin on.
func shared(a, b []prefix) int {
	return sort.Search(min(len(a), len(b)), func(i int) bool { return a[i] != b[i] })
}

func sum(pieces []piece) int {
	n := 0
	for i := range pieces {
		n += pieces[i].tokens
	}
	return n
}
