package open

import (
	"time"

	"github.com/furlhq/furl"
)

// Most requests extend the current path of a session in memory. An index of the
// heads finds these without reading the store. If another process has appended
// meanwhile, the append fails with a conflict and everything is done again.

// headKey is the chain at the head of a tenant's session.
type headKey struct {
	tenant furl.Tenant
	chain  furl.Digest
}

// indexHead updates the session's entry in shared.heads. The session is locked.
func (s *Session) indexHead() {
	s.lastRead = time.Now()
	st := s.log.State()
	chain := st.Chain(st.Len())
	if s.meta.ForkOf != "" && s.log.Head() <= s.meta.ForkAt {
		chain = furl.Digest{} // the original has this head too and is preferred
	}
	a := s.all
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.open[s.key]
	if c == nil || c.s != s || c.head == chain {
		return
	}
	a.unindexHead(c)
	if c.head = chain; !chain.IsZero() {
		a.heads[headKey{s.key.Tenant, chain}] = c
	}
}

// unindexHead removes a session's entry from shared.heads. a.mu is locked.
func (a *shared) unindexHead(c *cached) {
	key := headKey{c.s.key.Tenant, c.head}
	if a.heads[key] == c {
		delete(a.heads, key)
	}
	c.head = furl.Digest{}
}

// RecentlyRead reports whether the session was compared with the store within Options.Poll,
// or is not stored yet because its first request is in flight.
func (c *Change) RecentlyRead() bool {
	s := c.s
	if s.stale {
		return false
	}
	if s.log.Len() == 0 {
		return s.holders.Load() > 0
	}
	return time.Since(s.lastRead) < s.all.o.Poll
}
