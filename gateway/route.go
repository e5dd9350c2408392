package gateway

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire"
)

// route is one path of the providers' APIs.
type route struct {
	codec wire.API
	up    *upstream.Client
	// foreign is an API that furl does not support; codec and up are nil then.
	foreign *foreignAPI
	// endpoint is what the path says. Requests that count the tokens of a prompt are
	// reduced like others and not recorded.
	endpoint protocol.Endpoint
}

// routes registers all handlers.
func (g *Gateway) routes() {
	g.mux = http.NewServeMux()
	g.mux.HandleFunc("/", g.provider)
	g.mux.HandleFunc("GET /{$}", g.root)
	g.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	g.mux.HandleFunc("GET /readyz", g.ready)
	g.mux.HandleFunc("GET /metrics", g.authorized(access.Operate, g.metrics.handler()))
	g.apiRoutes()
	g.pageRoutes()
}

// provider serves a path of a provider's API. The end of the path shows a request to a
// model, so that each base URL works; other requests are passed through.
func (g *Gateway) provider(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/furl" || strings.HasPrefix(r.URL.Path, "/furl/") {
		apiError(w, http.StatusNotFound, "unknown path of furl; the request was not sent to a provider")
		return
	}
	to := g.destination(r)
	out := *r
	out.URL = to.url
	switch model := to.model && to.refusal == nil; {
	case model && r.Method == http.MethodPost:
		g.serveModel(w, &out, to.route)
	case model && r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		g.refuseWebSocket(w, &out, to.route)
	default:
		g.passThrough(w, &out, &to)
	}
}

// providerURL returns the URL of a request as its provider gets it, before the base URL of
// the provider is added. prefix is that of the path that named the provider.
//
// The prefix is removed, except from the paths of Azure, which begin with /openai and have
// the version in a parameter. If nothing but versions precedes the end of the path that
// belongs to the API, the version is /v1. All other paths stay unchanged.
func providerURL(u *url.URL, prefix string, rt *route) *url.URL {
	out := *u
	azure := u.Query().Has("api-version")
	if rest := strings.TrimPrefix(u.Path, prefix); prefix == "/openai" && (azure || strings.HasPrefix(rest, "/deployments/")) {
		prefix = ""
	}
	out.Path, out.RawPath = strings.TrimPrefix(u.Path, prefix), strings.TrimPrefix(u.RawPath, prefix)
	if !strings.HasPrefix(out.RawPath, "/") {
		out.RawPath = "" // the slash after the prefix was escaped
	}
	if rt.codec == nil {
		return &out
	}
	if out.RawPath == "" || strings.HasSuffix(out.RawPath, "/") { // else the slash is escaped
		out.Path, out.RawPath = strings.TrimSuffix(out.Path, "/"), strings.TrimSuffix(out.RawPath, "/")
	}
	end := out.Path
	for strings.HasPrefix(end, "/v1/") {
		end = strings.TrimPrefix(end, "/v1")
	}
	if e, ok := rt.codec.Endpoint(end, ""); !ok || e.Prefix != "" {
		return &out
	}
	if !azure || end != out.Path {
		end = "/v1" + end
	}
	out.Path, out.RawPath = end, ""
	return &out
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
