package session

import (
	"sync/atomic"
	"time"
)

// refusing says whether the store takes what is to be recorded: a full disk
// can still be read.
type refusing struct{ since atomic.Pointer[time.Time] } // when it took nothing last; nil: it took what came last

// doubted is how long a store is taken to refuse what comes, if nothing comes:
// only the next request can tell.
const doubted = time.Minute

func (r *refusing) refused() {
	now := time.Now()
	r.since.Store(&now)
}

func (r *refusing) took() {
	if r.since.Load() != nil {
		r.since.Store(nil)
	}
}

// StoreRefuses reports whether the store has not taken what was to be recorded
// last, within the last minute: requests go on, and nothing is kept of them.
func (a *shared) StoreRefuses() bool {
	since := a.refusing.since.Load()
	return since != nil && time.Since(*since) < doubted
}
