package gateway

import (
	"encoding/json"
	"net/http"

	"github.com/furlhq/furl"
)

// admitted reports whether a request to a provider may go on, and answers it if
// not. Pages of other sites were refused before (pages.go). But a browser does
// not mark a GET request of a page to its own site, whose name may have been
// pointed at this machine (DNS rebinding). So a request without a credential
// must use a name of the gateway.
func (g *Gateway) admitted(w http.ResponseWriter, r *http.Request, rt *route) bool {
	if err := g.guard.admit(r); err != nil {
		g.refuse(w, rt, refusalOf(err))
		return false
	}
	if !shows(r.Header) {
		if err := g.guard.named(r); err != nil {
			g.refuse(w, rt, &furl.Refusal{Status: http.StatusForbidden, Message: "furl: without a key, " + err.Error()})
			return false
		}
	}
	if rt.up != nil {
		if err := rt.up.CheckCredentials(r.URL, r.Header); err != nil {
			g.refuse(w, rt, &furl.Refusal{Status: http.StatusUnauthorized, Message: "furl: " + err.Error() + "; the request was not sent"})
			return false
		}
	}
	return true
}

// shows reports whether a request carries a credential.
func shows(h http.Header) bool {
	for _, name := range []string{"Authorization", "X-Api-Key", clientKeyHeader, "Api-Key", "X-Goog-Api-Key"} {
		if h.Get(name) != "" {
			return true
		}
	}
	return false
}

// local serves furl's own API to its clients, and only under a name of the
// gateway's. It waits until earlier answers are recorded.
func (g *Gateway) local(h http.HandlerFunc) http.HandlerFunc { return g.own(h, (*guard).admit) }

// operated is local for what concerns all tenants.
func (g *Gateway) operated(h http.HandlerFunc) http.HandlerFunc { return g.own(h, (*guard).operate) }

func (g *Gateway) own(h http.HandlerFunc, allow func(*guard, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := g.guard.named(r); err != nil {
			apiError(w, http.StatusForbidden, err.Error())
			g.denied(r, http.StatusForbidden, "furl")
			return
		}
		if err := allow(g.guard, r); err != nil {
			apiError(w, apiStatus(err), err.Error())
			g.denied(r, apiStatus(err), "furl")
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
