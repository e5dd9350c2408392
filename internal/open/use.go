package open

import (
	"time"

	"github.com/furlhq/furl"
)

// Acquire keeps the session in memory until release is called.
func (s *Session) Acquire() (release func()) {
	s.holders.Add(1)
	return func() { s.holders.Add(-1) }
}

// InUse reports whether the session is acquired.
func (s *Session) InUse() bool { return s.holders.Load() > 0 }

// ReadSince reports whether this process has compared the session with the store since
// a time.
func (s *Session) ReadSince(t time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.stale && s.lastRead.After(t)
}

// All returns the sessions of the session's tenant.
func (s *Session) All() *Sessions { return &Sessions{s.all, s.key.Tenant} }

// Key returns the tenant and the id of the session.
func (s *Session) Key() furl.SessionKey { return s.key }

// Changed returns a channel that is closed when records are appended to the session, or the
// summary that waits changes.
func (c *Change) Changed() <-chan struct{} { return c.s.changed }

// Options returns the current options of all sessions, which are read-only.
func (c *Change) Options() *Options { return c.all.live() }

// Key returns the tenant and the id of the session.
func (c *Change) Key() furl.SessionKey { return c.key }

// All returns the sessions of the session's tenant.
func (c *Change) All() *Sessions { return c.s.All() }
