package gateway

import (
	"net/http"
	"strings"

	"github.com/furlhq/furl"
)

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
			g.refuse(n, rt, &furl.Refusal{Status: http.StatusUpgradeRequired, Message: "furl: no WebSocket is spoken here: send each request by POST"})
		}
		g.denied(r, n.status, "furl")
	}
}
