package gateway

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/furlhq/furl"
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

// ready says whether requests can be served.
func (g *Gateway) ready(w http.ResponseWriter, r *http.Request) {
	if why := g.notReady(r.Context()); why != "" {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// readyWait bounds how long the store may take to say that it is there: who asks
// waits a second or two, and a store that is slower is not ready.
const readyWait = 2 * time.Second

// notReady says why requests cannot be served, "" if they can.
func (g *Gateway) notReady(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	if g.draining.Load() {
		return "draining"
	}
	for _, err := range g.sessions.Store().Sessions(ctx, "", furl.SessionQuery{Limit: 1}) {
		if err != nil {
			return "the store cannot be read"
		}
	}
	if g.sessions.StoreRefuses() {
		return "the store takes nothing: requests go on and are not recorded; the log says why"
	}
	return ""
}
