package gateway

import (
	"sync/atomic"
	"testing"

	"github.com/furlhq/furl/upstream"
)

var kept atomic.Int64

// KeptBuffers returns the number of buffers that were kept for other requests.
func KeptBuffers() int64 { return kept.Load() }

// Each use of a buffer after its request is a wrong byte in tests.
func init() {
	overwrite = func(b []byte) {
		kept.Add(1)
		b = b[:cap(b)]
		for i := range b {
			b[i] = 0xFF
		}
	}
}

func TestBufferSizes(t *testing.T) {
	was, last := 0, -1
	for n := 1; n <= maxBuffer+1; n += 1 + n/1000 {
		size, number := sizeOfBuffer(n)
		switch {
		case n <= minBuffer || n > maxBuffer:
			if size != n || number >= 0 {
				t.Fatalf("%d bytes: size %d, number %d", n, size, number)
			}
			continue
		case size < n || size > n+n/bufferSteps || number < 0 || number >= len(buffersBySize):
			t.Fatalf("%d bytes: size %d, number %d", n, size, number)
		case (size == was) != (number == last):
			t.Fatalf("%d bytes: size %d has number %d, the one before, %d, has %d", n, size, number, was, last)
		}
		if again, same := sizeOfBuffer(size); again != size || same != number {
			t.Fatalf("a buffer of %d bytes has number %d, for %d", size, same, number)
		}
		was, last = size, number
	}
}

func TestBufferInUseIsNotKept(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(c *call)
		want int64
	}{
		{"the call has ended", func(c *call) { c.clean = true }, 2},
		{"it has panicked", func(*call) {}, 0},
		{"a summary is being written", func(c *call) { c.clean, c.lent = true, true }, 0},
		{"the provider may still read it", func(c *call) { c.clean = true; upstream.NewBody([]byte("text"), &c.unread) }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &call{buffers: [][]byte{newBuffer(100_000), newBuffer(1_000_000), newBuffer(100)}} // the last is too small
			tt.set(c)
			before := KeptBuffers()
			if c.keepBuffers(); KeptBuffers()-before != tt.want {
				t.Errorf("%d buffers are kept, want %d", KeptBuffers()-before, tt.want)
			}
		})
	}
}
