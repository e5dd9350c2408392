package serving

import (
	"testing"
	"time"
)

// Memory is returned when furl is idle, but not between the requests of an agent each time.
func TestIdleMemory(t *testing.T) {
	const mb = 1 << 20
	at, allocated := time.Unix(0, 0), uint64(0)
	var idle idleness
	trimmed := false
	tick := func(after time.Duration, bytes uint64) bool {
		at, allocated = at.Add(after), allocated+bytes
		return idle.due(at, allocated, func() bool { return trimmed })
	}
	for _, step := range []struct {
		what    string
		after   time.Duration
		bytes   uint64
		trimmed bool
		want    bool
	}{
		{"busy from the start", time.Second, 30 * mb, false, false},
		{"idle for the first time", time.Second, 0, false, true},
		{"nothing new", 5 * time.Minute, 0, false, false},
		{"a request", time.Second, 20 * mb, false, false},
		{"idle, long after the last time", time.Second, 0, false, true},
		{"the next request", time.Second, 20 * mb, false, false},
		{"idle again soon", time.Second, mb / 2, false, false},
		{"idle sessions were evicted", time.Second, 0, true, true},
		{"large requests", time.Second, 300 * mb, false, false},
		{"idle soon after much", time.Second, 0, false, true},
		{"a small request", time.Second, 10 * mb, false, false},
		{"too little", 2 * time.Minute, 0, false, false},
		{"another one", time.Second, 10 * mb, false, false},
		{"enough together", time.Second, 0, false, true},
	} {
		trimmed = step.trimmed
		if got := tick(step.after, step.bytes); got != step.want {
			t.Errorf("%s: memory is returned: %t, want %t", step.what, got, step.want)
		}
	}
}
