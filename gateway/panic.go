package gateway

import (
	"net/http"
	"runtime/debug"

	"github.com/furlhq/furl/upstream"
)

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

// containSummary is deferred around the writing of a summary. If it
// panics, what is in memory may be half changed, and is dropped.
func (g *Gateway) containSummary(path string) {
	if p := recover(); p != nil {
		g.sessions.Drop()
		g.panicked(path, p)
	}
}
