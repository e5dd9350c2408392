package gateway

import (
	"net/http"

	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/upstream"
)

// passThrough forwards a request that furl does not decode, unchanged.
func (g *Gateway) passThrough(w http.ResponseWriter, r *http.Request, to *destination) {
	rt := to.route
	n, by := &statusWriter{ResponseWriter: w}, "furl"
	defer func() { g.logDenied(r, n.status, by) }()
	r, ok := g.authorizeRequest(n, r, rt)
	if !ok {
		return
	}
	end, refusal := g.begin(n.Header(), r)
	if refusal != nil {
		g.refuse(n, rt, refusal)
		return
	}
	bytes := func() int64 { return 0 } // that are forwarded
	defer func() { end(bytes()) }()
	if to.refusal != nil {
		g.log.Info("request refused: unknown provider", "path", upstream.Path(r.URL), "status", to.refusal.Status)
		g.refuse(n, rt, to.refusal)
		return
	}
	body := g.newPacedBody(n, r)
	out := *r
	out.Body = body
	bytes = func() int64 { return body.n + n.written }
	g.forward(n, &out, &forwarding{
		transport:       rt.up,
		responseStarted: func(*http.Response) { by = "provider" },
		failed: func(w http.ResponseWriter, err error) {
			if body.timedOut.Load() {
				g.refuse(w, rt, refusalOf(bodyError(errTooSlow)))
				return
			}
			g.fail(w, r, rt, err)
		},
		cutOff: func(err error) []byte { return g.cutOff(r, rt, err) },
	})
}

// refuseWebSocket refuses a WebSocket upgrade on the path of a model, with status 426.
// Codex then sends POST requests at once; on any other status it keeps retrying.
func (g *Gateway) refuseWebSocket(w http.ResponseWriter, r *http.Request, rt *route) {
	n := &statusWriter{ResponseWriter: w}
	if _, ok := g.authorizeRequest(n, r, rt); ok {
		g.refuse(n, rt, &protocol.Refusal{Status: http.StatusUpgradeRequired, Message: "furl: WebSocket is not supported; send each request by POST"})
	}
	g.logDenied(r, n.status, "furl")
}
