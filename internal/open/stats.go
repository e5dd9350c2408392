package open

import (
	"context"
	"errors"
	"maps"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// What package session reports as its Stats.

// storeError counts a store failure. It returns false, without counting, for
// conflicts, missing sessions and cancelled contexts.
func (a *shared) storeError(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, furl.ErrConflict) || errors.Is(err, storage.ErrNoSession) {
		return false
	}
	a.storeErrors.Add(1)
	return true
}

// StoreErrors returns the number of store failures. StoreRefuses reports whether the last
// append failed, within the last minute.
func (a *shared) StoreErrors() int64 { return a.storeErrors.Load() }

// StoreRefuses is described with StoreErrors.
func (a *shared) StoreRefuses() bool { return a.health.failing() }

// LateSummaries returns the number of summaries that were ready and never used, and their
// cost in US dollars.
func (a *shared) LateSummaries() (n int, dollars float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.late.n, a.late.dollars
}

// AssumedModels returns the number of requested models whose rules are assumed.
func (a *shared) AssumedModels() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.assumed)
}

// Savings returns the savings of the requests that this process has recorded, by session.
func (a *shared) Savings() map[furl.SessionKey]storage.Savings {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.recorded)
}

// Count returns the number of sessions in memory, of those of the tenant and of those with
// a ready summary, and their estimated memory in bytes.
func (a *Sessions) Count() (sessions, own, ready int, bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, c := range a.open {
		if c.s.hasReady.Load() {
			ready++
		}
		if key.Tenant == a.tenant {
			own++
		}
	}
	return len(a.open), own, ready, a.memory
}
