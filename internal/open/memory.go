package open

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	had := s.size.Swap(n)
	if n <= had {
		return nil
	}
	total := a.trim(s)
	if c := a.open[s.key]; c == nil || c.s != s {
		total += n
	}
	if total > a.o.MaxMemory {
		s.size.Store(had)
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

// trim evicts the least recently used sessions above the limits, and returns the
// memory of the others. Sessions with an exchange in flight are not evicted.
// Sessions with a ready summary stay for readyTTL unless the memory is needed. a.mu
// is locked.
func (a *shared) trim(newest *Session) (total int64) {
	for _, c := range a.open {
		total += c.s.size.Load()
	}
	if len(a.open) <= a.o.Keep && total <= a.o.KeepBytes/membudget.IdleShare {
		return total
	}
	list := slices.Collect(maps.Values(a.open))
	slices.SortFunc(list, func(x, y *cached) int { return cmp.Compare(x.used, y.used) })
	evict := func(c *cached, summaries bool) {
		if c.s == newest || c.s.holders.Load() != 0 || c.s.active.Load() != 0 || !summaries && c.s.hasReady.Load() && time.Since(c.at) < readyTTL {
			return
		}
		total -= c.s.size.Load()
		a.drop(c)
	}
	for _, c := range list {
		if len(a.open) <= a.o.Keep && total <= a.o.KeepBytes && (total <= a.o.KeepBytes/membudget.IdleShare || time.Since(c.at) < membudget.IdleAfter) {
			return total
		}
		evict(c, false)
	}
	for _, c := range list {
		if total <= a.o.MaxMemory {
			return total
		}
		if a.open[c.s.key] == c {
			evict(c, true)
		}
	}
	return total
}
