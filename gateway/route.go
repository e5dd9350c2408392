package gateway

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire"
)

// route is one path of the providers' APIs.
type route struct {
	codec wire.API
	up    *upstream.Client
	// foreign is an API that furl does not support; codec and up are nil then.
	foreign *foreignAPI
	// count is set for requests that count the tokens of a prompt. They are
	// reduced like others and not recorded.
	count bool
}

// prefixes are the path prefixes that select an API. Without one, the path itself
// does; see destination.go.
var prefixes = map[string]providerAPI{"": unknownAPI, "/anthropic": anthropicAPI, "/openai": openaiAPI}

// routes registers all handlers.
func (g *Gateway) routes() {
	g.mux = http.NewServeMux()
	messages, chat, responses := wire.For(furl.FormatAnthropic), wire.For(furl.FormatChat), wire.For(furl.FormatResponses)
	for prefix, only := range prefixes {
		if up := g.up.Anthropic; up != nil && only != openaiAPI {
			g.handle(prefix, "/v1/messages", &route{codec: messages, up: up})
			g.handle(prefix, "/v1/messages/count_tokens", &route{codec: messages, up: up, count: true})
		}
		if (g.up.OpenAI != nil || g.up.ChatGPT != nil) && only != anthropicAPI {
			g.handle(prefix, "/v1/chat/completions", &route{codec: chat})
			g.handle(prefix, "/deployments/{deployment}/chat/completions", &route{codec: chat})
			g.handle(prefix, "/v1/responses", &route{codec: responses})
			g.handle(prefix, "/v1/responses/compact", &route{codec: responses})
		}
		pass := func(w http.ResponseWriter, r *http.Request) { g.passThrough(w, r, prefix) }
		if prefix != "" { // otherwise ServeMux would redirect to the path with a slash
			g.mux.HandleFunc(prefix, pass)
		}
		g.mux.HandleFunc(prefix+"/", pass)
	}
	g.mux.HandleFunc("GET /{$}", g.root)
	g.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	g.mux.HandleFunc("GET /readyz", g.ready)
	g.mux.HandleFunc("GET /metrics", g.authorized(access.Operate, g.metrics.handler()))
	g.apiRoutes()
	g.pageRoutes()
}

// handle registers a path of a provider's API, also without the version or with
// the version twice, as some clients' base URLs make it, and with a trailing
// slash. Azure sends the version in a query parameter instead of the path. A route
// without an upstream is one of OpenAI's APIs: the request's headers decide.
func (g *Gateway) handle(prefix, path string, rt *route) {
	path, versioned := strings.CutPrefix(path, "/v1")
	h := func(w http.ResponseWriter, r *http.Request) {
		rt := rt
		if rt.up == nil {
			up, refusal := g.up.openAI(r.Header)
			if refusal != nil {
				g.passThrough(w, r, prefix) // which refuses it
				return
			}
			rt = &route{codec: rt.codec, up: up}
		}
		r.URL.Path = strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, prefix), "/")
		r.URL.RawPath = ""
		for strings.HasPrefix(r.URL.Path, "/v1/v1/") {
			r.URL.Path = strings.TrimPrefix(r.URL.Path, "/v1")
		}
		if versioned && !strings.HasPrefix(r.URL.Path, "/v1/") && !r.URL.Query().Has("api-version") {
			r.URL.Path = "/v1" + r.URL.Path
		}
		g.serveModel(w, r, rt)
	}
	versions := []string{""}
	if versioned {
		versions = []string{"/v1/v1", "/v1", ""}
	}
	for _, version := range versions {
		at := prefix + version + path
		g.mux.HandleFunc("POST "+at, h)
		g.mux.HandleFunc("POST "+at+"/{$}", h)
		g.mux.HandleFunc("GET "+at, g.refuseWebSocket(prefix, rt))
	}
}

// cleanPath returns the request with repeated slashes in its path merged into one.
// They come from base URLs that end in a slash, and ServeMux would answer them
// with a redirect. ok is false for a path with dot segments.
func cleanPath(r *http.Request) (_ *http.Request, ok bool) {
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
		return r, false // cannot happen: the server has unescaped it before
	}
	u.RawPath = path
	out := *r
	out.URL = &u
	return &out, true
}
