package gateway

import "net/http"

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
