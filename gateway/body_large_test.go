package gateway

import (
	"bytes"
	"io"
	"runtime"
	"testing"
)

// Room for a large body is not made again and again as it comes.
func TestReadAllMakesLittleRoom(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 40<<20/16)
	for _, test := range []struct {
		length int64
		most   float64 // times the body's size
	}{
		{int64(len(body)), 1.6},
		{-1, 4},
		{10, 4},          // it says less than it sends
		{1<<63 - 1, 4.5}, // and more
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := readAll(struct{ io.Reader }{bytes.NewReader(body)}, test.length)
		runtime.ReadMemStats(&after)
		if err != nil || !bytes.Equal(got, body) {
			t.Fatalf("length %d: got %d bytes, %v", test.length, len(got), err)
		}
		if times := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(body)); times > test.most {
			t.Errorf("length %d: made room for %.1f times the body, want at most %.1f", test.length, times, test.most)
		}
	}
}
