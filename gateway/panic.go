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
	g.panicked(r, p)
}

// panicked notes a panic. Its value is left out: there may be anything in it.
func (g *Gateway) panicked(r *http.Request, p any) {
	g.metrics.panics.Inc()
	g.log.Error("furl panicked", "path", upstream.Path(r.URL), "panic", upstream.Panicked(p), "stack", string(debug.Stack()))
}

// contain is deferred around a whole request: the server would log what was
// panicked with. The client's connection is cut, as the server does.
func (g *Gateway) contain(r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p != http.ErrAbortHandler {
		g.panicked(r, p)
	}
	panic(http.ErrAbortHandler)
}
