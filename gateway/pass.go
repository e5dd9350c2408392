package gateway

import (
	"net/http"
	"strings"

	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/upstream"
)

// pass sends on what furl does not understand, neither reading nor changing it.
func (g *Gateway) pass(w http.ResponseWriter, r *http.Request, prefix string) {
	to := g.destination(r)
	rt := to.route
	n, by := &noted{ResponseWriter: w}, "furl"
	defer func() { g.denied(r, n.status, by) }()
	if !g.admitted(n, r, rt) {
		return
	}
	if to.refusal != nil {
		g.log.Info("a request belongs to no provider and was not sent", "path", upstream.Path(r.URL), "status", to.refusal.Status)
		g.refuse(n, rt, to.refusal)
		return
	}
	u := *r.URL
	u.Path = strings.TrimPrefix(u.Path, prefix)
	u.RawPath = strings.TrimPrefix(u.RawPath, prefix)
	body := g.paced(n, r)
	out := *r
	out.URL, out.Body = &u, body
	g.forward(n, &out, &forwarding{
		transport: rt.up,
		answered:  func(*http.Response) { by = "provider" },
		failed: func(w http.ResponseWriter, err error) {
			if body.late.Load() {
				g.refuse(w, rt, refusalOf(unreadable(errTooSlow)))
				return
			}
			g.fail(w, r, rt, err)
		},
		cut: func(err error) []byte { return g.cutOff(r, rt, err) },
	})
}

// socket answers a client that wants a WebSocket where requests for a model
// come in. It is told to send them one by one: Codex then does so at once, where
// any other answer has it try again and again.
func (g *Gateway) socket(prefix string, rt *route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			g.pass(w, r, prefix)
			return
		}
		n := &noted{ResponseWriter: w}
		if g.admitted(n, r, rt) {
			g.refuse(n, rt, &protocol.Refusal{Status: http.StatusUpgradeRequired, Message: "furl: no WebSocket is spoken here: send each request by POST"})
		}
		g.denied(r, n.status, "furl")
	}
}
