//go:build !unix

package recallbench

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }
