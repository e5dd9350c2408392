package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/membudget"
	"github.com/furlhq/furl/storage"
)

// ErrMemory says that a session does not fit into the memory for sessions
// (Options.MaxMemory): it is too large, or the others are in use.
var ErrMemory = errors.New("the sessions in memory would exceed their limit")

// memoryOf estimates the memory that records take in an open session.
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

// reserveFor reserves memory for records that the session is to have besides
// its own. The session is locked.
func (s *Session) reserveFor(fresh []furl.Record) error {
	if len(fresh) == 0 {
		return nil
	}
	if err := s.all.reserve(s, s.size.Load()+memoryOf(fresh)); err != nil {
		return fmt.Errorf("append to session %s: %w", s.key.Session, err)
	}
	return nil
}

// reserve notes that an open session takes n bytes of memory from now on, and
// lets go of others to make room. If there is none, nothing changes and the
// error wraps ErrMemory.
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
		return fmt.Errorf("%w: %d MB for this session, %d MB for those in use, of %d MB together", ErrMemory, n>>20, (total-n)>>20, a.o.MaxMemory>>20)
	}
	return nil
}

// stored returns what the store says of a session, and whether it has it.
func (a *shared) stored(ctx context.Context, key furl.SessionKey) (storage.SessionInfo, bool, error) {
	for info, err := range a.store.Sessions(ctx, key.Tenant, storage.SessionQuery{Prefix: string(key.Session)}) {
		if err != nil {
			return info, false, err
		}
		if info.Session == key.Session {
			return info, true, nil
		}
	}
	return storage.SessionInfo{}, false, nil
}

// Sessions that were not used for so long are most likely over, and share that
// part of the room.
const (
	resting      = 2 * time.Minute
	restingShare = 4
)

// trim lets go of the sessions that were not used for longest while there are
// too many, or too large ones, and returns the memory of those that stay. Those
// stay that have an exchange under way: its reply is to meet the next request.
// Those in which a summary waits stay for an hour (keptReady), unless there is
// no room for others. The lock is held.
func (a *shared) trim(newest *Session) (total int64) {
	list := make([]*cached, 0, len(a.open))
	for _, c := range a.open {
		total += c.s.size.Load()
		list = append(list, c)
	}
	if len(list) <= a.o.Keep && total <= a.o.KeepBytes/restingShare {
		return total
	}
	slices.SortFunc(list, func(x, y *cached) int { return cmp.Compare(x.used, y.used) })
	let := func(c *cached, summaries bool) {
		if c.s == newest || c.s.busy.Load() != 0 || c.s.using.Load() != 0 || !summaries && c.s.waits.Load() && time.Since(c.at) < keptReady {
			return
		}
		total -= c.s.size.Load()
		a.drop(c)
	}
	for _, c := range list {
		if len(a.open) <= a.o.Keep && total <= a.o.KeepBytes && (total <= a.o.KeepBytes/restingShare || time.Since(c.at) < resting) {
			return total
		}
		let(c, false)
	}
	for _, c := range list {
		if total <= a.o.MaxMemory {
			return total
		}
		if a.open[c.s.key] == c {
			let(c, true)
		}
	}
	return total
}
