package gateway

import (
	"fmt"
	"net/http"
)

// root serves GET / to people who open the gateway's address in a browser: the page,
// or a text if there is none. Other clients get the provider's response.
func (g *Gateway) root(w http.ResponseWriter, r *http.Request) {
	if g.forPage(r) {
		g.forVisitors(g.visit)(w, r)
		return
	}
	if !acceptsHTML(r) || hasCredential(r.Header) || g.checkHost(r) != nil {
		g.provider(w, r)
		return
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	base := scheme + "://" + r.Host
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprintf(w, `This is the gateway of furl. It keeps agents within their context window.

Its address is for agents, not for browsers:
  ANTHROPIC_BASE_URL=%s
  OPENAI_BASE_URL=%[1]s/v1
  GOOGLE_GEMINI_BASE_URL=%[1]s

In a terminal:
  furl run -- AGENT            start an agent that uses furl
  furl sessions                list the recorded sessions
  furl show latest --view      print what the model sees
  furl stats                   show the size of the store
  furl doctor --gateway        check this gateway

For programs: %[1]s/furl/v1/sessions, /metrics, /healthz and /readyz (docs/operate/api.md).
`, base)
}
