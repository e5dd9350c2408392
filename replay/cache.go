package replay

import (
	"hash/maphash"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/promptcache"
)

// piece is one element of a rendered request as the cache sees it.
type piece = promptcache.Piece

// promptCache is a provider's prompt cache for the requests of one session.
// To an explicit cache (Anthropic) a request carries three marks: after its
// instructions, at its end, and where it leaves the request before, which is
// that one's end unless something in it changed.
//
// Each model has a cache of its own. What other sessions or requests that were
// not recorded leave in the cache is not simulated.
type promptCache struct {
	cache promptcache.Cache
	rules furl.Caching
	model string               // of the agent's last request
	last  []promptcache.Prefix // of it, the prefixes that end at its pieces
	at    time.Time            // of it
	chain []promptcache.Prefix // of the current request
}

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
	left := promptcache.Shared(c.last, c.chain)
	out := c.serve(pieces, left, at)
	out.Broke = rules.Lifetime > 0 && left < len(c.last) && c.alive(c.at, at)
	c.model, c.at = model, at
	c.last = append(c.last[:0], c.chain...)
	return out
}

// aside runs a request that the agent does not go on from.
func (c *promptCache) aside(rules furl.Caching, model string, pieces []piece, at time.Time) split {
	c.begin(rules, model, pieces)
	return c.serve(pieces, promptcache.Shared(c.last, c.chain), at)
}

// begin names the prefixes of a request.
func (c *promptCache) begin(rules furl.Caching, model string, pieces []piece) {
	c.rules = rules
	c.chain = promptcache.Chain(c.chain[:0], maphash.String(seed, model), pieces)
}

// serve looks a request up and stores it. It leaves the request before after
// so many pieces.
func (c *promptCache) serve(pieces []piece, left int, at time.Time) split {
	for i := range pieces {
		pieces[i].Mark = 0
	}
	for _, end := range []int{1, left, len(pieces)} {
		if 0 < end && end <= len(pieces) {
			pieces[end-1].Mark = c.rules.Lifetime
		}
	}
	s := c.cache.Lookup(c.rules, c.chain, pieces, at)
	c.cache.Store(c.rules, c.chain, pieces, at)
	return split{Read: s.Read, Write: s.Write + s.WriteLong, Fresh: s.Fresh}
}

// alive reports whether an entry used at one time still lives at another.
// Recordings without times are taken as one request after the other.
func (c *promptCache) alive(used, at time.Time) bool {
	return used.IsZero() || at.IsZero() || at.Sub(used) <= c.rules.Lifetime
}
