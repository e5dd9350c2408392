package replay

import (
	"hash/maphash"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/promptcache"
)

// piece is one element of a rendered request as the cache sees it.
type piece = promptcache.Piece

// promptCache simulates a provider's prompt cache for the requests of one session.
// For an explicit cache (Anthropic), a request has three cache breakpoints: after
// its instructions, at its end, and where it stops sharing a prefix with the
// previous request.
//
// Each model has a separate cache. Other sessions and requests that were not
// recorded are not simulated.
type promptCache struct {
	cache promptcache.Cache
	// noMark omits the third breakpoint.
	noMark bool
	rules  furl.Caching
	long   bool                 // the entry of the instructions lives an hour
	model  string               // of the agent's last request
	last   []promptcache.Prefix // of it, the prefixes that end at its pieces
	at     time.Time            // of it
	chain  []promptcache.Prefix // of the current request
	pieces []piece              // of the current request, with its breakpoints
}

// split is the prompt of one request by billing class, in tokens.
type split struct {
	Read, Write, Fresh int
	// WriteLong is what was written with a lifetime of one hour.
	WriteLong int
	// Shared is how much of the prompt the request shares with the previous one to the
	// same model.
	Shared int
	// Broke says that the request does not extend the previous one to the same
	// model although the cache has not expired.
	Broke bool
}

func (s split) prompt() int { return s.Read + s.Write + s.WriteLong + s.Fresh }

// request sends the agent's next request through the cache. The first piece is
// the instructions.
func (c *promptCache) request(rules furl.Caching, model string, pieces []piece, at time.Time) split {
	c.setPieces(rules, model, pieces)
	if model != c.model {
		c.last = c.last[:0]
	}
	shared := promptcache.Shared(c.last, c.chain)
	out := c.serve(pieces, shared, at)
	out.Shared = promptcache.Sum(pieces[:shared])
	out.Broke = rules.Lifetime > 0 && shared < len(c.last) && c.alive(c.at, at)
	c.model, c.at = model, at
	c.last = append(c.last[:0], c.chain...)
	return out
}

// summary sends a request for a summary through the cache. The agent's next
// request does not extend it.
func (c *promptCache) summary(rules furl.Caching, model string, pieces []piece, at time.Time) split {
	c.setPieces(rules, model, pieces)
	return c.serve(pieces, promptcache.Shared(c.last, c.chain), at)
}

// setPieces computes the prefixes of a request.
func (c *promptCache) setPieces(rules furl.Caching, model string, pieces []piece) {
	c.rules = rules
	c.chain = promptcache.Chain(c.chain[:0], maphash.String(seed, model), pieces)
}

// serve looks up a request and stores it. Its first shared pieces are those of the
// previous request.
func (c *promptCache) serve(pieces []piece, shared int, at time.Time) split {
	for i := range pieces {
		pieces[i].Mark = 0
	}
	for i, end := range []int{1, shared, len(pieces)} {
		if i == 1 && c.noMark {
			continue
		}
		if 0 < end && end <= len(pieces) {
			pieces[end-1].Mark = c.rules.Lifetime
		}
	}
	if c.long && pieces[0].Mark > 0 {
		pieces[0].Mark = time.Hour
	}
	c.pieces = pieces
	s := c.cache.Lookup(c.rules, c.chain, pieces, at)
	c.cache.Store(c.rules, c.chain, pieces, at)
	return split{Read: s.Read, Write: s.Write, WriteLong: s.WriteLong, Fresh: s.Fresh}
}

// alive reports whether an entry that was used at one time has not expired at
// another. Entries of recordings without times never expire.
func (c *promptCache) alive(used, at time.Time) bool {
	return used.IsZero() || at.IsZero() || at.Sub(used) <= c.rules.Lifetime
}
