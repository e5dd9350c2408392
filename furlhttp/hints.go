package furlhttp

import (
	"iter"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/storage"
)

// HeaderSession is the id of a session in furl's store. It is not forwarded to the
// provider.
const HeaderSession = "X-Furl-Session"

// hintHeaders are the headers in which clients such as Codex, opencode and pi send
// their session ids.
var hintHeaders = []string{"Session-Id", "X-Session-Id", "Session_id", "Thread-Id", "X-Session-Affinity", "X-Claude-Code-Session-Id"}

// maxHint is the longest session id of a client, in bytes. A longer one is
// ignored.
const maxHint = 256

// HintsOf returns the session hints of a request. The hint is the client's session
// header, OpenAI's prompt_cache_key, or the session in Anthropic's
// metadata.user_id, in this order. A user_id without a session is not a hint: it
// would put all conversations of a user into one session. For a subagent that uses
// its parent's id, the hint is that id, a slash, and the id of the subagent.
// header returns the value of a header.
func HintsOf(header func(name string) string, req *protocol.Request) protocol.Hints {
	h := protocol.Hints{Client: agents.Identify(header, instructions(req))}
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
		h.Hint = bodyHint(req)
	}
	agent := subAgent(header, h.Hint)
	h.SubAgent = agent != "" || strings.TrimSpace(header("X-Openai-Subagent")) != ""
	if h.Hint != "" && agent != "" && len(h.Hint)+len(agent) < maxHint {
		h.Parent = h.Hint
		h.Hint += "/" + agent
	}
	return h
}

// subAgent returns the id of a subagent that sends its parent's session id. Each
// subagent has its own conversation. Claude Code sends the id in a header; Codex
// sends a thread id that differs from the session id.
func subAgent(header func(name string) string, hint string) string {
	if id := strings.TrimSpace(header("X-Claude-Code-Agent-Id")); id != "" {
		return id
	}
	if id := strings.TrimSpace(header("Thread-Id")); id != hint && strings.TrimSpace(header("Session-Id")) == hint {
		return id
	}
	return ""
}

// bodyHint returns the hint in a request's body, "" if there is none.
func bodyHint(req *protocol.Request) string {
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
		key = sessionOfUserID(user)
	}
	if len(key) > maxHint {
		return ""
	}
	return key
}

// sessionOfUserID returns the session in a user id, "" if there is none. Claude Code
// sends user_…_account_…_session_ID or a JSON object with a field for it, kimi-code
// session_UUID.
func sessionOfUserID(user string) string {
	if id, ok := strings.CutPrefix(user, "session_"); ok && isUUID(id) {
		return user
	}
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

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case '0' <= c && c <= '9', 'a' <= c && c <= 'f', 'A' <= c && c <= 'F':
		default:
			return false
		}
	}
	return true
}

// instructions yields the system texts of a request: those before its messages, and
// those of its first messages.
func instructions(req *protocol.Request) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range req.Preamble {
			if b := &req.Preamble[i]; b.Kind == furl.KindText && !yield(b.Text) {
				return
			}
		}
		for i := range req.Messages {
			m := &req.Messages[i]
			if m.Role != furl.RoleSystem && m.Role != furl.RoleDeveloper {
				return
			}
			for j := range m.Blocks {
				if m.Blocks[j].Kind == furl.KindText && !yield(m.Blocks[j].Text) {
					return
				}
			}
		}
	}
}
