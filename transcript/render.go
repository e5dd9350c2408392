package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

// Recordings that do not use a provider's format are rendered in the format
// of the recorded model's provider: each recorded message is split into
// pieces, and the pieces are assembled in the wire format. docs/use/formats.md
// describes the mapping of each format.

// piece is one part of a recorded message.
type piece struct {
	kind      furl.Kind // text, thinking, call, result or image
	text      string
	id, name  string          // calls and results
	args      json.RawMessage // calls: any JSON value, or empty
	failed    bool            // results
	made      bool            // results that the recording does not contain
	signature string          // thinking: what the provider signed or encrypted
	itemID    string          // thinking: the id of a Responses reasoning item
	redacted  bool            // thinking whose text is only in the signature
	images    []picture       // results, or the image of an image piece
}

// picture is an image in a recording: base64 data, or a URL.
type picture struct{ mime, data, url string }

func (p picture) dataURL() string {
	if p.url != "" {
		return p.url
	}
	return "data:" + p.mime + ";base64," + p.data
}

// renderer builds wire messages from pieces. It assigns the ids of calls,
// because a recording may repeat an id or use characters that a provider
// refuses.
type renderer struct {
	wire  furl.Format
	codec protocol.Codec
	model string
	// unflagged says that the recording does not mark results that failed.
	unflagged bool

	// exported says that agents read the ids. Claude Code 2.1.332 loses the result of a call whose
	// id is that of an earlier call, _, and digits.
	exported bool

	used   map[string]bool   // wire ids in use; ids of items have the prefix "item "
	latest map[string]string // recorded id → wire id of the newest call
}

func newRenderer(wire furl.Format, model string) *renderer {
	return &renderer{
		wire: wire, codec: codecOf(wire), model: model,
		used: map[string]bool{}, latest: map[string]string{},
	}
}

func codecOf(wire furl.Format) protocol.Codec {
	switch wire {
	case furl.FormatAnthropic:
		return anthropic.Codec
	case furl.FormatResponses:
		return openai.Responses
	}
	return openai.Chat
}

// wireOf returns the format that an agent uses for a model if it knows the
// provider's API: Anthropic's for Claude, gpt for OpenAI's models, and Chat
// Completions for all others, because nearly all providers offer it.
func wireOf(model string, gpt furl.Format) furl.Format {
	m := strings.ToLower(model)
	if i := strings.LastIndexByte(m, '/'); i >= 0 {
		m = m[i+1:] // a router's prefix: "openai/gpt-5"
	}
	switch {
	case strings.Contains(m, "claude"):
		return furl.FormatAnthropic
	case strings.HasPrefix(m, "gpt-"), strings.HasPrefix(m, "chatgpt"), strings.Contains(m, "codex"),
		len(m) > 1 && m[0] == 'o' && m[1] >= '1' && m[1] <= '9':
		return gpt
	}
	return furl.FormatChat
}

// replaysReasoning reports whether a model reached by Chat Completions needs
// its reasoning sent back in a tool loop (Moonshot, DeepSeek, GLM, MiniMax).
func replaysReasoning(model string) bool {
	m := strings.ToLower(model)
	for _, name := range []string{"kimi", "deepseek", "glm", "minimax"} {
		if strings.Contains(m, name) {
			return true
		}
	}
	return false
}

// maxCallID is the longest id that both OpenAI and Anthropic accept.
const maxCallID = 64

// callID returns the wire id for a new call: the recorded id if providers
// accept it and it is unused.
func (r *renderer) callID(recorded string) string {
	base := strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return '_'
	}, recorded)
	if base == "" {
		base = "call"
	}
	if len(base) > maxCallID-8 {
		base = base[:maxCallID-8] // room for a number
	}
	sep := "_"
	if r.exported {
		sep = "-"
		if stem, number, ok := cutNumber(base); ok && r.used[stem] {
			base = stem + sep + number
		}
	}
	id := base
	for n := 2; r.used[id]; n++ {
		id = fmt.Sprintf("%s%s%d", base, sep, n)
	}
	r.used[id] = true
	r.latest[recorded] = id
	return id
}

// cutNumber splits an id before its last _ if only digits follow.
func cutNumber(id string) (stem, number string, ok bool) {
	i := strings.LastIndexByte(id, '_')
	if i < 0 || i == len(id)-1 || strings.Trim(id[i+1:], "0123456789") != "" {
		return "", "", false
	}
	return id[:i], id[i+1:], true
}

// answers returns the wire id of the newest call with the recorded id.
func (r *renderer) answers(recorded string) string {
	if id, ok := r.latest[recorded]; ok {
		return id
	}
	return r.callID(recorded)
}

