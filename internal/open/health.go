package open

import (
	"sync/atomic"
	"time"
)

// storeHealth tracks whether appends to the store succeed. A store on a full disk can
// still be read.
type storeHealth struct{ lastFailure atomic.Pointer[time.Time] } // nil if the last append succeeded

// failureTTL is how long a failure counts without further appends.
const failureTTL = time.Minute

func (r *storeHealth) failed() {
	now := time.Now()
	r.lastFailure.Store(&now)
}

func (r *storeHealth) succeeded() {
	if r.lastFailure.Load() != nil {
		r.lastFailure.Store(nil)
	}
}

// failing reports whether the last append failed, within the last minute.
func (r *storeHealth) failing() bool {
	since := r.lastFailure.Load()
	return since != nil && time.Since(*since) < failureTTL
}
