package transcript

import (
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/wire/anthropic"
)

// This format is the body of one request to Anthropic Messages, or several
// bodies, one a line: a conversation up to its next request. Every assistant
// message in it answered an earlier request, of which nothing else is known.

var anthropicRequest = &format{
	name:   "anthropic-request",
	detect: detectRequest,
	read:   readRequest,
}

// detectRequest distinguishes the body from one for OpenAI Chat Completions,
// which has the same two fields, and likewise for lists of messages, one a
// line. Roles and types of content that only one of them knows decide. Plain
// text is Anthropic's if the model is, or if the system text is a separate
// field.
func detectRequest(p *probe) bool {
	if !p.is('{', 'l') {
		return false
	}
	if p.is('l') && isMessageLine(p.objects[0]) {
		list := make([][]byte, 0, len(p.objects))
		for _, o := range p.objects {
			if !isMessageLine(o) {
				return false
			}
			list = append(list, o["content"])
		}
		return slices.ContainsFunc(list, hasOwnPart)
	}
	sure := false
	for _, o := range p.objects {
		own, ok := requestOf(o)
		if !ok {
			return false
		}
		sure = sure || own
	}
	return sure
}

// isMessageLine reports whether an object is a message.
func isMessageLine(o object) bool {
	role := o.str("role")
	return (role == "user" || role == "assistant") && o.has("content") && !o.has("type") && !o.has("tool_calls") && !o.has("uuid") && !o.has("ts")
}

// hasOwnPart reports whether a content has parts that only Anthropic knows.
func hasOwnPart(content []byte) bool {
	return hasPart(content, "tool_use", "tool_result", "thinking", "redacted_thinking")
}

// requestOf reports whether an object may be such a body, and whether it
// certainly is.
func requestOf(o object) (sure, ok bool) {
	if o.kind("messages") != '[' || isNanocoderSession(o) || isCodeAssistantSession(o) || isClineSession(o) {
		return false, false
	}
	sure = o.has("system") || o.has("anthropic_version") || strings.Contains(o.str("model"), "claude") && o.has("max_tokens")
	r := rawjson.NewReader(o["messages"])
	for i := range r.Elements() {
		if i == probeObjects {
			break
		}
		if r.Kind() != '{' {
			return false, false
		}
		m := readObject(r)
		if r.Err() != nil {
			break
		}
		if role := m.str("role"); role != "user" && role != "assistant" && (role != "system" || !sure) || m.has("tool_calls") {
			return false, false
		}
		if hasPart(m["content"], "image_url", "input_audio", "refusal") {
			return false, false
		}
		sure = sure || hasOwnPart(m["content"])
	}
	return sure, true
}

func readRequest(in *input) ([]*Session, error) {
	var sessions []*Session
	var loose [][]byte // messages one a line
	for n, rec := range in.objects() {
		if n > 0 && isMessageLine(objectOf(rec)) {
			loose = append(loose, rec)
			continue
		}
		if !in.decodable(rec) {
			break
		}
		b := newBuilder(in, anthropic.Codec)
		if req, err := b.codec.DecodeRequest(rec); err == nil {
			b.Preamble = slices.DeleteFunc(req.Preamble, func(t furl.Block) bool { return t.Deferred })
			b.Model = req.Model
			for i := range req.Messages {
				b.rawWithRequest(n, &req.Messages[i])
			}
		} else {
			b.salvage(n, rec)
		}
		model := b.Model
		s := b.finish()
		s.Model = model
		sessions = append(sessions, s)
	}
	if len(loose) > 0 {
		b := newBuilder(in, anthropic.Codec)
		for i, raw := range loose {
			m, err := b.codec.DecodeMessage(raw)
			if err != nil {
				in.skip(0, "message %d: %v", i+1, err)
				continue
			}
			b.rawWithRequest(0, m)
		}
		sessions = append(sessions, b.finish())
	}
	return sessions, nil
}

// rawWithRequest adds a message and, before a reply, the request that it implies. A
// message that directly continues a reply is its second half: the client
// supplied the start.
func (b *builder) rawWithRequest(line int, m *furl.Message) {
	if m.Role == furl.RoleAssistant && (b.last == 0 || b.entries[b.last-1].msg.Role != furl.RoleAssistant) {
		b.reply(time.Time{}, furl.Exchange{Model: b.Model})
	}
	b.message(time.Time{}, line, m)
}

// salvage reads the valid part of a broken body.
func (b *builder) salvage(line int, body []byte) {
	r := rawjson.NewReader(body)
	for key := range r.Fields() {
		switch {
		case string(key) == "model":
			b.Model, _ = r.String()
		case string(key) == "messages" && r.Kind() == '[':
			for i := range r.Elements() {
				raw := r.Raw()
				if raw == nil {
					break
				}
				m, err := b.codec.DecodeMessage(raw)
				if err != nil {
					b.in.skip(line, "message %d: %v", i, err)
					continue
				}
				b.rawWithRequest(line, m)
			}
		}
	}
	if err := r.End(); err != nil {
		b.in.skip(line, "%v", err)
	}
}
