package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// NewMessage builds a message of this format from blocks and decodes it
// again, so that Start, End and Digest match its bytes. It is for importers
// of recordings that do not contain provider requests. Missing data is filled
// in so that the message has its original size; the provider would not
// necessarily accept it.
//
//   - Results come first and make it a user message, as does any role except
//     assistant.
//   - Thinking gets a signature of Signature letters A; thinking without text
//     but with a signature becomes redacted_thinking.
//   - An image or document becomes a text with its name, because its bytes are
//     unknown; the decoded block keeps Media.
//   - Arguments that are not an object become one, in the field "input".
//   - A cache breakpoint gets the default lifetime.
//
// Ids and names are not changed. A message without content is an error.
func (codec) NewMessage(role furl.Role, blocks []furl.Block) (*furl.Message, error) {
	b := builder{message: newBuilt(role, blocks), own: true}
	for i := range blocks {
		b.block(&blocks[i], blocks[i].Text, nil)
	}
	built := b.done()
	if len(built.parts) == 0 {
		return nil, errors.New("empty message")
	}
	m, err := codec{}.DecodeMessage(built.encode())
	if err != nil {
		return nil, fmt.Errorf("build message: %w", err)
	}
	for i, p := range built.parts {
		if len(p.media) > 0 {
			m.Blocks[i].Media = p.media
		}
	}
	return m, nil
}

// built is a message made of parts, before encoding.
type built struct {
	role  string
	parts []part
}

// part is one content block.
type part struct {
	raw    []byte
	result bool
	media  []furl.Media // media that a text only names
}

// newBuilt converts the role. Instructions become user messages: only some
// models accept the system role inside the list, at few positions that a
// codec cannot know; the user role is accepted everywhere.
func newBuilt(role furl.Role, blocks []furl.Block) *built {
	m := &built{role: "user"}
	if role == furl.RoleAssistant {
		m.role = "assistant"
		for i := range blocks {
			if blocks[i].Kind == furl.KindResult {
				m.role = "user"
			}
		}
	}
	return m
}

// buildShown builds a message that has no bytes of this format.
func buildShown(s furl.Shown) *built {
	b := builder{message: newBuilt(s.Msg.Role, s.Msg.Blocks)}
	for i := range s.Blocks {
		sb := &s.Blocks[i]
		if sb.By != 0 {
			b.shown(sb.Block, sb.Text)
			continue
		}
		var raw []byte
		if sb.Block.End > sb.Block.Start && sb.Block.End <= len(s.Msg.Raw) {
			raw = s.Msg.Raw[sb.Block.Start:sb.Block.End]
		}
		b.block(sb.Block, sb.Block.Text, raw)
	}
	return b.done()
}

// encode writes the message with fixed field order and without optional
// spaces.
func (m *built) encode() json.RawMessage {
	out := append([]byte(`{"role":"`), m.role...)
	out = append(out, `","content":[`...)
	for i, p := range m.parts {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, p.raw...)
	}
	return append(out, "]}"...)
}

type builder struct {
	message *built
	// own means that the blocks are from a message of this format, whose
	// thinking must be kept.
	own bool
}

// done moves results to the front, where the provider requires them.
func (b *builder) done() *built {
	m := b.message
	var results, others []part
	for _, p := range m.parts {
		if p.result {
			results = append(results, p)
		} else {
			others = append(others, p)
		}
	}
	m.parts = append(results, others...)
	return m
}

func (b *builder) add(raw []byte, p part, mark bool) {
	if mark {
		raw = append(raw[:len(raw)-1], `,"cache_control":{"type":"ephemeral"}}`...)
	}
	p.raw = raw
	b.message.parts = append(b.message.parts, p)
}

// shown adds a block whose text is replaced.
func (b *builder) shown(blk *furl.Block, text string) {
	switch blk.Kind {
	case furl.KindCall:
		c := *blk
		c.Args = rawjson.ObjectOf(text, "furl_shortened")
		b.block(&c, "", nil)
	case furl.KindResult:
		b.add(appendResult(nil, blk, quote(text)), part{result: true}, blk.CacheMark)
	default:
		b.add(appendText(nil, text), part{}, blk.CacheMark)
	}
}

// block adds a block as recorded. raw is the block in another format, nil if
// there is none.
func (b *builder) block(blk *furl.Block, text string, raw []byte) {
	switch blk.Kind {
	case furl.KindThinking:
		if b.own {
			b.thinking(blk)
		}
	case furl.KindCall:
		out := append([]byte(`{"type":"tool_use","id":`), quoteAny(blk.ID)...)
		out = append(append(out, `,"name":`...), quoteAny(blk.Name)...)
		out = append(append(out, `,"input":`...), input(blk.Args)...)
		b.add(append(out, '}'), part{}, blk.CacheMark)
	case furl.KindResult:
		sources := findSources(raw, len(blk.Media))
		p := part{result: true}
		if len(sources) < len(blk.Media) {
			p.media = blk.Media
			text = joinLines(text, protocol.MediaNames(blk.Media[len(sources):]))
		}
		b.add(appendResult(nil, blk, resultContent(text, sources)), p, blk.CacheMark)
	case furl.KindImage, furl.KindDocument:
		if sources := findSources(raw, 1); len(sources) == 1 {
			b.add(sources[0], part{}, blk.CacheMark)
			return
		}
		text = joinLines(protocol.MediaNames(blk.Media), text)
		if text == "" {
			text = "[" + blk.Kind.String() + "]"
		}
		b.add(appendText(nil, text), part{media: blk.Media}, blk.CacheMark)
	default:
		if strings.TrimSpace(text) != "" {
			b.add(appendText(nil, text), part{media: blk.Media}, blk.CacheMark)
		}
	}
}

func (b *builder) thinking(blk *furl.Block) {
	secret := bytes.Repeat([]byte{'A'}, blk.Signature)
	var out []byte
	switch {
	case blk.Text == "" && blk.Signature == 0:
		return
	case blk.Text == "":
		out = append([]byte(`{"type":"redacted_thinking","data":"`), secret...)
	default:
		out = rawjson.AppendString([]byte(`{"type":"thinking","thinking":`), blk.Text)
		out = append(append(out, `,"signature":"`...), secret...)
	}
	b.add(append(out, `"}`...), part{}, false) // thinking cannot have a cache breakpoint
}

func appendResult(dst []byte, blk *furl.Block, content []byte) []byte {
	dst = append(append(dst, `{"type":"tool_result","tool_use_id":`...), quoteAny(blk.ID)...)
	dst = append(append(dst, `,"content":`...), content...)
	if blk.Error {
		dst = append(dst, `,"is_error":true`...)
	}
	return append(dst, '}')
}

// resultContent returns a string if there is only text.
func resultContent(text string, sources [][]byte) []byte {
	if len(sources) == 0 {
		return quote(text)
	}
	out := []byte{'['}
	if strings.TrimSpace(text) != "" {
		out = append(appendText(out, text), ',')
	}
	out = append(out, bytes.Join(sources, []byte{','})...)
	return append(out, ']')
}

// quoteAny quotes ids and names, which may contain anything.
func quoteAny(s string) []byte { return rawjson.AppendString(nil, s) }

// input returns a call's arguments as an object; the arguments of custom
// tools are a JSON string and are put into one.
func input(args json.RawMessage) []byte {
	text := string(args)
	if rawjson.NewReader(args).Kind() == '"' {
		text = rawjson.Unquote(bytes.TrimSpace(args))
	}
	return rawjson.ObjectOf(text, "input")
}