// system renders instructions in the list of messages. Anthropic has
// instructions only in the preamble; for it system returns nothing.
func (r *renderer) system(text string) ([]*furl.Message, error) {
	switch {
	case text == "" || r.wire == furl.FormatAnthropic:
		return nil, nil
	case r.wire == furl.FormatResponses:
		return r.decode(item{"type": "message", "role": "developer", "content": []any{item{"type": "input_text", "text": text}}})
	}
	return r.decode(item{"role": "system", "content": text})
}

// user renders text and images of the user; it returns nothing if there are
// none.
func (r *renderer) user(pieces []piece) ([]*furl.Message, error) {
	var content []any
	plain := true
	for i := range pieces {
		p := &pieces[i]
		switch {
		case p.kind == furl.KindText && p.text != "":
			content = append(content, r.text(p.text))
		case p.kind == furl.KindImage:
			for _, pic := range p.images {
				content, plain = append(content, r.image(pic)), false
			}
		}
	}
	switch {
	case len(content) == 0:
		return nil, nil
	case r.wire == furl.FormatResponses:
		return r.decode(item{"type": "message", "role": "user", "content": content})
	case plain && len(content) == 1:
		return r.decode(item{"role": "user", "content": content[0].(item)["text"]})
	}
	return r.decode(item{"role": "user", "content": content})
}

// item is a JSON object. Its fields are written in alphabetical order.
type item = map[string]any

func (r *renderer) text(text string) item {
	if r.wire == furl.FormatResponses {
		return item{"type": "input_text", "text": text}
	}
	return item{"type": "text", "text": text}
}

func (r *renderer) image(pic picture) item {
	switch r.wire {
	case furl.FormatResponses:
		return item{"type": "input_image", "image_url": pic.dataURL(), "detail": "auto"}
	case furl.FormatAnthropic:
		if pic.url != "" {
			return item{"type": "image", "source": item{"type": "url", "url": pic.url}}
		}
		return item{"type": "image", "source": item{"type": "base64", "media_type": pic.mime, "data": pic.data}}
	}
	return item{"type": "image_url", "image_url": item{"url": pic.dataURL()}}
}

// assistant renders one reply of the model. It returns nothing if no part of
// it is sent back to the model. It replaces the ids of calls in pieces by
// wire ids.
func (r *renderer) assistant(pieces []piece) ([]*furl.Message, error) {
	for i := range pieces {
		if pieces[i].kind == furl.KindCall {
			pieces[i].id = r.callID(pieces[i].id)
		}
	}
	switch r.wire {
	case furl.FormatAnthropic:
		return r.assistantAnthropic(pieces)
	case furl.FormatResponses:
		return r.assistantItems(pieces)
	}
	return r.assistantChat(pieces)
}

func (r *renderer) assistantAnthropic(pieces []piece) ([]*furl.Message, error) {
	var content []any
	says := false // content other than thinking
	for i := range pieces {
		p := &pieces[i]
		switch {
		case p.kind == furl.KindThinking && p.redacted && p.signature != "":
			content = append(content, item{"type": "redacted_thinking", "data": p.signature})
		case p.kind == furl.KindThinking && p.signature != "":
			content = append(content, item{"type": "thinking", "thinking": p.text, "signature": p.signature})
		case p.kind == furl.KindText && strings.TrimSpace(p.text) != "":
			content, says = append(content, r.text(p.text)), true
		case p.kind == furl.KindCall:
			content, says = append(content, item{"type": "tool_use", "id": p.id, "name": p.name, "input": callObject(p.args)}), true
		}
	}
	if !says {
		return nil, nil // a message of thinking only is refused
	}
	return r.decode(item{"role": "assistant", "content": content})
}

func (r *renderer) assistantItems(pieces []piece) ([]*furl.Message, error) {
	var items []any
	for i := range pieces {
		p := &pieces[i]
		switch {
		case p.kind == furl.KindThinking && p.signature != "":
			summary := []any{}
			if p.text != "" {
				summary = append(summary, item{"type": "summary_text", "text": p.text})
			}
			it := item{"type": "reasoning", "summary": summary, "encrypted_content": p.signature}
			if p.itemID != "" && !r.used["item "+p.itemID] { // ids may be redacted
				r.used["item "+p.itemID] = true
				it["id"] = p.itemID
			}
			items = append(items, it)
		case p.kind == furl.KindText && p.text != "":
			items = append(items, item{"type": "message", "role": "assistant", "content": []any{item{"type": "output_text", "text": p.text, "annotations": []any{}}}})
		case p.kind == furl.KindCall:
			items = append(items, item{"type": "function_call", "call_id": p.id, "name": p.name, "arguments": string(callObject(p.args))})
		}
	}
	// Reasoning must be followed by its output.
	for n := len(items); n > 0 && items[n-1].(item)["type"] == "reasoning"; n-- {
		items = items[:n-1]
	}
	return r.decode(items...)
}

