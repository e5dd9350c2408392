package serving

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/furlhq/furl/session"
)

// Requests of several megabytes leave as much garbage, and the runtime keeps twice the
// memory that it needs. A garbage collection while furl is idle delays no request, so
// memory is returned to the system then. But it costs as much CPU time as 10 to 30
// requests of 57 KB, and the system clears the memory again that the next requests need. An
// agent is idle for a second between most of its requests, so this is not done each time.
const (
	idleEvery = time.Second
	idleBytes = 1 << 20     // furl is idle if it allocates less in that time
	idlePause = time.Minute // least time between two collections
	idleWorth = 16 << 20    // least allocation between two collections
	idleMuch  = 256 << 20   // allocation after which the pause does not count
)

// idleness says when memory is to be returned.
type idleness struct {
	before   uint64 // bytes allocated at the last tick
	released uint64 // and when memory was last returned
	at       time.Time
}

// due reports whether memory is to be returned now, after allocated bytes since the start. trim
// releases memory of idle sessions, and reports whether there was any.
func (i *idleness) due(now time.Time, allocated uint64, trim func() bool) bool {
	idle := allocated-i.before < idleBytes
	i.before = allocated
	if !idle {
		return false
	}
	since := allocated - i.released
	if !trim() && since <= idleMuch && (since <= idleWorth || now.Sub(i.at) < idlePause) {
		return false
	}
	i.released, i.at = allocated, now
	return true
}

// giver is a store that can release memory.
type giver interface {
	GiveBack(ctx context.Context) error
}

// allocated returns the number of bytes that the process has allocated since it started.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// WhenIdle returns memory to the system when furl is idle, until ctx ends. It first
// releases memory of idle sessions and of the store.
func WhenIdle(ctx context.Context, sessions *session.Sessions) error {
	tick := time.NewTicker(idleEvery)
	defer tick.Stop()
	var idle idleness
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			if !idle.due(now, allocated(), sessions.Trim) {
				continue
			}
			if g, ok := sessions.Store().(giver); ok {
				_ = g.GiveBack(ctx) // the next use of the store returns the error
			}
			debug.FreeOSMemory()
		}
	}
}
