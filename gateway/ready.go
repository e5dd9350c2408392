package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/furlhq/furl/storage"
)

// readyWait is the timeout of the store's readiness check. Readiness probes have
// short timeouts themselves.
const readyWait = 2 * time.Second

// readyFor is how long a result of the store's readiness check is used. Balancers and
// probes that check more often share it.
const readyFor = time.Second

// reach is whether the store could be reached last. The zero value is ready.
type reach struct {
	mu   sync.Mutex
	last *reached
}

// reached is one check. err and until are set when done is closed.
type reached struct {
	done  chan struct{}
	err   error
	until time.Time
}

// store returns an error if the store cannot be read. Of checks at the same moment the
// first one asks the store, and the others wait for its result.
func (r *reach) store(ctx context.Context, s storage.Store) error {
	r.mu.Lock()
	one := r.last
	if one == nil || one.over(time.Now()) {
		one = &reached{done: make(chan struct{})}
		r.last = one
		r.mu.Unlock()
		defer close(one.done)
		// The others need the result also if the client of this request has gone.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyWait)
		defer cancel()
		one.err = storage.Ping(ctx, s)
		one.until = time.Now().Add(readyFor)
		return one.err
	}
	r.mu.Unlock()
	select {
	case <-one.done:
		return one.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// over reports whether the check is done and its result too old.
func (o *reached) over(now time.Time) bool {
	select {
	case <-o.done:
		return !now.Before(o.until)
	default:
		return false
	}
}
