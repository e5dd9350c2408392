package replay

import (
	"slices"
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

// promptCache simulates a provider's prompt cache for one session, after the
// providers' documentation as of 2026-10:
//
//   - Automatic (OpenAI): the longest prefix shared with the request before,
//     in steps of the granule, at least the minimum.
//   - Explicit (Anthropic): entries end at marks. The client marks the end of
//     its instructions and the end of each request; on a request whose prefix
//     broke, one further mark stands at the end of what is unchanged. An entry
//     is found when it lies at most Lookback positions before a mark.
//
// An entry lives for Lifetime after its last use; using one refreshes those
// it contains. Another model starts with an empty cache.
type promptCache struct {
	rules   furl.Caching
	model   string
	prev    []uint64 // ids of the last request's pieces
	last    time.Time
	entries []cacheEntry // by length
}

type cacheEntry struct {
	pieces int // of the last request, that it holds
	used   time.Time
}

// split says how one request's prompt is billed, in tokens.
type split struct {
	Read, Write, Fresh int
	// Broke says that the request does not go on where the last one ended,
	// though the cache was warm.
	Broke bool
}

func (s split) prompt() int { return s.Read + s.Write + s.Fresh }

// request runs one request through the cache. The first piece is the preamble.
func (c *promptCache) request(rules furl.Caching, model string, pieces []piece, at time.Time) split {
	if model != c.model {
		*c = promptCache{model: model}
	}
	c.rules = rules
	total := 0
	for i := range pieces {
		total += pieces[i].tokens
	}
	shared := c.shared(pieces)
	out := split{Broke: shared < len(c.prev) && c.warm(at)}
	hit := 0
	switch {
	case rules.Lifetime == 0:
		out.Fresh = total
	case rules.Explicit:
		hit = c.find(pieces, shared, at)
		out.Read = sum(pieces[:hit])
		if out.Read < rules.MinPrefix {
			hit, out.Read = 0, 0
		}
		if total >= rules.MinPrefix {
			out.Write = total - out.Read
		} else {
			out.Fresh = total
		}
	default:
		if c.warm(at) {
			out.Read = sum(pieces[:shared])
			if g := rules.Granule; g > 1 {
				out.Read -= out.Read % g
			}
		}
		if out.Read < rules.MinPrefix {
			out.Read = 0
		}
		if total >= rules.MinPrefix {
			out.Write = total - out.Read
		} else {
			out.Fresh = total
		}
	}
	c.store(pieces, shared, hit, at)
	return out
}

// peek is request without a trace: what a further request would be billed.
func (c *promptCache) peek(rules furl.Caching, model string, pieces []piece, at time.Time) split {
	d := *c
	d.entries, d.prev = slices.Clone(c.entries), slices.Clone(c.prev)
	return d.request(rules, model, pieces, at)
}

// shared counts the leading pieces equal to the last request's.
func (c *promptCache) shared(pieces []piece) int {
	n := 0
	for n < len(c.prev) && n < len(pieces) && c.prev[n] == pieces[n].id {
		n++
	}
	return n
}

func (c *promptCache) warm(at time.Time) bool { return len(c.prev) > 0 && c.alive(c.last, at) }

// alive reports whether an entry used at one time still lives at another.
// Recordings without times are taken as one request after the other.
func (c *promptCache) alive(used, at time.Time) bool {
	return used.IsZero() || at.IsZero() || at.Sub(used) <= c.rules.Lifetime
}

// find gives the number of pieces of the longest live entry within reach of a
// mark. Marks stand behind the preamble, behind what is shared with the last
// request where it broke, behind the last request's end, and at the end.
func (c *promptCache) find(pieces []piece, shared int, at time.Time) int {
	marks := [...]int{len(pieces), len(c.prev), shared, 1}
	best := 0
	for _, e := range c.entries {
		if e.pieces > shared || e.pieces <= best || !c.alive(e.used, at) {
			continue
		}
		for _, m := range marks {
			if m <= len(pieces) && m >= e.pieces && c.within(pieces, e.pieces, m) {
				best = e.pieces
				break
			}
		}
	}
	return best
}

// within reports whether an entry that ends before piece from is found from a
// mark that ends before piece to.
func (c *promptCache) within(pieces []piece, from, to int) bool {
	if c.rules.Lookback == 0 {
		return true
	}
	n := 0
	for i := from; i < to; i++ {
		if n += pieces[i].positions; n >= c.rules.Lookback {
			return false
		}
	}
	return true
}

// store remembers the request and its entries.
func (c *promptCache) store(pieces []piece, shared, hit int, at time.Time) {
	kept := c.entries[:0]
	for _, e := range c.entries {
		if e.pieces <= shared && c.alive(e.used, at) {
			if e.pieces <= hit {
				e.used = at
			}
			kept = append(kept, e)
		}
	}
	c.entries = kept
	c.entry(1, at)
	if shared > 1 {
		c.entry(shared, at)
	}
	c.entry(len(pieces), at)
	c.prev = c.prev[:0]
	for i := range pieces {
		c.prev = append(c.prev, pieces[i].id)
	}
	c.last = at
}

// entry adds or refreshes the entry that holds n pieces.
func (c *promptCache) entry(n int, at time.Time) {
	for i := range c.entries {
		if c.entries[i].pieces == n {
			c.entries[i].used = at
			return
		}
	}
	c.entries = append(c.entries, cacheEntry{n, at})
}

func sum(pieces []piece) int {
	n := 0
	for i := range pieces {
		n += pieces[i].tokens
	}
	return n
}
