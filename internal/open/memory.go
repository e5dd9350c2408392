package open

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/membudget"
	"github.com/furlhq/furl/storage"
)

// ErrMemory is wrapped by the error for a session that does not fit into the memory
// for sessions (Options.MaxMemory): it is too large, or other sessions in use need
// the memory.
var ErrMemory = errors.New("the sessions in memory would exceed their limit")

// memoryOf estimates the memory of records in an open session, in bytes.
func memoryOf(records []furl.Record) int64 {
	bytes, n := int64(0), int64(len(records))
	for i := range records {
		switch b := records[i].Body.(type) {
		case *furl.Message:
			bytes += int64(b.Bytes())
		case *furl.Reduction:
			n += int64(len(b.Items)) / 2
		case *furl.Exchange:
			bytes += int64(len(b.Request.Received) + len(b.Request.Sent))
		}
	}
	return membudget.Session(bytes, n)
}

// reserveFor reserves memory for new records of the session. The session is locked.
func (s *Session) reserveFor(fresh []furl.Record) error {
	if len(fresh) == 0 {
		return nil
	}
	if err := s.all.reserve(s, s.size.Load()+memoryOf(fresh)); err != nil {
		return fmt.Errorf("append to session %s: %w", s.key.Session, err)
	}
	return nil
}

// reserve sets the memory of an open session to n bytes, and evicts other sessions
// if necessary. If there is not enough memory, nothing changes and the error wraps
// ErrMemory.
func (a *shared) reserve(s *Session, n int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	had := a.setSize(s, n)
	if n <= had {
		return nil
	}
	a.trim(s)
	total := a.memory
	if !a.isOpen(s) {
		total += n
	}
	if total > a.o.MaxMemory {
		a.setSize(s, had)
		return fmt.Errorf("%w: this session needs %d MB, other sessions in use have %d MB, the limit is %d MB", ErrMemory, n>>20, (total-n)>>20, a.o.MaxMemory>>20)
	}
	return nil
}

// storedInfo returns the store's description of a session, and whether it exists.
func (a *shared) storedInfo(ctx context.Context, key furl.SessionKey) (storage.SessionInfo, bool, error) {
	info, err := storage.Info(ctx, a.store, key)
	if errors.Is(err, storage.ErrNoSession) {
		return info, false, nil
	}
	return info, err == nil, err
}

// resize sets the memory of an open session to n bytes without a limit. The session is
// locked.
func (s *Session) resize(n int64) {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.all.setSize(s, n)
}

// trim evicts the least recently used sessions above the limits. Sessions with an
// exchange in flight are not evicted. Sessions with a ready summary stay for readyTTL
// unless the memory is needed. a.mu is locked.
func (a *shared) trim(newest *Session) {
	evict := func(c *cached, summaries bool) {
		if c.s == newest || c.s.holders.Load() != 0 || c.s.active.Load() != 0 || !summaries && c.s.hasReady.Load() && time.Since(c.at) < readyTTL {
			return
		}
		a.drop(c)
	}
	for c := a.uses.newer; c != &a.uses; c = c.newer {
		if len(a.open) <= a.o.Keep && a.memory <= a.o.KeepBytes && (a.memory <= a.o.KeepBytes/membudget.IdleShare || time.Since(c.at) < membudget.IdleAfter) {
			return
		}
		evict(c, false)
	}
	for c := a.uses.newer; c != &a.uses && a.memory > a.o.MaxMemory; c = c.newer {
		evict(c, true)
	}
}
