package sim

import (
	"net/http"
	"strings"
)

// route is a served path.
type route struct {
	method string
	api    api
	// count answers with the size of the prompt, in tokens, instead of a
	// reply.
	count func(c *call, tokens int) []byte
	// raw answers requests without a prompt.
	raw func(c *call) error
	// compact answers with a summary.
	compact bool
	// model is in the path, and so is whether the answer is streamed (Gemini). array: the
	// stream is a JSON array instead of events.
	model         string
	stream, array bool
	// open needs no credentials.
	open    bool
	missing bool
}

var routes = map[string]*route{
	"/v1/messages":               {method: http.MethodPost, api: messages{}},
	"/v1/messages/count_tokens":  {method: http.MethodPost, api: messages{}, count: messages{}.count},
	"/v1/chat/completions":       {method: http.MethodPost, api: chat{}},
	"/v1/responses":              {method: http.MethodPost, api: responses{}},
	"/v1/responses/compact":      {method: http.MethodPost, api: responses{}, compact: true},
	"/v1/responses/input_tokens": {method: http.MethodPost, api: responses{}, count: responses{}.count},
	// Claude Code 2.1.332 asks with HEAD at its start whether the provider can be reached.
	"/api/hello": {method: http.MethodGet, api: messages{}, open: true, raw: func(c *call) error { return c.send([]byte(`{"message":"hello"}`)) }},
}

// findRoute returns the route of a request; for an unknown path a missing
// route in the format that the client seems to use.
func findRoute(r *http.Request) *route {
	path := strings.TrimRight(r.URL.Path, "/")
	if rt, ok := routes[path]; ok {
		return rt
	}
	if rt := geminiRoute(r, path); rt != nil {
		return rt
	}
	speaks := api(chat{})
	if r.Header.Get("anthropic-version") != "" {
		speaks = messages{}
	}
	if path == "/v1/models" {
		return &route{method: http.MethodGet, api: speaks, raw: listModels}
	}
	if id, ok := strings.CutPrefix(path, "/v1/models/"); ok {
		return &route{method: http.MethodGet, api: speaks, raw: func(c *call) error { return c.oneModel(id) }}
	}
	if id, ok := strings.CutPrefix(path, "/v1/responses/"); ok && !strings.Contains(id, "/") {
		method := http.MethodGet
		if r.Method == http.MethodDelete {
			method = http.MethodDelete
		}
		return &route{method: method, api: responses{}, raw: func(c *call) error { return c.oneResponse(id) }}
	}
	if r.Header.Get("anthropic-version") != "" || strings.HasPrefix(path, "/v1/messages") {
		return &route{api: messages{}, missing: true}
	}
	return &route{api: chat{}, missing: true}
}

func (rt *route) missingType() string {
	switch rt.api.(type) {
	case messages:
		return "not_found_error"
	case gemini:
		return "NOT_FOUND"
	}
	return "invalid_request_error"
}

func (rt *route) missingText(r *http.Request) string {
	switch rt.api.(type) {
	case messages:
		return "Not found"
	case gemini:
		return "The requested URL was not found on this server."
	}
	return "Invalid URL (" + clipped(r.Method) + " " + clipped(r.URL.Path) + ")"
}
