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

// now reports whether the store did not take what was to be recorded last, within
// the last minute.
func (r *refusing) now() bool {
	since := r.since.Load()
	return since != nil && time.Since(*since) < doubted
}
