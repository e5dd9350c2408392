package gateway

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire"
)

// route is one path of the providers' APIs.
type route struct {
	codec wire.API
	up    *upstream.Client
	// foreign is an API that furl does not serve, in place of codec and up.
	foreign *foreignAPI
	// count marks the request for a prompt's size: the view is applied to
	// it, and nothing is recorded.
	count bool
}

// prefixes before a path say whose API it belongs to. Without one the path says
// so itself, see destination.go.
var prefixes = map[string]providerAPI{"": unknownAPI, "/anthropic": anthropicAPI, "/openai": openaiAPI}

// routes says what is served where.
func (g *Gateway) routes() {
	g.mux = http.NewServeMux()
	messages, chat, responses := wire.For(furl.FormatAnthropic), wire.For(furl.FormatChat), wire.For(furl.FormatResponses)
	for prefix, only := range prefixes {
		if up := g.up.Anthropic; up != nil && only != openaiAPI {
			g.handle(prefix, "/v1/messages", &route{codec: messages, up: up})
			g.handle(prefix, "/v1/messages/count_tokens", &route{codec: messages, up: up, count: true})
		}
		if up := g.up.OpenAI; up != nil && only != anthropicAPI {
			g.handle(prefix, "/v1/chat/completions", &route{codec: chat, up: up})
			g.handle(prefix, "/deployments/{deployment}/chat/completions", &route{codec: chat, up: up})
			g.handle(prefix, "/v1/responses", &route{codec: responses, up: up})
		}
		pass := func(w http.ResponseWriter, r *http.Request) { g.pass(w, r, prefix) }
		if prefix != "" { // or the server would send the client to it with a slash
			g.mux.HandleFunc(prefix, pass)
		}
		g.mux.HandleFunc(prefix+"/", pass)
	}
	g.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	g.mux.HandleFunc("GET /readyz", g.ready)
	g.mux.HandleFunc("GET /metrics", g.operated(g.metrics.handler()))
	g.api()
}

// handle serves a path of a provider's API, also where the client's base URL
// does not hold the version or holds it twice, and with a slash at the end.
// Azure names the version in a parameter, and not in the path.
func (g *Gateway) handle(prefix, path string, rt *route) {
	path, versioned := strings.CutPrefix(path, "/v1")
	h := func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, prefix), "/")
		r.URL.RawPath = ""
		for strings.HasPrefix(r.URL.Path, "/v1/v1/") {
			r.URL.Path = strings.TrimPrefix(r.URL.Path, "/v1")
		}
		if versioned && !strings.HasPrefix(r.URL.Path, "/v1/") && !r.URL.Query().Has("api-version") {
			r.URL.Path = "/v1" + r.URL.Path
		}
		g.model(w, r, rt)
	}
	versions := []string{""}
	if versioned {
		versions = []string{"/v1/v1", "/v1", ""}
	}
	for _, version := range versions {
		at := prefix + version + path
		g.mux.HandleFunc("POST "+at, h)
		g.mux.HandleFunc("POST "+at+"/{$}", h)
		g.mux.HandleFunc("GET "+at, g.socket(prefix, rt))
	}
}

// straight gives the request with a path that the server need not mend, which
// it would do by sending the client elsewhere: slashes in a row, which come of
// base URLs that end in one, count as one. ok is false for a path with dot
// segments, which no client needs.
func straight(r *http.Request) (_ *http.Request, ok bool) {
	path := r.URL.EscapedPath()
	for segment := range strings.SplitSeq(strings.ReplaceAll(r.URL.Path, `\`, "/"), "/") {
		if segment == "." || segment == ".." {
			return r, false
		}
	}
	if path != "" && path[0] == '/' && !strings.Contains(path, "//") {
		return r, true
	}
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	u := *r.URL
	var err error
	if u.Path, err = url.PathUnescape(path); err != nil {
		return r, false // it was unescaped before
	}
	u.RawPath = path
	out := *r
	out.URL = &u
	return &out, true
}
