package procstat

import (
	"runtime"
	"testing"
)

func TestRead(t *testing.T) {
	before := Read()
	kept := make([][]byte, 0, 1000)
	for range 1000 {
		kept = append(kept, make([]byte, 1<<10))
	}
	after := Read()
	runtime.KeepAlive(kept)
	// The runtime counts the objects of a span when it begins another one.
	const span = 8
	if d := after.AllocBytes - before.AllocBytes; d < (1000-span)<<10 {
		t.Errorf("a thousand kilobytes count as %d bytes", d)
	}
	if after.Allocs < before.Allocs+1000-span || after.Heap == 0 || after.Goroutines < 2 {
		t.Errorf("%+v after %+v", after, before)
	}
	if runtime.GOOS == "linux" && (after.CPU == 0 || after.RSS < 1<<20) {
		t.Errorf("no time or memory: %+v", after)
	}
}
