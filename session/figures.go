package session

import (
	"context"
	"errors"
	"time"

	"github.com/furlhq/furl"
)

// Took is how long the parts of an exchange took before the request could be
// sent.
type Took struct {
	// Match is for finding the session and where the history goes on in it.
	Match time.Duration
	// Plan is for deciding what to hide, Encode for making the body.
	Plan, Encode time.Duration
	// Store is for writing what is new, and for waiting until others have
	// done so in the same session.
	Store time.Duration
}

// storeError counts a failure of the store, and reports whether it is one. A
// change that came second, a session that is not there and a client that has
// gone are none.
func (a *shared) storeError(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, furl.ErrConflict) || errors.Is(err, furl.ErrNoSession) {
		return false
	}
	a.storeErrors.Add(1)
	return true
}

// StoreErrors counts the failures of the store on the way of requests.
func (a *shared) StoreErrors() int64 { return a.storeErrors.Load() }

// InMemory is how many sessions are open in memory, of all tenants, and about how
// many bytes of memory they take.
func (a *shared) InMemory() (sessions int, bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.open {
		bytes += c.s.size.Load()
	}
	return len(a.open), bytes
}

// OpenInMemory is how many of the tenant's sessions are open in memory.
func (a *Sessions) OpenInMemory() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key := range a.open {
		if key.Tenant == a.tenant {
			n++
		}
	}
	return n
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
