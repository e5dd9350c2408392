package gateway

import (
	"math/bits"
	"sync"
)

// The bodies of requests are the largest part of what a gateway allocates: a client sends its
// whole history with each request. So their buffers are used again, which saves a third of
// the garbage collections, and the system need not clear the memory.

// Smaller buffers are not kept because they cost little, and larger ones because they are rare.
const (
	minBuffer = 32 << 10
	maxBuffer = 4 << 20
)

// bufferSteps is the number of sizes for each power of two. At most a fifth of a buffer is
// unused.
const bufferSteps = 4

// buffersBySize are unused buffers by the number of their size. The garbage collector frees
// those that are not used for a while.
var buffersBySize [bufferSteps * 7]sync.Pool

// sizeOfBuffer returns the capacity of a buffer for n bytes, and the number of that size, -1
// if such buffers are not kept.
func sizeOfBuffer(n int) (size, number int) {
	if n <= minBuffer || n > maxBuffer {
		return n, -1
	}
	half := 1 << (bits.Len(uint(n-1)) - 1) // the largest power of two below n
	step := half / bufferSteps
	steps := (n - half + step - 1) / step
	return half + steps*step, bufferSteps*bits.Len(uint(half/minBuffer/2)) + steps - 1
}

// newBuffer returns an empty buffer for n bytes.
func newBuffer(n int) []byte {
	size, number := sizeOfBuffer(n)
	if number >= 0 {
		if b, ok := buffersBySize[number].Get().(*[]byte); ok {
			return (*b)[:0]
		}
	}
	return make([]byte, 0, size)
}

// keepBuffer keeps a buffer for other requests. Nothing may use it any more.
func keepBuffer(b []byte) {
	if size, number := sizeOfBuffer(cap(b)); number >= 0 && size == cap(b) {
		overwrite(b)
		b = b[:0]
		buffersBySize[number].Put(&b)
	}
}

// overwrite overwrites a buffer that is not used any more, in tests.
var overwrite = func([]byte) {}

// keepBuffers keeps the buffers of the call's body, unless they may still be in use: by a
// connection to a provider that responded before it had read the body, by a summary that is
// being written, by a request that pings the provider, or after a panic.
func (c *call) keepBuffers() {
	if !c.clean || c.lent || c.unread.Load() > 0 {
		return
	}
	for _, b := range c.buffers {
		keepBuffer(b)
	}
	c.buffers = nil
}
