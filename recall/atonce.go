package recall

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// readers is how many questions a search has to a store at once, on connections
// of their own: as many as make a store on a server wait for work rather than
// the work for it, but few enough for several searches at a time.
const readers = 4

// processors is how much of a search is computed at once.
func processors() int { return min(readers, runtime.GOMAXPROCS(0)) }

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
