package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// NewMessage builds a message of this format from blocks and decodes it again,
// so that Start, End and Digest are those of its bytes. It is for importers of
// recordings that are no provider's own requests: what the recording lacks is
// filled in so that the message has the size it had then, not so that the
// provider would take it.
//
//   - Results come first and make it a user message, as does any role but
//     assistant.
//   - Thinking gets a signature of Signature times the letter A; thinking
//     without words but with a signature becomes redacted_thinking.
//   - An image or document becomes a text that names it, since its bytes are
//     unknown; the decoded block keeps Media.
//   - Arguments that are no object are put into one, under "input".
//   - A cache mark becomes one of the default lifetime.
//
// Ids and names stay as they are. A message without content is an error.
func (codec) NewMessage(role furl.Role, blocks []furl.Block) (*furl.Message, error) {
	b := builder{message: newBuilt(role, blocks), own: true}
	for i := range blocks {
		b.block(&blocks[i], blocks[i].Text, nil)
	}
	built := b.done()
	if len(built.parts) == 0 {
		return nil, errors.New("a message without content")
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

// built is a message made of parts, before it is written down.
type built struct {
	role  string
	parts []part
}

// part is one content block.
type part struct {
	raw    []byte
	result bool
	media  []furl.Media // what a text only names
}

// newBuilt takes the role over. Roles for instructions become user: inside the
// list only some models take system, and only at few places, which a codec
// cannot know; the user role is taken everywhere.
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

// encode writes the message: fixed order of fields, no optional space.
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
	// own is set when the blocks describe a message of this format, whose
	// thinking is to be kept.
	own bool
}

// done puts results first: the provider wants them before anything else.
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

// shown adds a block that shows another text in its place.
func (b *builder) shown(blk *furl.Block, text string) {
	switch blk.Kind {
	case furl.KindCall:
		c := *blk
		c.Args = object(text, "furl_shortened")
		b.block(&c, "", nil)
	case furl.KindResult:
		b.add(appendResult(nil, blk, quote(text)), part{result: true}, blk.CacheMark)
	default:
		b.add(appendText(nil, text), part{}, blk.CacheMark)
	}
}

// block adds a block as it was recorded. raw are its bytes in another format,
// nil where there are none.
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
			text = joinLines(text, mediaNames(blk.Media[len(sources):]))
		}
		b.add(appendResult(nil, blk, resultContent(text, sources)), p, blk.CacheMark)
	case furl.KindImage, furl.KindDocument:
		if sources := findSources(raw, 1); len(sources) == 1 {
			b.add(sources[0], part{}, blk.CacheMark)
			return
		}
		text = joinLines(mediaNames(blk.Media), text)
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
	b.add(append(out, `"}`...), part{}, false) // thinking takes no cache mark
}

func appendResult(dst []byte, blk *furl.Block, content []byte) []byte {
	dst = append(append(dst, `{"type":"tool_result","tool_use_id":`...), quoteAny(blk.ID)...)
	dst = append(append(dst, `,"content":`...), content...)
	if blk.Error {
		dst = append(dst, `,"is_error":true`...)
	}
	return append(dst, '}')
}

// resultContent is a string where there are only words.
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

// quoteAny quotes ids and names, which may be anything.
func quoteAny(s string) []byte { return rawjson.AppendString(nil, s) }

// input gives a call's arguments as an object; those of free-form tools are a
// JSON string and go into one.
func input(args json.RawMessage) []byte {
	text := string(args)
	if rawjson.NewReader(args).Kind() == '"' {
		text = rawjson.Unquote(bytes.TrimSpace(args))
	}
	return object(text, "input")
}

// mediaNames describes media whose bytes are not at hand, one a line.
func mediaNames(media []furl.Media) string {
	var lines []string
	for _, m := range media {
		s := "[" + m.Kind.String()
		if m.Type != "" {
			s += " " + m.Type
		}
		if m.Width > 0 && m.Height > 0 {
			s += fmt.Sprintf(" %dx%d", m.Width, m.Height)
		}
		lines = append(lines, s+"]")
	}
	return strings.Join(lines, "\n")
}