func (r *renderer) assistantChat(pieces []piece) ([]*furl.Message, error) {
	var texts, thoughts []string
	var calls []any
	for i := range pieces {
		p := &pieces[i]
		switch {
		case p.kind == furl.KindText && p.text != "":
			texts = append(texts, p.text)
		case p.kind == furl.KindThinking && p.text != "":
			thoughts = append(thoughts, p.text)
		case p.kind == furl.KindCall:
			calls = append(calls, item{"id": p.id, "type": "function", "function": item{"name": p.name, "arguments": string(callObject(p.args))}})
		}
	}
	if len(texts) == 0 && len(calls) == 0 {
		return nil, nil
	}
	m := item{"role": "assistant", "content": nil}
	if len(texts) > 0 {
		m["content"] = strings.Join(texts, "\n\n")
	}
	if len(calls) > 0 {
		m["tool_calls"] = calls
	}
	if len(thoughts) > 0 && replaysReasoning(r.model) {
		m["reasoning_content"] = strings.Join(thoughts, "\n\n")
	}
	return r.decode(m)
}

// results renders the results of one step's calls. Their ids are wire ids.
func (r *renderer) results(pieces []piece) ([]*furl.Message, error) {
	var out []any
	var beside []any // images that a Chat Completions tool message cannot contain
	for i := range pieces {
		p := &pieces[i]
		if p.kind != furl.KindResult {
			continue
		}
		switch r.wire {
		case furl.FormatAnthropic:
			block := item{"type": "tool_result", "tool_use_id": p.id, "content": r.resultContent(p)}
			if p.failed {
				block["is_error"] = true
			}
			out = append(out, block)
		case furl.FormatResponses:
			out = append(out, item{"type": "function_call_output", "call_id": p.id, "output": r.resultContent(p)})
		default:
			out = append(out, item{"role": "tool", "tool_call_id": p.id, "content": p.text})
			for _, pic := range p.images {
				beside = append(beside, r.image(pic))
			}
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	if r.wire == furl.FormatAnthropic {
		out = []any{item{"role": "user", "content": out}}
	}
	if len(beside) > 0 {
		out = append(out, item{"role": "user", "content": beside})
	}
	msgs, err := r.decode(out...)
	if err == nil {
		r.markFailed(msgs, pieces)
	}
	return msgs, err
}

func (r *renderer) resultContent(p *piece) any {
	if len(p.images) == 0 {
		return p.text
	}
	var content []any
	if p.text != "" {
		content = append(content, r.text(p.text))
	}
	for _, pic := range p.images {
		content = append(content, r.image(pic))
	}
	return content
}

// markFailed marks results that failed according to the recording. OpenAI's
// formats have no field for it on the wire. The text counts only if the
// recording does not say which results failed.
func (r *renderer) markFailed(msgs []*furl.Message, pieces []piece) {
	failed := map[string]bool{}
	for i := range pieces {
		if pieces[i].failed {
			failed[pieces[i].id] = true
		}
	}
	for _, m := range msgs {
		for i := range m.Blocks {
			if b := &m.Blocks[i]; b.Kind == furl.KindResult {
				b.Error = b.Error || failed[b.ID]
				b.ErrorText = r.unflagged && !b.Error && openai.FailedText(b.Text)
			}
		}
	}
}

// decode turns wire objects into messages.
func (r *renderer) decode(objects ...any) ([]*furl.Message, error) {
	var msgs []*furl.Message
	for _, o := range objects {
		raw, err := marshal(o)
		if err != nil {
			return nil, err
		}
		m, err := r.codec.DecodeMessage(raw)
		if err != nil {
			return nil, err
		}
		msgs = append(msgs, m)
	}
	return msgs, nil
}

// marshal is json.Marshal without escaping for HTML.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// callObject returns a call's arguments as the JSON object that providers
// require. A string that contains an object becomes that object; anything
// else is wrapped.
func callObject(args json.RawMessage) json.RawMessage {
	args = bytes.TrimSpace(args)
	if len(args) > 0 && args[0] == '"' {
		var s string
		if json.Unmarshal(args, &s) == nil {
			if inner := bytes.TrimSpace([]byte(s)); len(inner) == 0 || inner[0] == '{' && json.Valid(inner) {
				args = inner
			}
		}
	}
	switch {
	case len(args) == 0 || string(args) == "null":
		return json.RawMessage("{}")
	case args[0] == '{' && json.Valid(args):
		return args
	case json.Valid(args):
		return append(append([]byte(`{"input":`), args...), '}')
	}
	raw, _ := marshal(item{"input": string(args)}) // strings always marshal
	return raw
}
