package gateway

import (
	"net/http"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/upstream"
)

// pass sends on what furl has no business with, neither reading nor changing it.
func (g *Gateway) pass(w http.ResponseWriter, r *http.Request, only *upstream.Client, prefix string) {
	rt := g.routeTo(only)
	if only == nil {
		rt = g.routeOf(r)
	}
	if !g.admitted(w, r, rt) {
		return
	}
	u := *r.URL
	u.Path = strings.TrimPrefix(u.Path, prefix)
	u.RawPath = strings.TrimPrefix(u.RawPath, prefix)
	body := g.paced(w, r)
	resp, err := rt.up.Do(r.Context(), &upstream.Request{Method: r.Method, URL: &u, Header: r.Header, Stream: body, Length: r.ContentLength})
	if err != nil && body.late.Load() {
		g.refuse(w, rt, refusalOf(unreadable(errTooSlow)))
		return
	}
	g.relay(w, r, rt, resp, err, nil)
}

// ready says whether requests can be served.
func (g *Gateway) ready(w http.ResponseWriter, r *http.Request) {
	if g.draining.Load() {
		http.Error(w, "draining", http.StatusServiceUnavailable)
		return
	}
	for _, err := range g.sessions.Store().Sessions(r.Context(), "", furl.SessionQuery{Limit: 1}) {
		if err != nil {
			http.Error(w, "the store cannot be read", http.StatusServiceUnavailable)
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}
