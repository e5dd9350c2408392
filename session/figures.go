package session

import (
	"context"
	"errors"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// storeError counts a failure of the store, and reports whether it is one. A
// change that came second, a session that is not there and a client that has
// gone are none.
func (a *shared) storeError(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, furl.ErrConflict) || errors.Is(err, storage.ErrNoSession) {
		return false
	}
	a.storeErrors.Add(1)
	return true
}

// Stats are figures of this process: counts since it started, and what is in
// memory now. Those without a word on tenants are of all tenants together.
type Stats struct {
	// Sessions are open in memory, and take about so many bytes. Own are those
	// of the tenant.
	Sessions, Own int
	Bytes         int64
	// StoreErrors counts failures of the store on the way of requests.
	StoreErrors int64
	// StoreRefuses says that the store did not take what was to be recorded
	// last, within the last minute: requests are sent, and not recorded.
	StoreRefuses bool
	// LateSummaries counts summaries that were ready and never shown, LateCost
	// what they cost in US dollars.
	LateSummaries int
	LateCost      float64
	// UnknownWindows counts models that were asked for, and whose window is not
	// known from the options, the provider or the catalogue.
	UnknownWindows int
}

// Stats returns the figures of this process.
func (a *Sessions) Stats() Stats {
	st := Stats{
		StoreErrors:  a.storeErrors.Load(),
		StoreRefuses: a.refusing.now(), UnknownWindows: a.unknownWindows(),
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	st.LateSummaries, st.LateCost = a.late.n, a.late.dollars
	st.Sessions = len(a.open)
	for key, c := range a.open {
		st.Bytes += c.s.size.Load()
		if key.Tenant == a.tenant {
			st.Own++
		}
	}
	return st
}

// KnownModel gives the catalogue's own name of a model, "" if it has none by
// that name: what requests say may be anything.
func (a *shared) KnownModel(name string) string {
	if m, ok := a.lookUp(name); ok {
		return m.ID
	}
	return ""
}

// windowOf is what a model's prompts may have at most, whatever the user wants
// them to have; 0 if that is not known.
func (a *shared) windowOf(name string) int {
	m, _ := a.lookUp(name)
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.learned[name].window; n > 0 && (m.Window == 0 || n < m.Window) {
		return n
	}
	return m.Window
}
