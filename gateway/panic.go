package gateway

import (
	"net/http"
	"runtime/debug"

	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// survive is deferred around what furl does with a request before it is sent
// on. Where that panics, which nothing should make it do, the request goes on
// as it came, as with any failure of furl's own part. What is in memory may be
// half changed, so it is let go of and read again.
func (g *Gateway) survive(r *http.Request, x **session.Exchange) {
	p := recover()
	if p == nil {
		return
	}
	*x = nil
	g.sessions.Drop()
	g.panicked(upstream.Path(r.URL), p)
}

// panicked notes a panic over something asked for at a path. Its value is left
// out: there may be anything in it.
func (g *Gateway) panicked(path string, p any) {
	g.metrics.panics.Inc()
	g.log.Error("furl panicked", "path", path, "panic", upstream.Panicked(p), "stack", string(debug.Stack()))
}

// contain is deferred around a whole request: the server would log what was
// panicked with. The client's connection is cut, as the server does.
func (g *Gateway) contain(r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p != http.ErrAbortHandler {
		g.panicked(upstream.Path(r.URL), p)
	}
	panic(http.ErrAbortHandler)
}

// containAfter is deferred around what runs when nobody is there any more whose
// connection could be cut.
func (g *Gateway) containAfter(path string) {
	if p := recover(); p != nil {
		g.panicked(path, p)
	}
}

// containSummary is deferred around the writing of a summary, like survive:
// where it panics, what is in memory is let go of.
func (g *Gateway) containSummary(path string) {
	if p := recover(); p != nil {
		g.sessions.Drop()
		g.panicked(path, p)
	}
}
