package gateway

import (
	"context"
	"sync"
	"time"
)

// A client's answer ends when its handler returns, so what is left to do for
// furl itself, above all to record the answer, is done after that. A client
// that asks on meanwhile is waited for in package session; whoever looks at
// furl's own API sees what was answered before.

// afters is the work that goes on behind requests which are over.
type afters struct {
	mu   sync.Mutex
	open map[chan struct{}]struct{}
}

// run runs f on a goroutine of its own.
func (a *afters) run(f func()) {
	done := make(chan struct{})
	a.mu.Lock()
	if a.open == nil {
		a.open = make(map[chan struct{}]struct{})
	}
	a.open[done] = struct{}{}
	a.mu.Unlock()
	go func() {
		defer func() {
			a.mu.Lock()
			delete(a.open, done)
			a.mu.Unlock()
			close(done)
		}()
		f()
	}()
}

// wait waits for what is under way now, and not for what comes in the meantime.
func (a *afters) wait(ctx context.Context) {
	a.mu.Lock()
	open := make([]chan struct{}, 0, len(a.open))
	for done := range a.open {
		open = append(open, done)
	}
	a.mu.Unlock()
	for _, done := range open {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// maxAfter bounds how long whoever looks waits for what is being recorded.
const maxAfter = 5 * time.Second

// wait is Wait for who looks.
func (g *Gateway) wait(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, maxAfter)
	defer cancel()
	g.Wait(ctx)
}

// Wait waits until what clients have been answered is recorded, or ctx ends: a
// client has the end of an answer a moment before that.
func (g *Gateway) Wait(ctx context.Context) { g.afters.wait(ctx) }

// after has something done once the client's answer has ended, in the order in
// which it was asked for and before what finally was given.
func (c *call) after(f func()) { c.afters = append(c.afters, f) }

// finally has something done when all of the request is over, last first.
func (c *call) finally(f func()) { c.last = append(c.last, f) }

// end ends what follow began. It is deferred by the handler. An error that the
// client was answered is told to the log, whoever it was from.
func (c *call) end() {
	c.took = time.Since(c.begun)
	if c.status >= 400 {
		by := "furl"
		if c.answers {
			by = "provider"
		}
		c.g.log.Info("answered with an error", "path", c.path, "status", c.status, "by", by, "model", c.model, "took", c.took)
	}
	if len(c.afters) == 0 {
		c.finish()
		return
	}
	c.g.afters.run(func() {
		defer c.finish()
		defer c.g.containAfter(c.path)
		for _, f := range c.afters {
			f()
		}
	})
}

// finish is the end of the end.
func (c *call) finish() {
	defer c.g.containAfter(c.path)
	defer func() {
		c.g.underWay.Add(-1)
		c.trace.end(c.status)
		c.g.metrics.ended(string(c.format), c.model, c.status, c.took)
	}()
	for _, f := range c.last {
		defer f()
	}
}
