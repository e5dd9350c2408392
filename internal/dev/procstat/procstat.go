// Package procstat says what the process has used: time, memory, goroutines.
package procstat

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// Usage is what a process has used since it began, or has now.
type Usage struct {
	CPU        time.Duration // of all threads, user and system; 0: unknown here
	RSS        int64         // resident memory now, in bytes; 0: unknown here
	Allocs     uint64        // objects allocated
	AllocBytes uint64
	Heap       uint64 // bytes of objects, garbage not yet collected included
	Goroutines int    // now
}

// Read gives this process's.
func Read() Usage {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return Usage{
		CPU: cpu(), RSS: rss(),
		Allocs: s[0].Value.Uint64(), AllocBytes: s[1].Value.Uint64(), Heap: s[2].Value.Uint64(),
		Goroutines: runtime.NumGoroutine(),
	}
}
