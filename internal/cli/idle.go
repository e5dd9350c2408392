package cli

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/furlhq/furl/internal/procstat"
	"github.com/furlhq/furl/session"
)

// Requests of several megabytes leave as much garbage, and the runtime keeps twice the
// memory that it needs. A garbage collection while furl is idle delays no request, so
// memory is returned to the system then.
const (
	idleEvery = time.Second
	idleBytes = 1 << 20  // furl is idle if it allocates less in that time
	idleWorth = 16 << 20 // least allocation between two collections
)

// giver is a store that can release memory.
type giver interface {
	GiveBack(ctx context.Context) error
}

// whenIdle returns memory to the system when furl is idle, until ctx ends. It first
// releases memory of idle sessions and of the store.
func whenIdle(ctx context.Context, sessions *session.Sessions) error {
	tick := time.NewTicker(idleEvery)
	defer tick.Stop()
	var before, released uint64 // bytes allocated at these times
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := procstat.Allocated()
		if now-before < idleBytes && (sessions.Trim() || now-released > idleWorth) {
			if g, ok := sessions.Store().(giver); ok {
				_ = g.GiveBack(ctx) // the next use of the store returns the error
			}
			debug.FreeOSMemory()
			released = now
		}
		before = now
	}
}
