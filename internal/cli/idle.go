package cli

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/furlhq/furl/internal/procstat"
	"github.com/furlhq/furl/session"
)

// Bodies of some megabytes leave as much garbage after, and the runtime keeps
// twice what it needs. A collection costs nothing while nothing happens, so the
// memory is given back then.
const (
	idleEvery = time.Second
	idleBytes = 1 << 20  // allocated in that time at most: nothing happens
	idleWorth = 16 << 20 // allocated since the last time at least
)

// giver is a store that has memory of its own to give back.
type giver interface {
	GiveBack(ctx context.Context) error
}

// whenIdle gives memory back to the system after work, until ctx ends: first
// what sessions that rest hold, and the store, for that is the runtime's.
func whenIdle(ctx context.Context, sessions *session.Sessions) error {
	tick := time.NewTicker(idleEvery)
	defer tick.Stop()
	var before, released uint64 // allocated until then
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := procstat.Allocated()
		if now-before < idleBytes && (sessions.Trim() || now-released > idleWorth) {
			if g, ok := sessions.Store().(giver); ok {
				_ = g.GiveBack(ctx) // the next to use the store meets what is wrong with it
			}
			debug.FreeOSMemory()
			released = now
		}
		before = now
	}
}
