package transcript

import (
	"bytes"
	"strings"

	"github.com/furlhq/furl/internal/rawjson"
)

// These functions recognise one format each. They look for a combination of
// fields that no other format has.

func isCodex(p *probe) bool {
	return p.is('l', '{') && p.any(func(o object) bool {
		switch o.str("type") {
		case "session_meta", "response_item", "event_msg", "turn_context", "compacted":
			return o.kind("payload") == '{' && o.has("timestamp")
		}
		return false
	}) || isOldCodex(p)
}

func isOpencode(p *probe) bool {
	if !p.is('{') {
		return false
	}
	info := p.objects[0].object("info")
	return info.has("id", "time") && (info.has("directory") || info.has("projectID")) &&
		(p.objects[0].kind("messages") == '[' || !p.objects[0].has("messages"))
}

func isPi(p *probe) bool {
	return p.is('l', '{') && p.any(func(o object) bool {
		switch o.str("type") {
		case "session":
			return o.has("id", "timestamp", "cwd")
		case "message":
			m := o.object("message")
			return o.has("timestamp") && m.has("role", "timestamp") && !o.has("uuid")
		}
		return false
	})
}

func isGemini(p *probe) bool {
	return p.is('l', '{') && p.any(func(o object) bool {
		return o.has("sessionId", "projectHash") || o.has("sessionId", "startTime", "messages")
	})
}

func isCopilot(p *probe) bool {
	return p.is('l', '{') && p.any(func(o object) bool {
		area, _, ok := strings.Cut(o.str("type"), ".")
		switch area {
		case "session", "user", "assistant", "tool", "hook", "system":
			return ok && o.kind("data") == '{' && o.has("id", "timestamp")
		}
		return false
	})
}

func isSWEAgent(p *probe) bool {
	if !p.is('{') {
		return false
	}
	o := p.objects[0]
	if o.kind("trajectory") == '[' && (o.has("history") || o.has("environment") || o.has("info")) {
		return true
	}
	return firstIn(o["history"]).has("role", "content")
}

func isMiniSWE(p *probe) bool {
	if !p.is('{') || p.objects[0].kind("messages") != '[' {
		return false
	}
	o := p.objects[0]
	info := o.object("info")
	return strings.HasPrefix(o.str("trajectory_format"), "mini-swe-agent") || info.has("mini_version") || info.has("exit_status", "model_stats")
}

func isTau2(p *probe) bool {
	if !p.is('{', 'l', '[') {
		return false
	}
	o := p.objects[0]
	return p.kind == '{' && (firstIn(o["simulations"]).has("messages", "task_id") || o.kind("simulations") == '[' && o.has("tasks", "info")) ||
		p.any(isTau2Run)
}

func isTau2Run(o object) bool { return o.has("messages", "task_id", "termination_reason") }

func isOpenHands(p *probe) bool {
	return p.is('l', '{', '[') && p.any(func(o object) bool { return isOpenHandsEvent(o) || ohList(o) != "" })
}

func isOpenHandsEvent(o object) bool {
	return o.has("source", "timestamp") && (o.has("action") || o.has("observation")) && o.kind("id") != '"' || isOHSDK(o)
}

// ohList is the field of an object that lists OpenHands events, "" if there is
// none: history in the output of evaluations, the others in answers of its API.
func ohList(o object) string {
	for _, name := range [...]string{"history", "trajectory", "events", "items"} {
		if o.kind(name) != '[' {
			continue
		}
		first := firstIn(o[name])
		if name == "history" && len(first) == 0 {
			first = firstIn(firstElement(o[name])) // a pair of action and observation
		}
		old := name == "history" && !first.has("role") && (first.has("action", "args") || first.has("observation", "extras"))
		if isOpenHandsEvent(first) || old {
			return name
		}
	}
	return ""
}

// isOpenHandsState recognises the state file in a folder of events.
func isOpenHandsState(p *probe) bool {
	return p.is('{') && p.objects[0].has("id", "agent", "workspace") && (p.objects[0].has("execution_status") || p.objects[0].has("agent_status"))
}

func isOpenAIChat(p *probe) bool {
	switch {
	case p.is('['):
		return p.any(isTauRun) || chatList(p.objects, false)
	case p.is('l') && p.objects[0].has("role"):
		return chatList(p.objects, false) && !p.any(func(o object) bool { return o.has("type") || hasOwnPart(o["content"]) })
	case p.is('l', '{'):
		return p.any(func(o object) bool {
			if isTauRun(o) {
				return true
			}
			if o.kind("messages") != '[' || o.has("info") || o.has("sessionId") || o.has("task_id", "termination_reason") ||
				isNanocoderSession(o) || isCodeAssistantSession(o) {
				return false
			}
			var list []object
			r := rawjson.NewReader(o["messages"])
			for range r.Elements() {
				if len(list) == probeObjects {
					break
				}
				raw := r.Raw()
				if raw == nil {
					break
				}
				list = append(list, objectOf(raw))
			}
			// Anthropic refuses a request without max_tokens.
			claude := o.has("system") || o.has("anthropic_version") || strings.Contains(o.str("model"), "claude") && o.has("max_tokens")
			return chatList(list, claude)
		})
	}
	return false
}

// isTauRun recognises a run of tau-bench, and data sets that name the list of
// messages alike.
func isTauRun(o object) bool {
	return o.kind("traj") == '[' && firstIn(o["traj"]).has("role") ||
		o.kind("trajectory") == '[' && chatList([]object{firstIn(o["trajectory"])}, false)
}

// chatList reports whether a list contains messages of Chat Completions.
// Plain text messages look the same in Anthropic's format; claude says that
// the request is for Claude, and then something else must identify Chat
// Completions.
func chatList(list []object, claude bool) bool {
	ours := !claude
	for _, o := range list {
		switch o.str("role") {
		case "system", "developer", "tool", "function":
			ours = true
		case "user", "assistant":
		default:
			return false
		}
		if o.has("ts") || !o.has("content") && !o.has("tool_calls") {
			return false
		}
		if o.kind("tool_calls") == '[' {
			ours = true
		}
		switch firstIn(o["content"]).str("type") {
		case "tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document":
			return false
		}
	}
	return ours && len(list) > 0
}

func isOpenAIResponses(p *probe) bool {
	return p.is('l', '{') && p.any(func(o object) bool {
		switch o.kind("input") {
		case '"':
			return o.has("model")
		case '[':
			first := firstIn(o["input"])
			return first.has("role", "content") || first.has("type") && o.has("model")
		}
		return false
	})
}

// firstElement returns the first element of an array, nil if there is none.
func firstElement(raw []byte) []byte {
	r := rawjson.NewReader(bytes.TrimSpace(raw))
	if r.Kind() != '[' {
		return nil
	}
	for range r.Elements() {
		return r.Raw()
	}
	return nil
}

// firstIn returns the first object of an array; an empty object if there is
// none.
func firstIn(raw []byte) object {
	r := rawjson.NewReader(bytes.TrimSpace(raw))
	if r.Kind() != '[' {
		return object{}
	}
	for range r.Elements() {
		if r.Kind() == '{' {
			return readObject(r)
		}
		return object{}
	}
	return object{}
}
