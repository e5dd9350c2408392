package open

import (
	"time"

	"github.com/furlhq/furl"
)

// cached is an open session. The open sessions are a ring in the order of their last use,
// which begins and ends at shared.uses: the least recently used one is uses.newer. So each
// record is counted without looking at all sessions.
type cached struct {
	s            *Session
	at           time.Time   // of the last use
	head         furl.Digest // its key in heads; zero: none
	older, newer *cached
}

// add adds a session to the open ones. a.mu is locked.
func (a *shared) add(s *Session) {
	c := &cached{s: s}
	a.open[s.key] = c
	a.memory += s.size.Load()
	c.older, c.newer = c, c
	a.used(c)
}

// used makes an open session the most recently used one. a.mu is locked.
func (a *shared) used(c *cached) {
	c.at = time.Now()
	c.unlink()
	c.older, c.newer = a.uses.older, &a.uses
	c.older.newer, c.newer.older = c, c
}

func (c *cached) unlink() { c.older.newer, c.newer.older = c.newer, c.older }

// drop evicts an open session. a.mu is locked.
func (a *shared) drop(c *cached) {
	a.unindexHead(c)
	delete(a.open, c.s.key)
	a.memory -= c.s.size.Load()
	c.unlink()
}

// isOpen reports whether a session is an open one, and not evicted. a.mu is locked.
func (a *shared) isOpen(s *Session) bool {
	c := a.open[s.key]
	return c != nil && c.s == s
}

// setSize sets the estimated memory of a session, and returns the one before. a.mu and the
// session are locked.
func (a *shared) setSize(s *Session, n int64) (had int64) {
	if had = s.size.Swap(n); a.isOpen(s) {
		a.memory += n - had
	}
	return had
}
