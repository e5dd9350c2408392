package gateway

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
)

// idHeaders are where clients put their own id of a session, most telling
// first. docs/matching.md says which client sends which.
var idHeaders = []string{"Session-Id", "X-Session-Id", "Session_id", "Thread-Id", "X-Session-Affinity", "X-Claude-Code-Session-Id"}

// maxHint bounds a client's id of a session, in bytes.
const maxHint = 200

// hintsOf collects what a request says about its session.
func hintsOf(h http.Header, req *furl.Request) session.Hints {
	hints := session.Hints{Session: furl.SessionID(h.Get(headerSession)), Client: agentOf(h)}
	for _, name := range idHeaders {
		for _, v := range h[name] {
			if hints.Hint = cut(v); hints.Hint != "" {
				return hints
			}
		}
		if hints.Hint = cut(h.Get(name)); hints.Hint != "" {
			return hints
		}
	}
	var body struct {
		PromptCacheKey string `json:"prompt_cache_key"`
		Metadata       struct {
			UserID string `json:"user_id"`
		} `json:"metadata"`
	}
	// The codec has read the body; a field of another type is just no hint.
	_ = json.Unmarshal(req.Body, &body)
	hints.Hint = cut(body.PromptCacheKey)
	if hints.Hint == "" {
		hints.Hint = sessionIn(body.Metadata.UserID)
	}
	return hints
}

func cut(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > maxHint {
		return ""
	}
	return s
}

// sessionIn finds the session in the user id that Claude Code sends,
// user_HASH_account_ID_session_ID, or an object with a session_id. Any other
// user id names a user, who has many sessions.
func sessionIn(user string) string {
	if _, id, ok := strings.Cut(user, "_session_"); ok {
		return cut(id)
	}
	var object struct {
		SessionID string `json:"session_id"`
	}
	if strings.HasPrefix(user, "{") && json.Unmarshal([]byte(user), &object) == nil {
		return cut(object.SessionID)
	}
	return ""
}

// agentOf names the client by its User-Agent, without version.
func agentOf(h http.Header) string {
	name, _, _ := strings.Cut(h.Get("User-Agent"), "/")
	name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
	if len(name) > 40 {
		return ""
	}
	return name
}

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
