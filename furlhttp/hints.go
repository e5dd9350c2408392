package furlhttp

import (
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/storage"
)

// HeaderSession names furl's session in a request. It is furl's alone: who
// sends a request on leaves it out.
const HeaderSession = "X-Furl-Session"

// hintHeaders carry the ids that clients give their sessions: Codex, opencode
// and pi send one of them with each request.
var hintHeaders = []string{"Session-Id", "X-Session-Id", "Session_id", "Thread-Id", "X-Session-Affinity", "X-Claude-Code-Session-Id"}

// maxHint bounds what is taken for a client's id.
const maxHint = 256

// HintsOf reads from a request what it says about its session: furl's own
// header, the client's session header, OpenAI's prompt_cache_key, or the session
// in Anthropic's metadata.user_id, in this order. A user_id that names no
// session is not a hint: it would make one session of all that a user does. Where
// an agent works for another under the same id, its own id follows after a
// slash.
// header gives the value of a header.
func HintsOf(header func(name string) string, req *protocol.Request) protocol.Hints {
	h := protocol.Hints{Client: clientOf(header("User-Agent"))}
	if id := furl.SessionID(header(HeaderSession)); storage.ValidID(id) {
		h.Session = id
	}
	for _, name := range hintHeaders {
		if v := strings.TrimSpace(header(name)); v != "" && len(v) <= maxHint {
			h.Hint = v
			break
		}
	}
	if h.Hint == "" {
		h.Hint = hintIn(req)
	}
	if agent := subAgent(header, h.Hint); h.Hint != "" && agent != "" && len(h.Hint)+len(agent) < maxHint {
		h.Hint += "/" + agent
	}
	return h
}

// subAgent is the id of an agent that another has started, under whose id it
// asks: the work of each is a conversation of its own. Claude Code names it, and
// in Codex it has a thread of its own in the session.
func subAgent(header func(name string) string, hint string) string {
	if id := strings.TrimSpace(header("X-Claude-Code-Agent-Id")); id != "" {
		return id
	}
	if id := strings.TrimSpace(header("Thread-Id")); id != hint && strings.TrimSpace(header("Session-Id")) == hint {
		return id
	}
	return ""
}

// hintIn reads the hint in a request's body.
func hintIn(req *protocol.Request) string {
	var key, user string
	r := rawjson.NewReader(req.Fields())
	for name := range r.Fields() {
		switch string(name) {
		case "prompt_cache_key":
			if r.Kind() == '"' {
				key, _ = r.String()
			}
		case "metadata":
			if r.Kind() != '{' {
				continue
			}
			for name := range r.Fields() {
				if string(name) == "user_id" && r.Kind() == '"' {
					user, _ = r.String()
				}
			}
		}
	}
	if key == "" {
		key = sessionIn(user)
	}
	if len(key) > maxHint {
		return ""
	}
	return key
}

// sessionIn finds the session in the user ids that Claude Code sends: the end
// of user_…_account_…_session_ID, or a field of a JSON object.
func sessionIn(user string) string {
	if _, id, ok := strings.Cut(user, "_session_"); ok {
		return id
	}
	var id string
	r := rawjson.NewReader([]byte(user))
	if r.Kind() != '{' {
		return ""
	}
	for name := range r.Fields() {
		if string(name) == "session_id" && r.Kind() == '"' {
			id, _ = r.String()
		}
	}
	if r.Err() != nil {
		return ""
	}
	return id
}

// clientOf is the product that a User-Agent names first.
func clientOf(agent string) string {
	name, _, _ := strings.Cut(agent, "/")
	name, _, _ = strings.Cut(name, " ")
	if len(name) > 64 {
		return ""
	}
	return name
}
