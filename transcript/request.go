package transcript

import (
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/wire/anthropic"
)

// The body of one request to Anthropic Messages: a conversation up to the
// request that is about to be made. Every assistant message in it answered an
// earlier request, of which nothing else is known.

var anthropicRequest = &format{
	name:   "anthropic-request",
	detect: detectRequest,
	read:   readRequest,
}

// detectRequest tells the body from one of OpenAI Chat Completions, which has
// the same two fields. The roles and types of content that only one of them
// knows decide; plain words are Anthropic's if the model is, or if the system
// text stands apart.
func detectRequest(p *probe) bool {
	if !p.is('{') || p.objects[0].kind("messages") != '[' {
		return false
	}
	o := p.objects[0]
	sure := o.has("system") || o.has("anthropic_version") || strings.Contains(o.str("model"), "claude") && o.has("max_tokens")
	r := rawjson.NewReader(o["messages"])
	for i := range r.Elements() {
		if i == probeObjects {
			break
		}
		if r.Kind() != '{' {
			return false
		}
		m := readObject(r)
		if r.Err() != nil {
			break
		}
		if role := m.str("role"); role != "user" && role != "assistant" && (role != "system" || !sure) || m.has("tool_calls") {
			return false
		}
		parts, _ := partsOf(m["content"])
		for j := range parts {
			switch parts[j].typ {
			case "tool_use", "tool_result", "thinking", "redacted_thinking":
				sure = sure || o.has("model") || o.has("max_tokens")
			case "image_url", "input_audio", "refusal":
				return false
			}
		}
	}
	return sure
}

func readRequest(in *input) ([]*Session, error) {
	b := newBuilder(in, anthropic.Codec)
	if req, err := b.codec.DecodeRequest(in.data); err == nil {
		b.Preamble = req.Preamble
		b.Model = req.Model
		for i := range req.Messages {
			b.implied(&req.Messages[i])
		}
	} else {
		b.salvage()
	}
	model := b.Model
	s := b.finish()
	s.Model = model
	return []*Session{s}, nil
}

// implied adds a message, and before a reply the request that it implies. What
// follows a reply as one is its other half: the client gave its beginning.
func (b *builder) implied(m *furl.Message) {
	if m.Role == furl.RoleAssistant && (b.last == 0 || b.entries[b.last-1].msg.Role != furl.RoleAssistant) {
		b.reply(time.Time{}, furl.Exchange{Model: b.Model})
	}
	b.message(time.Time{}, 0, m)
}

// salvage reads what can be read of a broken body.
func (b *builder) salvage() {
	r := rawjson.NewReader(b.in.data)
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
					b.in.skip(0, "message %d: %v", i, err)
					continue
				}
				b.implied(m)
			}
		}
	}
	if err := r.End(); err != nil {
		b.in.skip(0, "%v", err)
	}
}
