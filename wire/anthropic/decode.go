package anthropic

import (
	"errors"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

var (
	messageNames = rawjson.NewNames("role", "content")
	// blockNames are the names in fields.
	blockNames = rawjson.NewNames("type", "text", "thinking", "signature", "data", "id", "tool_use_id", "name", "input",
		"content", "source", "is_error", "title", "context", "cache_control", "media_type", "url", "file_id", "caller")
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

// decodeMessage decodes and seals the next message of r, a Reader of buf.
func decodeMessage(r *rawjson.Reader, buf []byte, m *furl.Message) error {
	if r.Kind() != '{' {
		if r.Skip(); r.Err() != nil {
			return r.Err()
		}
		return errors.New("expected an object")
	}
	start := r.Offset()
	badContent := false
	var few [4]furl.Block // most messages have no more
	for key := range r.FieldsOf(messageNames) {
		switch string(key) {
		case "role":
			m.Role = furl.Role(readName(r))
		case "content":
			m.Blocks, badContent = nil, false // the last of several fields counts
			switch r.Kind() {
			case '"':
				text, _ := r.String()
				m.Blocks = []furl.Block{{Kind: furl.KindText, Text: text}}
			case '[':
				blocks := few[:0]
				for range r.Elements() {
					b, span := decodeBlock(r, buf, 0)
					b.Start, b.End = span.Start-start, span.End-start
					blocks = append(blocks, b)
				}
				m.Blocks = slices.Clone(blocks)
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
		return errors.New("content: expected a string or a list of blocks")
	}
	m.Format = furl.FormatAnthropic
	if !m.Role.Known() {
		for i := range m.Blocks {
			m.Blocks[i].Fixed = true
		}
	}
	m.Raw = buf[start:r.Pos():r.Pos()]
	m.Seal()
	return nil
}

// fields are the fields of a content block, of any type, that furl uses.
type fields struct {
	typ                          string
	text, thinking               rawjson.Value
	signature, data              rawjson.Value
	id, toolUseID, name, input   rawjson.Value
	content, source, isError     rawjson.Value
	title, context, cacheControl rawjson.Value
	mediaType, url, fileID       rawjson.Value
	caller                       rawjson.Value
}

// readFields consumes the next value. Values other than objects have no
// fields.
func readFields(r *rawjson.Reader) (f fields) {
	if r.Kind() != '{' {
		r.Skip()
		return f
	}
	for key := range r.FieldsOf(blockNames) {
		f.read(r, key)
	}
	return f
}

func (f *fields) read(r *rawjson.Reader, key []byte) {
	if string(key) == "type" {
		f.typ = readName(r)
	} else if to := f.field(key); to != nil {
		*to = r.Value()
	}
}

func (f *fields) field(key []byte) *rawjson.Value {
	switch string(key) {
	case "text":
		return &f.text
	case "thinking":
		return &f.thinking
	case "signature":
		return &f.signature
	case "data":
		return &f.data
	case "id":
		return &f.id
	case "tool_use_id":
		return &f.toolUseID
	case "name":
		return &f.name
	case "input":
		return &f.input
	case "content":
		return &f.content
	case "source":
		return &f.source
	case "is_error":
		return &f.isError
	case "title":
		return &f.title
	case "context":
		return &f.context
	case "cache_control":
		return &f.cacheControl
	case "media_type":
		return &f.mediaType
	case "url":
		return &f.url
	case "file_id":
		return &f.fileID
	case "caller":
		return &f.caller
	}
	return nil
}

// maxParts is the maximum nesting of blocks in blocks: images in a document
// in a result make 2. Each level is read again, so deeper nesting is read as
// an opaque block.
const maxParts = 4

// decodeBlock decodes the next content block of r, a Reader of buf, and
// returns its position. The caller sets Start and End.
func decodeBlock(r *rawjson.Reader, buf []byte, depth int) (furl.Block, rawjson.Span) {
	start := r.Offset()
	f, content := readBlock(r, buf, depth)
	if r.Err() != nil {
		return furl.Block{}, rawjson.Span{}
	}
	span := rawjson.Span{Start: start, End: r.Pos()}
	b := furl.Block{CacheMark: present(f.cacheControl)}
	switch f.typ {
	case "text":
		b.Kind = furl.KindText
		b.Text = f.text.Text()
	case "thinking":
		b.Kind = furl.KindThinking
		b.Text = f.thinking.Text()
		b.Signature = len(f.signature.Inside())
	case "redacted_thinking":
		b.Kind = furl.KindThinking
		b.Signature = len(f.data.Inside())
	case "tool_use":
		b.Kind = furl.KindCall
		b.ID = f.id.Text()
		b.Name = f.name.Text()
		b.Args = f.input.Raw
		if len(b.Args) == 0 {
			b.Args = []byte("{}")
		}
		b.Caller = callerOf(f.caller)
	case "tool_result":
		b.Kind = furl.KindResult
		b.ID = f.toolUseID.Text()
		b.Error = string(f.isError.Raw) == "true"
		if !content.read {
			later := rawjson.NewReader(f.content.Raw)
			content = readParts(later, f.content.Raw, depth+1)
			r.Join(later)
		}
		content.addTo(&b)
	case "image":
		b.Kind = furl.KindImage
		b.Media = []furl.Media{readMedia(r, furl.KindImage, f.source)}
	case "document":
		b.Kind = furl.KindDocument
		readDocument(r, &b, f, depth)
	default:
		b.Kind = furl.KindOpaque
		b.Name = f.typ
		b.ID = f.id.Text()
		if b.ID == "" {
			b.ID = f.toolUseID.Text()
		}
		switch {
		case b.ID == "":
		case isServerCall(&b):
			b.Half, b.Caller = furl.HalfCall, callerOf(f.caller)
		case isServerResult(&b):
			b.Half = furl.HalfAnswer
		}
		b.Text, b.Signature = readWords(span.Of(buf))
		h := handling(f.typ, span.Of(buf))
		b.Fixed = h.Fixed()
		if h == protocol.Definition && span.End-span.Start <= maxWords && depth == 0 && f.typ != searchResult {
			b.Text, b.Signature = string(span.Of(buf)), 0 // as large as a tool in the preamble
		}
	}
	return b, span
}

// callerOf returns the id of the server tool call whose program made a call:
// "caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_…"}.
func callerOf(v rawjson.Value) string { return rawjson.Unquote(rawjson.Field(v.Raw, "tool_id")) }

// readName reads a role or type. The usual ones cost no allocation.
func readName(r *rawjson.Reader) string {
	v := r.Value()
	switch string(v.Inside()) {
	case "user":
		return "user"
	case "assistant":
		return "assistant"
	case "text":
		return "text"
	case "thinking":
		return "thinking"
	case "tool_use":
		return "tool_use"
	case "tool_result":
		return "tool_result"
	case "image":
		return "image"
	case "base64":
		return "base64"
	}
	return v.Text()
}

// readBlock is readFields for a content block. Results are most of a request,
// so their parts are decoded in the same pass if the type is known in time.
func readBlock(r *rawjson.Reader, buf []byte, depth int) (f fields, content parts) {
	if r.Kind() != '{' {
		r.Skip()
		return f, content
	}
	for key := range r.FieldsOf(blockNames) {
		if string(key) != "content" {
			f.read(r, key)
			continue
		}
		content = parts{} // the last of several fields counts
		if f.typ == "tool_result" && r.Kind() == '[' {
			content = readParts(r, buf, depth+1)
			continue
		}
		f.content = r.Value()
	}
	return f, content
}

// parts is the content of a result, or of a document made of parts.
type parts struct {
	read      bool
	texts     []string
	media     []furl.Media
	signature int
	mark      bool
	fixed     bool // it defines tools, or a part has an unknown type
}

// readParts consumes a string or a list of blocks in buf.
func readParts(r *rawjson.Reader, buf []byte, depth int) parts {
	p := parts{read: true}
	switch r.Kind() {
	case '"':
		text, _ := r.String()
		p.texts = []string{text}
	case '[':
		for range r.Elements() {
			if depth > maxParts {
				text, secret := readWords(r.Raw())
				p.texts, p.signature, p.fixed = append(p.texts, text), p.signature+secret, true
				continue
			}
			b, _ := decodeBlock(r, buf, depth)
			p.texts = append(p.texts, b.Text)
			p.media = append(p.media, b.Media...)
			p.signature += b.Signature
			p.mark = p.mark || b.CacheMark
			p.fixed = p.fixed || b.Fixed
		}
	default:
		r.Skip()
	}
	return p
}

// addTo adds the parts to their block.
func (p *parts) addTo(b *furl.Block) {
	b.Text = joinLines(append([]string{b.Text}, p.texts...)...)
	b.Media = append(b.Media, p.media...)
	b.Signature += p.signature
	b.CacheMark = b.CacheMark || p.mark
	b.Fixed = p.fixed
}

// joinLines joins the non-empty texts.
func joinLines(texts ...string) string {
	kept := texts[:0]
	for _, t := range texts {
		if t != "" {
			kept = append(kept, t)
		}
	}
	return strings.Join(kept, "\n")
}

// present reports whether a field exists and is not null.
func present(v rawjson.Value) bool { return len(v.Raw) > 0 && string(v.Raw) != "null" }
