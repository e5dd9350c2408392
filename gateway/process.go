package gateway

import (
	"fmt"
	"io"

	"github.com/furlhq/furl/internal/procstat"
)

// process writes what the process uses, under the names that Prometheus has
// for it.
func process(w io.Writer) {
	u := procstat.Read()
	gauge := func(name, help string, n int64) {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s gauge\n%s %d\n", name, help, name, name, n)
	}
	gauge("go_goroutines", "goroutines now", int64(u.Goroutines))
	gauge("go_memstats_heap_alloc_bytes", "bytes of objects on the heap, garbage not yet collected included", int64(u.Heap))
	if u.RSS > 0 {
		gauge("process_resident_memory_bytes", "resident memory", u.RSS)
	}
	counter(w, "go_memstats_mallocs_total", "objects allocated", int64(u.Allocs))
	counter(w, "go_memstats_alloc_bytes_total", "bytes allocated", int64(u.AllocBytes))
	if u.CPU > 0 {
		fmt.Fprintf(w, "# HELP process_cpu_seconds_total time of all threads, user and system\n# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total %f\n", u.CPU.Seconds())
	}
}
