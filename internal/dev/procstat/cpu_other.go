//go:build !unix

package procstat

import "time"

func cpu() time.Duration { return 0 }
