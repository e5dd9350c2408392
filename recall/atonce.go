package recall

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// readers is how much of a search runs at once: as many buckets are read side
// by side, on connections of their own, as there are processors for what they
// hold, but few enough for several searches at a time.
func readers() int { return min(4, runtime.GOMAXPROCS(0)) }

// eachAtOnce does something with each number below n, as many at once as it
// may, and waits for all.
func eachAtOnce(n, atOnce int, do func(i int)) {
	if atOnce = min(n, atOnce); atOnce <= 1 {
		for i := range n {
			do(i)
		}
		return
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	all.Wait()
}
