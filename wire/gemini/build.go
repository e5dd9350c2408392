package gemini

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

// skipValidator is a signature that the provider accepts on calls without their own, such as
// those of other models
// (ai.google.dev/gemini-api/docs/thought-signatures, "FAQs", 2026-11).
const skipValidator = "skip_thought_signature_validator"

// NewMessage builds a content from blocks and decodes it
// again, so that Start, End and Digest match its bytes. It is for importers
// of recordings that do not contain provider requests. Missing data is filled
// in so that the content has its original size.
//
//   - Thoughts get a signature of Signature letters A.
//   - An image or document becomes a text with its name, because its bytes are
//     unknown; the decoded block keeps Media.
//   - Arguments that are not an object become one, in the field "input".
//
// A content without parts is an error.
func (codec) NewMessage(role furl.Role, blocks []furl.Block) (*furl.Message, error) {
	b := builder{message: newBuilt(role, blocks), own: true}
	for i := range blocks {
		b.block(&blocks[i], blocks[i].Text, nil)
	}
	built := b.message
	if len(built.parts) == 0 {
		return nil, errors.New("empty message")
	}
	m, err := codec{}.DecodeMessage(built.encode())
	if err != nil {
		return nil, fmt.Errorf("build message: %w", err)
	}
	if len(m.Blocks) == len(built.parts) {
		for i, p := range built.parts {
			if len(p.media) > 0 {
				m.Blocks[i].Media = p.media
			}
		}
	}
	return m, nil
}

// built is a content made of parts, before encoding.
type built struct {
	role  string
	parts []builtPart
}

type builtPart struct {
	raw   []byte
	media []furl.Media // media that a text only names
}

// newBuilt converts the role. Instructions become contents of the user: the list has no
// role for them.
func newBuilt(role furl.Role, blocks []furl.Block) *built {
	m := &built{role: roleUser}
	if role == furl.RoleAssistant {
		m.role = roleModel
		for i := range blocks {
			if blocks[i].Kind == furl.KindResult {
				m.role = roleUser
			}
		}
	}
	return m
}

// buildShown builds a content of a message that has no bytes of this format.
func buildShown(s furl.Shown) *built {
	b := builder{message: newBuilt(s.Msg.Role, s.Msg.Blocks)}
	for i := range s.Blocks {
		sb := &s.Blocks[i]
		if sb.By != 0 {
			b.shown(sb.Block, sb.Text)
			continue
		}
		b.block(sb.Block, sb.Block.Text, bytesOf(s.Msg, sb.Block))
	}
	return b.message
}

// encode writes the content without optional spaces.
func (m *built) encode() json.RawMessage {
	out := append([]byte(`{"role":"`), m.role...)
	out = append(out, `","parts":[`...)
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

func (b *builder) add(raw []byte, media []furl.Media) {
	b.message.parts = append(b.message.parts, builtPart{raw, media})
}

// shown adds a block whose text is replaced.
func (b *builder) shown(blk *furl.Block, text string) {
	switch blk.Kind {
	case furl.KindCall:
		c := *blk
		c.Args = rawjson.ObjectOf(text, "furl_shortened")
		b.block(&c, "", nil)
	case furl.KindResult:
		b.add(appendResult(blk, text, nil), nil)
	default:
		b.add(textPart(text, nil), nil)
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
		out := append(append([]byte(`{"functionCall":{`), idField(blk.ID)...), `"name":`...)
		out = append(append(out, quoteAny(blk.Name)...), `,"args":`...)
		out = append(append(out, arguments(blk.Args)...), '}')
		if b.message.role == roleModel && !b.called() {
			out = append(append(append(out, `,"thoughtSignature":"`...), signature(blk, b.own)...), '"')
		}
		b.add(append(out, '}'), nil)
	case furl.KindResult:
		media := findMedia(raw, len(blk.Media))
		var named []furl.Media
		if len(media) < len(blk.Media) {
			named = blk.Media
			text = joinLines(text, protocol.MediaNames(blk.Media[len(media):]))
		}
		b.add(appendResult(blk, text, media), named)
	case furl.KindImage, furl.KindDocument:
		if media := findMedia(raw, 1); len(media) == 1 {
			b.add(media[0], nil)
			return
		}
		text = joinLines(protocol.MediaNames(blk.Media), text)
		if text == "" {
			text = "[" + blk.Kind.String() + "]"
		}
		b.add(textPart(text, nil), blk.Media)
	default:
		if strings.TrimSpace(text) != "" {
			b.add(textPart(text, nil), blk.Media)
		}
	}
}

// called reports whether the content has a call: only the first of parallel calls has a
// signature.
func (b *builder) called() bool {
	for i := range b.message.parts {
		if bytes.HasPrefix(b.message.parts[i].raw, []byte(`{"functionCall"`)) {
			return true
		}
	}
	return false
}

func signature(blk *furl.Block, own bool) []byte {
	if own && blk.Signature > 0 {
		return bytes.Repeat([]byte{'A'}, blk.Signature)
	}
	return []byte(skipValidator)
}

func (b *builder) thinking(blk *furl.Block) {
	if blk.Text == "" && blk.Signature == 0 {
		return
	}
	out := rawjson.AppendString([]byte(`{"text":`), blk.Text)
	out = append(out, `,"thought":true`...)
	if blk.Signature > 0 {
		out = append(append(out, `,"thoughtSignature":"`...), bytes.Repeat([]byte{'A'}, blk.Signature)...)
		out = append(out, '"')
	}
	b.add(append(out, '}'), nil)
}

// idField returns the field id with a comma. Ids that furl gave are not sent.
func idField(id string) []byte {
	if id == "" || furl.IsGivenID(id) {
		return nil
	}
	return append(append([]byte(`"id":`), quoteAny(id)...), ',')
}

func appendResult(blk *furl.Block, text string, media [][]byte) []byte {
	out := append(append([]byte(`{"functionResponse":{`), idField(blk.ID)...), `"name":`...)
	name := blk.Name
	if name == "" {
		name = "unknown" // the provider refuses a result without a name
	}
	out = append(append(out, quoteAny(name)...), `,"response":`...)
	out = append(out, response(text, blk.Error)...)
	if len(media) > 0 {
		out = append(append(append(out, `,"parts":[`...), bytes.Join(media, []byte{','})...), ']')
	}
	return append(out, "}}"...)
}

// arguments returns a call's arguments as an object; the arguments of OpenAI's custom
// tools are a JSON string and are put into one.
func arguments(args json.RawMessage) []byte {
	text := string(args)
	if rawjson.NewReader(args).Kind() == '"' {
		text = rawjson.Unquote(bytes.TrimSpace(args))
	}
	return rawjson.ObjectOf(text, "input")
}
