package anthropic

import (
	"errors"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// DecodeMessage decodes one element of the messages list.
func (codec) DecodeMessage(raw []byte) (*furl.Message, error) {
	m := new(furl.Message)
	r := rawjson.NewReader(raw)
	if err := decodeMessage(r, raw, m); err != nil {
		return nil, err
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	return m, nil
}

// decodeMessage decodes and seals the message before which r, a Reader of
// buf, stands.
func decodeMessage(r *rawjson.Reader, buf []byte, m *furl.Message) error {
	if r.Kind() != '{' {
		if r.Skip(); r.Err() != nil {
			return r.Err()
		}
		return errors.New("want an object")
	}
	start := r.Offset()
	badContent := false
	for key := range r.Fields() {
		switch string(key) {
		case "role":
			role, _ := r.String()
			m.Role = furl.Role(role)
		case "content":
			m.Blocks, badContent = nil, false // the last of several counts
			switch r.Kind() {
			case '"':
				text, _ := r.String()
				m.Blocks = []furl.Block{{Kind: furl.KindText, Text: text}}
			case '[':
				for range r.Elements() {
					b, span := decodeBlock(r, buf, 0)
					b.Start, b.End = span.Start-start, span.End-start
					m.Blocks = append(m.Blocks, b)
				}
			case 'n':
			default:
				badContent = true
			}
		}
	}
	if r.Err() != nil {
		return r.Err()
	}
	if badContent {
		return errors.New("content: want a string or a list of blocks")
	}
	m.Format = furl.FormatAnthropic
	m.Raw = buf[start:r.Pos():r.Pos()]
	m.Seal()
	return nil
}

// fields are the fields of a content block, of any type, that mean something
// to furl. Each is the raw value, nil where the block has none.
type fields struct {
	typ                          string
	text, thinking               []byte
	signature, data              []byte
	id, toolUseID, name, input   []byte
	content, source, isError     []byte
	title, context, cacheControl []byte
	mediaType, url, fileID       []byte
}

// readFields consumes the value before which r stands. What is no object has
// no fields.
func readFields(r *rawjson.Reader) (f fields) {
	if r.Kind() != '{' {
		r.Skip()
		return f
	}
	for key := range r.Fields() {
		var to *[]byte
		switch string(key) {
		case "type":
			f.typ, _ = r.String()
			continue
		case "text":
			to = &f.text
		case "thinking":
			to = &f.thinking
		case "signature":
			to = &f.signature
		case "data":
			to = &f.data
		case "id":
			to = &f.id
		case "tool_use_id":
			to = &f.toolUseID
		case "name":
			to = &f.name
		case "input":
			to = &f.input
		case "content":
			to = &f.content
		case "source":
			to = &f.source
		case "is_error":
			to = &f.isError
		case "title":
			to = &f.title
		case "context":
			to = &f.context
		case "cache_control":
			to = &f.cacheControl
		case "media_type":
			to = &f.mediaType
		case "url":
			to = &f.url
		case "file_id":
			to = &f.fileID
		default:
			continue
		}
		*to = r.Raw()
	}
	return f
}

// maxParts is how deep blocks may stand inside blocks: images in a document in
// a result make 2. Each level is read once more, so hostile nesting is cut off
// here and read as an opaque block.
const maxParts = 4

// decodeBlock decodes the content block before which r, a Reader of buf,
// stands, and says where it stood. Start and End are left to the caller.
func decodeBlock(r *rawjson.Reader, buf []byte, depth int) (furl.Block, rawjson.Span) {
	start := r.Offset()
	f := readFields(r)
	if r.Err() != nil {
		return furl.Block{}, rawjson.Span{}
	}
	span := rawjson.Span{Start: start, End: r.Pos()}
	b := furl.Block{CacheMark: present(f.cacheControl)}
	switch f.typ {
	case "text":
		b.Kind = furl.KindText
		b.Text = rawjson.Unquote(f.text)
	case "thinking":
		b.Kind = furl.KindThinking
		b.Text = rawjson.Unquote(f.thinking)
		b.Signature = stringLen(f.signature)
	case "redacted_thinking":
		b.Kind = furl.KindThinking
		b.Signature = stringLen(f.data)
	case "tool_use":
		b.Kind = furl.KindCall
		b.ID = rawjson.Unquote(f.id)
		b.Name = rawjson.Unquote(f.name)
		b.Args = f.input
		if len(b.Args) == 0 {
			b.Args = []byte("{}")
		}
	case "tool_result":
		b.Kind = furl.KindResult
		b.ID = rawjson.Unquote(f.toolUseID)
		b.Error = string(f.isError) == "true"
		b.Text = joinLines(readParts(&b, f.content, depth+1)...)
	case "image":
		b.Kind = furl.KindImage
		b.Media = []furl.Media{readMedia(furl.KindImage, f.source)}
	case "document":
		b.Kind = furl.KindDocument
		readDocument(&b, f, depth)
	default:
		b.Kind = furl.KindOpaque
		b.Name = f.typ
		b.ID = rawjson.Unquote(f.id)
		if b.ID == "" {
			b.ID = rawjson.Unquote(f.toolUseID)
		}
		b.Text, b.Signature = readWords(span.Of(buf))
	}
	return b, span
}

// readParts reads the content of a result, or of a document made of parts: a
// string, or a list of blocks. It returns the words and adds the rest to b.
func readParts(b *furl.Block, content []byte, depth int) (texts []string) {
	r := rawjson.NewReader(content)
	switch r.Kind() {
	case '"':
		text, _ := r.String()
		return []string{text}
	case '[':
		for range r.Elements() {
			if depth > maxParts {
				text, secret := readWords(r.Raw())
				texts, b.Signature = append(texts, text), b.Signature+secret
				continue
			}
			part, _ := decodeBlock(r, content, depth)
			texts = append(texts, part.Text)
			b.Media = append(b.Media, part.Media...)
			b.Signature += part.Signature
			b.CacheMark = b.CacheMark || part.CacheMark
		}
	}
	return texts
}

// joinLines joins what is not empty.
func joinLines(texts ...string) string {
	kept := texts[:0]
	for _, t := range texts {
		if t != "" {
			kept = append(kept, t)
		}
	}
	return strings.Join(kept, "\n")
}

// present reports whether a field is there and is not null.
func present(raw []byte) bool { return len(raw) > 0 && string(raw) != "null" }

// stringLen is the length of a string's bytes on the wire, without quotes.
func stringLen(raw []byte) int { return len(inside(raw)) }

// inside gives a string's bytes on the wire without the quotes, nil if raw is
// no string.
func inside(raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return nil
	}
	return raw[1 : len(raw)-1]
}
