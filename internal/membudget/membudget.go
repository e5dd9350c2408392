// Package membudget limits the memory of decoded requests and recordings. The
// limit applies to an estimate from what is known before decoding: the number
// of bytes, and the number of parts.
package membudget

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Sessions, and what was decoded for them, that are idle for IdleAfter have most
// likely ended. They get one IdleShare-th of the memory that is kept for reuse.
const (
	IdleAfter = 2 * time.Minute
	IdleShare = 4
)

// The costs of a request in progress: decoded, matched, recorded, planned and
// encoded. A part is a message, a block, a tool or a system block. Measured
// with
//
//	go test ./gateway -run - -bench RequestMemory -benchtime 1x
//
// which reports up to 2,300 bytes for a one-word message and 4.9 for each
// byte of longer messages. The rest is for garbage that is not collected yet.
const (
	PerPart = 3 << 10
	PerByte = 5
	// PerValue is the cost of each JSON value while arguments of calls and
	// media inside results are decoded: 340 bytes for a field of a call's
	// arguments.
	PerValue = 384
)

// Request estimates the memory of a request with the given numbers of bytes,
// parts and JSON values, without its body.
func Request(bytes, parts, values int) int64 {
	return int64(bytes)*PerByte + int64(parts)*PerPart + int64(values)*PerValue
}

// The costs of a session in memory: its records, and the log and the state
// made of them. The same benchmark reports up to 1,300 bytes for a one-word
// message and 2.3 for each byte of longer messages, including caches for
// decoding the next request.
const (
	PerRecord     = 1 << 10
	PerRecordByte = 2
)

// Session estimates the memory of a session with the given number of records
// and bytes of messages on the wire.
func Session(bytes, records int64) int64 { return bytes*PerRecordByte + records*PerRecord }

var (
	// ErrTooLarge reports that something is larger than the whole budget.
	ErrTooLarge = errors.New("larger than the memory budget")
	// ErrBusy reports that too many callers already wait for the budget.
	ErrBusy = errors.New("the memory budget is used up")
)

// Budget is a shared number of bytes. It is safe for concurrent use. Create
// one with New.
type Budget struct {
	limit      int64
	maxWaiting int

	mu      sync.Mutex
	used    int64
	waiting []*waiter // in order of arrival
}

type waiter struct {
	n       int64
	granted chan struct{} // closed when the bytes are granted
}

// New returns a budget of limit bytes for which at most maxWaiting callers
// wait.
func New(limit int64, maxWaiting int) *Budget {
	return &Budget{limit: limit, maxWaiting: maxWaiting}
}

// Limit returns the size of the budget in bytes.
func (b *Budget) Limit() int64 { return b.limit }

// Used returns the number of bytes in use.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// TryAcquire acquires n bytes if they are free, and reports whether they
// were.
func (b *Budget) TryAcquire(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+n > b.limit {
		return false
	}
	b.used += n
	return true
}

// Acquire acquires n bytes, and waits until they are free. Smaller requests
// may overtake larger ones that do not fit, so that a large request does not
// block small ones. The error is ErrTooLarge, ErrBusy, or that of ctx.
func (b *Budget) Acquire(ctx context.Context, n int64) error {
	b.mu.Lock()
	switch {
	case n > b.limit:
		b.mu.Unlock()
		return ErrTooLarge
	case b.used+n <= b.limit:
		b.used += n
		b.mu.Unlock()
		return nil
	case len(b.waiting) >= b.maxWaiting:
		b.mu.Unlock()
		return ErrBusy
	}
	w := &waiter{n: n, granted: make(chan struct{})}
	b.waiting = append(b.waiting, w)
	b.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.waiting, w); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
		return ctx.Err()
	}
	return nil // granted meanwhile
}

// Release returns n bytes to the budget.
func (b *Budget) Release(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	b.waiting = slices.DeleteFunc(b.waiting, func(w *waiter) bool {
		if b.used+w.n > b.limit {
			return false
		}
		b.used += w.n
		close(w.granted)
		return true
	})
}
