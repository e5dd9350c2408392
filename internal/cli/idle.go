package cli

import (
	"context"
	"runtime/debug"
	"time"

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

// whenIdle gives memory back to the system after work, until ctx ends.
func whenIdle(ctx context.Context) error {
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
			debug.FreeOSMemory()
			released = now
		}
		before = now
	}
}
