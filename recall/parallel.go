package recall

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// maxReads is how many reads of the store a search makes concurrently, each on a
// connection of its own: enough to keep a database server busy, few enough for
// several searches at a time.
const maxReads = 4

// maxRanking returns how many goroutines rank documents.
func maxRanking() int { return min(maxReads, runtime.GOMAXPROCS(0)) }

// parallel calls do for each number below n, with at most so many goroutines, and
// waits for all calls.
func parallel(n, goroutines int, do func(i int)) {
	if goroutines = min(n, goroutines); goroutines <= 1 {
		for i := range n {
			do(i)
		}
		return
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	all.Wait()
}

// firstError returns the first error that is not nil.
func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
