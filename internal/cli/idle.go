package cli

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/procstat"
)

// Bodies of some megabytes leave as much garbage behind, and the runtime keeps
// twice what it needs. Nobody minds a collection while nothing happens, so the
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

// whenIdle gives memory back to the system after work, until ctx ends: the
// store's first, for some of that is the runtime's.
func whenIdle(ctx context.Context, store furl.Store) error {
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
		if now-before < idleBytes && now-released > idleWorth {
			if g, ok := store.(giver); ok {
				_ = g.GiveBack(ctx) // the next to use the store meets what is wrong with it
			}
			debug.FreeOSMemory()
			released = now
		}
		before = now
	}
}
