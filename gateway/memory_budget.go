package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/furlhq/furl/internal/membudget"
)

// The memory of all requests under way together, in bytes: their bodies as
// they were sent, and what they become once they are decoded (package
// membudget). A request waits for room, up to Options.MemoryWait; then it is refused with
// 503. Together with the sessions in memory (session.Options.MaxMemory) and
// the program itself this keeps a gateway below 1.5 GB.
const (
	maxBodies  = 192 << 20
	maxDecoded = 448 << 20
	memoryWait = 30 * time.Second
	maxWaiting = 1024 // requests
)

var errNoMemory = errors.New("the requests under way use all the memory there is for them; try again")

// acquire takes n bytes of a budget, and waits for them up to Options.MemoryWait.
// The error has the status to answer with, or is membudget.ErrTooLarge or that
// of ctx.
func (g *Gateway) acquire(ctx context.Context, budget *membudget.Budget, n int64) error {
	waiting, cancel := context.WithTimeout(ctx, g.o.MemoryWait)
	defer cancel()
	err := budget.Acquire(waiting, n)
	switch {
	case err == nil, ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, membudget.ErrTooLarge):
		return err
	}
	return &statusError{http.StatusServiceUnavailable, errNoMemory}
}

// decodable acquires the memory that a request takes once it is decoded, until
// its call is over. It reports false if the request has more parts than furl
// deals with, or would take more memory than there is for all.
func (g *Gateway) decodable(ctx context.Context, body []byte) (bool, error) {
	n, parts := memoryOf(body)
	if parts > maxParts {
		return false, nil
	}
	switch err := g.acquire(ctx, g.decoded, n); {
	case errors.Is(err, membudget.ErrTooLarge):
		return false, nil
	case err != nil:
		return false, err
	}
	callOf(ctx).finally(func() { g.decoded.Release(n) })
	return true, nil
}

// aheadOf is how many bytes of a body are read before room for the rest is
// reserved: clients that announce a body and never send it hold no memory.
const aheadOf = 1 << 20

// counted acquires the bytes of a body while they are read.
type counted struct {
	io.Reader
	budget      *membudget.Budget
	reserve     func(n int64) error // waits
	length      int64               // of all of it, 0 or less if unknown
	reserved, n int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	more := c.n - c.reserved
	switch {
	case more <= 0:
	case c.n > aheadOf && c.length > c.n: // once: then all of it is reserved
		if err := c.reserve(c.length - c.reserved); err != nil {
			return n, err
		}
		c.reserved = c.length
	case !c.budget.TryAcquire(more):
		return n, membudget.ErrBusy
	default:
		c.reserved += more
	}
	return n, err
}

// release gives back what the body has acquired.
func (c *counted) release() { c.budget.Release(c.reserved) }
