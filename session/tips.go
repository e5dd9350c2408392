package session

import (
	"context"
	"time"

	"github.com/furlhq/furl"
)

// Most requests go on from where a session in memory ends. Those need no
// question to the store: what another process may have appended meanwhile is
// seen when this one's append is refused, and then all is done again.

// tipKey is where a tenant's session ends.
type tipKey struct {
	tenant furl.Tenant
	chain  furl.Digest
}

// ends notes where the session ends now. The session is locked.
func (s *Session) ends() {
	s.read = time.Now()
	st := s.log.State()
	chain := st.Chain(st.Len())
	if s.meta.ForkOf != "" && s.log.Head() <= s.meta.ForkAt {
		chain = furl.Digest{} // the original ends there too, and is meant
	}
	a := s.all
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.open[s.key]
	if c == nil || c.s != s || c.tip == chain {
		return
	}
	a.untip(c)
	if c.tip = chain; !chain.IsZero() {
		a.tips[tipKey{s.key.Tenant, chain}] = c
	}
}

// untip forgets where a session ends. The lock is held.
func (a *shared) untip(c *cached) {
	key := tipKey{c.s.key.Tenant, c.tip}
	if a.tips[key] == c {
		delete(a.tips, key)
	}
	c.tip = furl.Digest{}
}

// drop lets go of an open session. The lock is held.
func (a *shared) drop(c *cached) {
	a.untip(c)
	delete(a.open, c.s.key)
}

// ending gives the session in memory from whose end a history goes on with no
// more than words and results; nil if there is none. No session has a longer
// part of it.
func (a *Sessions) ending(in *arrival) *Session {
	msgs := in.req.Messages
	first := firstAnswer(msgs)
	if first < 0 {
		return nil
	}
	for i := len(msgs) - 1; i >= first; i-- {
		if bare(&msgs[i]) {
			continue
		}
		a.mu.Lock()
		c := a.tips[tipKey{a.tenant, in.chains[i]}]
		if c != nil {
			a.clock++
			c.used, c.at = a.clock, time.Now()
		}
		a.mu.Unlock()
		if c != nil {
			meta := c.s.Meta()
			if in.hints.Hint != "" && meta.Hint != "" && meta.Hint != in.hints.Hint {
				return nil
			}
			return c.s
		}
		if msgs[i].Role == furl.RoleAssistant {
			return nil
		}
	}
	return nil
}

// now gives the open session with that id, read from the store again only if
// that was not done lately.
func (a *Sessions) now(ctx context.Context, id furl.SessionID) (*Session, error) {
	a.mu.Lock()
	c := a.open[furl.SessionKey{Tenant: a.tenant, Session: id}]
	if c != nil {
		a.clock++
		c.used, c.at = a.clock, time.Now()
	}
	a.mu.Unlock()
	if c == nil || !c.s.fresh() {
		return a.Open(ctx, id)
	}
	return c.s, nil
}

// fresh reports whether the session has been compared with the store lately, or
// is not in it before a request that is under way is accepted.
func (s *Session) fresh() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stale {
		return false
	}
	if s.log.Len() == 0 {
		return len(s.pending) > 0
	}
	return time.Since(s.read) < s.all.o.Poll
}
