// Package promptcache simulates the prompt caches of providers, as documented
// in 2026-10.
//
//   - Automatic (OpenAI): a request reads the longest prefix it shares with an
//     earlier one, in whole granules, if that has the minimum size.
//   - Explicit (Anthropic): cached prefixes end at breakpoints. Before each
//     breakpoint, at most Lookback positions are searched for an entry that an
//     earlier request wrote at one of its breakpoints. Prefixes below the
//     minimum are neither read nor written.
//
// An entry expires its lifetime after its last use, counted from the start of
// the request. Reading an entry is a use of it and of those it contains.
package promptcache

import (
	"sort"
	"time"

	"github.com/furlhq/furl"
)

// Piece is one element of a prompt as a cache sees it.
type Piece struct {
	ID        uint64 // equal for equal bytes
	Tokens    int    // in the provider's tokens
	Positions int    // for the lookback: 0 within a run of calls, or of results
	// Mark is the lifetime of an entry that ends with this piece; 0: no
	// breakpoint. Only explicit caches use it.
	Mark time.Duration
}

// Prefix identifies the start of a prompt and its account and model.
type Prefix uint64

// Split says how one request's prompt is billed, in tokens.
type Split struct {
	Read      int
	Write     int // with a lifetime below an hour
	WriteLong int // with a lifetime of an hour
	Fresh     int
}

// Prompt returns the size of the whole prompt.
func (s Split) Prompt() int { return s.Read + s.Write + s.WriteLong + s.Fresh }

// Usage returns the split as a provider reports it, without output.
func (s Split) Usage() furl.Usage {
	return furl.Usage{Input: s.Fresh, CacheRead: s.Read, CacheWrite: s.Write, CacheWrite1h: s.WriteLong}
}

// Cache contains the entries of earlier requests. The zero value is empty. It
// is not safe for concurrent use.
type Cache struct {
	// RenewOne makes reading an entry a use of that entry only, and not of
	// those it contains. Providers do not document this; it is pessimistic.
	RenewOne bool

	entries Generations[Prefix, entry]
}

type entry struct {
	used     time.Time
	lifetime time.Duration
}

// alive reports whether an entry has not expired. Requests without times are
// treated as immediately consecutive.
func (e entry) alive(at time.Time) bool {
	return e.used.IsZero() || at.IsZero() || at.Sub(e.used) <= e.lifetime
}

// Chain appends to dst the prefixes of a request that end at its pieces.
// Requests with different salts, for example of different models or accounts,
// share nothing.
func Chain(dst []Prefix, salt uint64, pieces []Piece) []Prefix {
	h := salt
	for i := range pieces {
		h = (h ^ pieces[i].ID) * 0x9e3779b97f4a7c15
		h ^= h >> 29
		dst = append(dst, Prefix(h))
	}
	return dst
}

// Shared returns the number of pieces in the common prefix of two requests.
func Shared(a, b []Prefix) int {
	return sort.Search(min(len(a), len(b)), func(i int) bool { return a[i] != b[i] })
}

// Sum returns the size of pieces in tokens.
func Sum(pieces []Piece) int {
	n := 0
	for i := range pieces {
		n += pieces[i].Tokens
	}
	return n
}

// Lookup returns how a request that starts at a time is billed. It counts as
// a use of the entries it reads, and stores nothing.
func (c *Cache) Lookup(rules furl.Caching, chain []Prefix, pieces []Piece, at time.Time) Split {
	switch {
	case rules.Lifetime == 0:
		return Split{Fresh: Sum(pieces)}
	case rules.Explicit:
		return c.explicit(rules, chain, pieces, at)
	}
	return c.automatic(rules, chain, pieces, at)
}

// Store stores the entries of a request. A provider does so when it starts to
// answer.
func (c *Cache) Store(rules furl.Caching, chain []Prefix, pieces []Piece, at time.Time) {
	if rules.Lifetime == 0 {
		return
	}
	size := 0
	for i := range pieces {
		size += pieces[i].Tokens
		lifetime := rules.Lifetime
		if rules.Explicit {
			if lifetime = pieces[i].Mark; lifetime == 0 || size < rules.MinPrefix {
				continue
			}
			if old, ok := c.entries.Get(chain[i]); ok && old.alive(at) {
				lifetime = max(lifetime, old.lifetime)
			}
		}
		c.entries.Put(chain[i], entry{at, lifetime})
	}
}

func (c *Cache) explicit(rules furl.Caching, chain []Prefix, pieces []Piece, at time.Time) Split {
	hit, size := 0, 0
	end, long := 0, 0 // how far entries are written at all, and for an hour
	for i := range pieces {
		size += pieces[i].Tokens
		if pieces[i].Mark == 0 {
			continue
		}
		hit = c.find(rules, chain, pieces, hit, i+1, at)
		if size < rules.MinPrefix {
			continue
		}
		end = i + 1
		if pieces[i].Mark >= time.Hour {
			long = i + 1
		}
	}
	c.renew(chain[:hit], at)
	end, long = max(end, hit), max(long, hit)
	return Split{
		Read:      Sum(pieces[:hit]),
		WriteLong: Sum(pieces[hit:long]),
		Write:     Sum(pieces[long:max(end, long)]),
		Fresh:     Sum(pieces[max(end, long):]),
	}
}

// find returns the number of pieces of the longest live entry within reach of
// the breakpoint after piece m-1, best if none is longer.
func (c *Cache) find(rules furl.Caching, chain []Prefix, pieces []Piece, best, m int, at time.Time) int {
	passed := 0
	for i := m; i > best; i-- {
		if e, ok := c.entries.Get(chain[i-1]); ok && e.alive(at) {
			return i
		}
		passed += pieces[i-1].Positions
		if rules.Lookback > 0 && passed >= rules.Lookback {
			break
		}
	}
	return best
}

// renew renews the entries that a request reads.
func (c *Cache) renew(chain []Prefix, at time.Time) {
	if c.RenewOne && len(chain) > 0 {
		chain = chain[len(chain)-1:]
	}
	c.use(chain, at)
}

// use renews entries.
func (c *Cache) use(chain []Prefix, at time.Time) {
	for _, p := range chain {
		if e, ok := c.entries.Get(p); ok && e.alive(at) {
			e.used = at
			c.entries.Put(p, e)
		}
	}
}

func (c *Cache) automatic(rules furl.Caching, chain []Prefix, pieces []Piece, at time.Time) Split {
	hit := 0
	for hit < len(chain) {
		e, ok := c.entries.Get(chain[hit])
		if !ok || !e.alive(at) {
			break
		}
		hit++
	}
	total := Sum(pieces)
	if total < rules.MinPrefix {
		return Split{Fresh: total}
	}
	c.renew(chain[:hit], at)
	read := Sum(pieces[:hit])
	if g := rules.Granule; g > 1 {
		read -= read % g
	}
	if read < rules.MinPrefix {
		read = 0
	}
	return Split{Read: read, Write: total - read}
}

// Reset empties the cache.
func (c *Cache) Reset() { c.entries.Reset() }
