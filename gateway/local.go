package gateway

import (
	"encoding/json"
	"net/http"

	"github.com/furlhq/furl"
)

// admitted reports whether a request to a provider may go on, and answers it if
// not. One without any credential is a stranger's until its headers say
// otherwise: it could come from any page that a browser on this machine shows,
// and would be recorded, or answered by a provider that asks for no key. A page
// whose own name leads here can make one up.
func (g *Gateway) admitted(w http.ResponseWriter, r *http.Request, rt *route) bool {
	if !g.guard.admit(r.Header) {
		g.refuse(w, rt, &furl.Refusal{Status: http.StatusUnauthorized, Message: "furl: this gateway asks for a key of its own in " + clientKeyHeader})
		return false
	}
	if err := g.guard.rebound(r); err != nil {
		g.refuse(w, rt, &furl.Refusal{Status: http.StatusForbidden, Message: "furl: " + err.Error()})
		return false
	}
	if rt.up != nil {
		if err := rt.up.CheckCredentials(r.URL, r.Header); err != nil {
			g.refuse(w, rt, &furl.Refusal{Status: http.StatusUnauthorized, Message: "furl: " + err.Error() + "; the request was not sent"})
			return false
		}
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
// of other sites. It knows of what was answered before.
func (g *Gateway) local(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := g.guard.local(r); err != nil {
			apiError(w, http.StatusForbidden, err.Error())
			g.denied(r, http.StatusForbidden, "furl")
			return
		}
		if !g.guard.admit(r.Header) {
			apiError(w, http.StatusUnauthorized, "this gateway asks for a key in "+clientKeyHeader)
			g.denied(r, http.StatusUnauthorized, "furl")
			return
		}
		g.wait(r.Context())
		h(w, r)
	}
}

// apiError answers in the shape of furl's own errors.
func apiError(w http.ResponseWriter, status int, message string) {
	apiHead(w, status)
	_ = json.NewEncoder(w).Encode(apiErrorJSON(status, message)) // the client has gone if not
}

func apiErrorJSON(status int, message string) any {
	return map[string]any{"error": map[string]any{"message": message, "status": status}}
}

// apiHead begins an answer in JSON.
func apiHead(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
}
