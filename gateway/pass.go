package gateway

import (
	"net/http"
	"strings"

	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/upstream"
)

// passThrough forwards a request that furl does not decode, unchanged.
func (g *Gateway) passThrough(w http.ResponseWriter, r *http.Request, prefix string) {
	if prefix == "" && (r.URL.Path == "/furl" || strings.HasPrefix(r.URL.Path, "/furl/")) {
		apiError(w, http.StatusNotFound, "unknown path of furl; the request was not sent to a provider")
		return
	}
	to := g.destination(r)
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
	u := *r.URL
	u.Path = strings.TrimPrefix(u.Path, prefix)
	u.RawPath = strings.TrimPrefix(u.RawPath, prefix)
	body := g.newPacedBody(n, r)
	out := *r
	out.URL, out.Body = &u, body
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

// refuseWebSocket returns the handler that refuses WebSocket upgrades on the
// paths of models, with status 426. Codex then sends POST requests at once; on
// any other status it keeps retrying.
func (g *Gateway) refuseWebSocket(prefix string, rt *route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			g.passThrough(w, r, prefix)
			return
		}
		n := &statusWriter{ResponseWriter: w}
		if _, ok := g.authorizeRequest(n, r, rt); ok {
			g.refuse(n, rt, &protocol.Refusal{Status: http.StatusUpgradeRequired, Message: "furl: WebSocket is not supported; send each request by POST"})
		}
		g.logDenied(r, n.status, "furl")
	}
}
