package openai

import (
	"encoding/json"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// piece is the shown content of one block of a message in another format.
type piece struct {
	furl.Block
	edited bool   // Text or Args is a replacement
	url    []byte // JSON string: the URL of an image in a message of OpenAI's other format
}

func shownPieces(s *furl.Shown) []piece {
	pieces := make([]piece, 0, len(s.Blocks))
	for i := range s.Blocks {
		sb := &s.Blocks[i]
		p := piece{Block: *sb.Block, edited: sb.By != 0}
		switch {
		case p.edited && p.Kind == furl.KindCall:
			p.Args = []byte(sb.Text)
		case p.edited:
			p.Text = sb.Text
		case p.Kind == furl.KindImage:
			p.url = imageURL(s.Msg, sb.Block)
		}
		pieces = append(pieces, p)
	}
	return pieces
}

// imageURL finds the URL of an image, as a JSON string, in the bytes of a
// message of another format.
func imageURL(m *furl.Message, b *furl.Block) []byte {
	if b.End > len(m.Raw) || b.Start >= b.End {
		return nil
	}
	raw := m.Raw[b.Start:b.End]
	if m.Format == furl.FormatAnthropic {
		return sourceURL(rawjson.Field(raw, "source"))
	}
	if p := readPart(raw, rawjson.NewReader(raw), 0); p.kind == furl.KindImage && p.isURL {
		return p.source.Of(raw)
	}
	return nil
}

// sourceURL makes a URL of the source of an Anthropic image.
func sourceURL(source []byte) []byte {
	data := stringBytes(rawjson.Field(source, "data"))
	if data == nil {
		url := rawjson.Field(source, "url")
		if stringLen(url) == 0 {
			return nil
		}
		return url
	}
	mime := rawjson.Unquote(rawjson.Field(source, "media_type"))
	return quote("data:" + mime + ";base64," + string(data))
}

// words returns the text of a text, an opaque block or an image.
func (p *piece) words() string {
	text := p.Text
	if !p.edited {
		for _, m := range p.Media {
			if text != "" {
				text += "\n"
			}
			text += mediaNote(m)
		}
	}
	return text
}

// output returns the text of a result, which is never empty.
func (p *piece) output() string {
	if text := p.words(); text != "" {
		return text
	}
	return "(no output)"
}

// arguments returns a call's arguments as a JSON object. Other values, such
// as the input of a custom tool or broken JSON, are wrapped in one: the
// result does not tell what kind of call it answers.
func (p *piece) arguments() []byte {
	switch {
	case p.edited:
		return shortened(string(p.Args))
	case len(p.Args) == 0:
		return []byte("{}")
	case isObject(p.Args):
		return p.Args
	case rawjson.Check(p.Args) == nil:
		return append(appendField([]byte{'{'}, "input", p.Args), '}')
	}
	return append(appendField([]byte{'{'}, "input", quote(string(p.Args))), '}')
}

// buildChat builds messages of Chat Completions: first the results, then one
// message with everything else. Thinking is written only if requested, for
// messages created in this format.
func buildChat(role furl.Role, pieces []piece, thinking bool) []json.RawMessage {
	var list []json.RawMessage
	for i := range pieces {
		if p := &pieces[i]; p.Kind == furl.KindResult {
			out := appendField([]byte{'{'}, "role", quote("tool"))
			out = appendField(out, "tool_call_id", quote(p.ID))
			out = appendField(out, "content", quote(p.output()))
			list = append(list, append(out, '}'))
		}
	}
	if role == furl.RoleTool || !role.Known() {
		role = furl.RoleUser // text with results, or of an item without a role
	}
	if out := buildChatMessage(role, pieces, thinking); out != nil {
		list = append(list, out)
	}
	return list
}

func buildChatMessage(role furl.Role, pieces []piece, thinking bool) []byte {
	var content [][]byte // parts
	var text, thought string
	var calls []byte
	pictures := false
	for i := range pieces {
		switch p := &pieces[i]; p.Kind {
		case furl.KindResult:
		case furl.KindThinking:
			thought = joined(thought, p.Text)
		case furl.KindCall:
			calls = append(calls, ',')
			calls = append(calls, buildChatCall(p)...)
		default:
			if p.url != nil && role != furl.RoleAssistant {
				url := append(appendField([]byte{'{'}, "url", p.url), '}')
				img := appendField([]byte{'{'}, "type", quote("image_url"))
				content = append(content, append(appendField(img, "image_url", url), '}'))
				pictures = true
			} else if words := p.words(); words != "" {
				text = words
				content = append(content, textPart("text", words))
			}
		}
	}
	out := appendField([]byte{'{'}, "role", quote(string(role)))
	switch {
	case len(content) == 1 && !pictures:
		out = appendField(out, "content", quote(text))
	case len(content) > 0:
		out = appendField(out, "content", list(content))
	case len(calls) > 0:
		out = appendField(out, "content", []byte("null"))
	case !thinking || thought == "":
		return nil
	}
	if thinking && thought != "" {
		out = appendField(out, thinkingFields[0], quote(thought))
	}
	if len(calls) > 0 {
		calls[0] = '['
		out = appendField(out, "tool_calls", append(calls, ']'))
	}
	return append(out, '}')
}

func buildChatCall(p *piece) []byte {
	function := appendField([]byte{'{'}, "name", quote(p.Name))
	function = appendField(function, "arguments", quote(string(p.arguments())))
	out := appendField([]byte{'{'}, "id", quote(p.ID))
	out = appendField(out, "type", quote("function"))
	out = appendField(out, "function", append(function, '}'))
	return append(out, '}')
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

func list(elems [][]byte) []byte {
	out := []byte{'['}
	for i, e := range elems {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, ']')
}

// NewMessage builds a message of Chat Completions. Blocks that do not fit
// into one message, such as two results, are an error. Thinking becomes
// reasoning_content. Images and documents become texts with their names,
// because the blocks only describe them. Results marked as errors keep the
// mark.
func (c chat) NewMessage(role furl.Role, blocks []furl.Block) (*furl.Message, error) {
	m, err := newMessage(c, buildChat(role, givenPieces(blocks), true), blocks)
	if err != nil {
		return nil, fmt.Errorf("new Chat Completions message: %w", err)
	}
	return m, nil
}

func givenPieces(blocks []furl.Block) []piece {
	pieces := make([]piece, len(blocks))
	for i := range blocks {
		pieces[i].Block = blocks[i]
	}
	return pieces
}

// newMessage decodes the element that was built from the blocks; more than
// one is an error.
func newMessage(c protocol.Codec, elems []json.RawMessage, blocks []furl.Block) (*furl.Message, error) {
	if len(elems) != 1 {
		return nil, fmt.Errorf("%d blocks make %d elements, not one", len(blocks), len(elems))
	}
	m, err := c.DecodeMessage(elems[0])
	if err != nil {
		return nil, err
	}
	for i := range blocks {
		if b := &blocks[i]; b.Kind == furl.KindResult && b.Error && m.Blocks[0].Kind == furl.KindResult {
			m.Blocks[0].Error = true
		}
	}
	return m, nil
}

// buildItems builds items of Responses: first the results, then messages and
// calls in order. Thinking is written only if requested, for messages created
// in this format.
func buildItems(role furl.Role, pieces []piece, thinking bool) []json.RawMessage {
	var items []json.RawMessage
	for i := range pieces {
		if p := &pieces[i]; p.Kind == furl.KindResult {
			out := appendField([]byte{'{'}, "type", quote("function_call_output"))
			out = appendField(out, "call_id", quote(p.ID))
			items = append(items, append(appendField(out, "output", quote(p.output())), '}'))
		}
	}
	if role == furl.RoleTool || !role.Known() {
		role = furl.RoleUser // text with results, or of an item without a role
	}
	var content [][]byte // of the current message
	flush := func() {
		if len(content) == 0 {
			return
		}
		out := appendField([]byte{'{'}, "type", quote("message"))
		out = appendField(out, "role", quote(string(role)))
		items = append(items, append(appendField(out, "content", list(content)), '}'))
		content = nil
	}
	for i := range pieces {
		switch p := &pieces[i]; p.Kind {
		case furl.KindResult:
		case furl.KindThinking:
			if thinking && (p.Text != "" || p.ID != "") {
				flush()
				items = append(items, buildReasoning(p))
			}
		case furl.KindCall:
			flush()
			out := appendField([]byte{'{'}, "type", quote("function_call"))
			out = appendField(out, "call_id", quote(p.ID))
			out = appendField(out, "name", quote(p.Name))
			items = append(items, append(appendField(out, "arguments", quote(string(p.arguments()))), '}'))
		default:
			if part := buildPart(role, p); part != nil {
				content = append(content, part)
			}
		}
	}
	flush()
	return items
}

func buildPart(role furl.Role, p *piece) []byte {
	if p.url != nil && role != furl.RoleAssistant {
		out := appendField([]byte{'{'}, "type", quote("input_image"))
		return append(appendField(out, "image_url", p.url), '}')
	}
	words := p.words()
	if words == "" {
		return nil
	}
	if role == furl.RoleAssistant {
		return textPart("output_text", words)
	}
	return textPart("input_text", words)
}

func buildReasoning(p *piece) []byte {
	out := appendField([]byte{'{'}, "type", quote("reasoning"))
	if p.ID != "" {
		out = appendField(out, "id", quote(p.ID))
	}
	var summary [][]byte
	if p.Text != "" {
		summary = append(summary, textPart("summary_text", p.Text))
	}
	return append(appendField(out, "summary", list(summary)), '}')
}

// NewMessage builds an item of Responses. Blocks that do not fit into one
// item, such as text and a call, are an error. Thinking becomes a reasoning
// item with a summary. Images and documents become texts with their names,
// because the blocks only describe them. Results marked as errors keep the
// mark.
func (c responses) NewMessage(role furl.Role, blocks []furl.Block) (*furl.Message, error) {
	m, err := newMessage(c, buildItems(role, givenPieces(blocks), true), blocks)
	if err != nil {
		return nil, fmt.Errorf("new Responses item: %w", err)
	}
	return m, nil
}
