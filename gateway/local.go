package gateway

import (
	"net/http"

	"github.com/furlhq/furl"
)

// admitted reports whether a request to a provider may go on, and answers it if
// not. One without any credential is a stranger's until its headers say
// otherwise: it could come from any page that a browser on this machine shows,
// and would be recorded, or answered by a provider that asks for no key.
func (g *Gateway) admitted(w http.ResponseWriter, r *http.Request, rt *route) bool {
	if !g.guard.admit(r.Header) {
		g.refuse(w, rt, &furl.Refusal{Status: http.StatusUnauthorized, Message: "furl: this gateway asks for a key of its own in " + clientKeyHeader})
		return false
	}
	if shows(r.Header) || r.Method == http.MethodOptions { // a page asks with it whether it may
		return true
	}
	if err := g.guard.local(r); err != nil {
		g.refuse(w, rt, &furl.Refusal{Status: http.StatusForbidden, Message: "furl: without a key, " + err.Error()})
		return false
	}
	return true
}

// shows reports whether a request carries a credential, which no foreign page
// can make a browser add.
func shows(h http.Header) bool {
	for _, name := range []string{"Authorization", "X-Api-Key", clientKeyHeader, "Api-Key", "X-Goog-Api-Key"} {
		if h.Get(name) != "" {
			return true
		}
	}
	return false
}

// local serves what is furl's own: only to who has the key, and not to pages
// of other sites.
func (g *Gateway) local(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := g.guard.local(r); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		if !g.guard.admit(r.Header) {
			http.Error(w, "this gateway asks for a key in "+clientKeyHeader, http.StatusUnauthorized)
			return
		}
		h(w, r)
	}
}
