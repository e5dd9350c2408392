package gateway

import (
	"encoding/json"
	"net/http"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
)

// aside reports whether a request stands beside the conversation whose id it
// carries: titles and summaries that a client asks for itself.
func aside(h http.Header, req *furl.Request, hints session.Hints) bool {
	var meta struct {
		Kind string `json:"request_kind"`
	}
	if v := h.Get("X-Codex-Turn-Metadata"); v != "" && json.Unmarshal([]byte(v), &meta) == nil && meta.Kind == "compaction" {
		return true
	}
	if hints.Hint == "" || hints.Session != "" {
		return false
	}
	// Without tools and without an answer of the model in it, under the id of
	// a session: a title or the like. A chat without tools that begins so is
	// recorded from its second request on, which holds the first.
	for i := range req.Messages {
		if req.Messages[i].Role == furl.RoleAssistant {
			return false
		}
	}
	for i := range req.Preamble {
		if req.Preamble[i].Kind == furl.KindOpaque {
			return false
		}
	}
	return true
}
