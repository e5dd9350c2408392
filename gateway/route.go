package gateway

import (
	"net/http"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

// codec is what a route needs to know of its format.
type codec interface {
	furl.Codec
	furl.ReplyCodec
}

// route is one path of the providers' APIs that furl understands.
type route struct {
	codec codec
	up    *upstream.Client
	// count marks the request for a prompt's size: the view is applied to
	// it, and nothing is recorded.
	count bool
}

// routes says what is served where. Both providers' paths are told apart by
// themselves; /anthropic and /openai before a path say whose it is.
func (g *Gateway) routes() {
	g.mux = http.NewServeMux()
	messages, chat, responses := anthropic.Codec.(codec), openai.Chat.(codec), openai.Responses.(codec)
	for prefix, only := range map[string]*upstream.Client{"": nil, "/anthropic": g.up.Anthropic, "/openai": g.up.OpenAI} {
		if prefix != "" && only == nil {
			continue
		}
		if up := g.up.Anthropic; up != nil && prefix != "/openai" {
			g.handle(prefix, "/v1/messages", &route{codec: messages, up: up})
			g.handle(prefix, "/v1/messages/count_tokens", &route{codec: messages, up: up, count: true})
		}
		if up := g.up.OpenAI; up != nil && prefix != "/anthropic" {
			g.handle(prefix, "/v1/chat/completions", &route{codec: chat, up: up})
			g.handle(prefix, "/v1/responses", &route{codec: responses, up: up})
		}
		g.mux.HandleFunc(prefix+"/", func(w http.ResponseWriter, r *http.Request) { g.pass(w, r, only, prefix) })
	}
	g.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	g.mux.HandleFunc("GET /readyz", g.ready)
	g.mux.HandleFunc("GET /metrics", g.local(g.metrics.serve))
	g.api()
}

// handle serves a path of a provider's API, also where the client's base URL
// does not hold the version.
func (g *Gateway) handle(prefix, path string, rt *route) {
	h := func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = strings.TrimPrefix(r.URL.Path, prefix)
		r.URL.RawPath = ""
		if !strings.HasPrefix(r.URL.Path, "/v1/") {
			r.URL.Path = "/v1" + r.URL.Path
		}
		g.model(w, r, rt)
	}
	g.mux.HandleFunc("POST "+prefix+path, h)
	g.mux.HandleFunc("POST "+prefix+strings.TrimPrefix(path, "/v1"), h)
}

// upstreamOf guesses whose API a request is of that furl does not understand.
func (g *Gateway) upstreamOf(r *http.Request) *upstream.Client {
	switch {
	case g.up.OpenAI == nil:
		return g.up.Anthropic
	case g.up.Anthropic == nil:
		return g.up.OpenAI
	case r.Header.Get("Anthropic-Version") != "" || r.Header.Get("X-Api-Key") != "",
		strings.HasPrefix(r.URL.Path, "/v1/messages"), r.URL.Path == "/" && r.Method == http.MethodHead:
		return g.up.Anthropic
	}
	return g.up.OpenAI
}
