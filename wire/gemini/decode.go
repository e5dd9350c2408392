package gemini

import (
	"errors"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// The roles of contents. Google also accepts "function" for results, and takes a content
// without a role for one of the user.
const (
	roleUser     = "user"
	roleModel    = "model"
	roleFunction = "function"
)

// DecodeMessage decodes one element of contents.
func (codec) DecodeMessage(raw []byte) (*furl.Message, error) {
	m := new(furl.Message)
	r := rawjson.NewReader(raw)
	if err := decodeContent(r, raw, m, nil); err != nil {
		return nil, err
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	m.Seal()
	return m, nil
}

// decodeContent decodes the next content of r, a Reader of buf. It does not seal it.
func decodeContent(r *rawjson.Reader, buf []byte, m *furl.Message, ambiguous *string) error {
	if r.Kind() != '{' {
		if r.Skip(); r.Err() != nil {
			return r.Err()
		}
		return errors.New("expected an object")
	}
	start := r.Offset()
	badParts := false
	role := ""
	var few [8]furl.Block
	for key := range fields(r, ambiguous) {
		switch key {
		case "role":
			role, _ = r.String()
		case "parts":
			m.Blocks, badParts = nil, false // the last of several fields counts
			blocks := few[:0]
			switch r.Kind() {
			case '[':
				for range r.Elements() {
					blocks = append(blocks, decodePart(r, buf, start, ambiguous))
				}
				m.Blocks = slices.Clone(blocks)
			case '{': // Google accepts one part instead of a list
				m.Blocks = []furl.Block{decodePart(r, buf, start, ambiguous)}
			case 'n':
			default:
				badParts = true
			}
		}
	}
	if r.Err() != nil {
		return r.Err()
	}
	if badParts {
		return errors.New("parts: expected a list of parts")
	}
	m.Format = furl.FormatGemini
	m.Role = roleOf(role)
	m.Raw = buf[start:r.Pos():r.Pos()]
	if m.Role == furl.RoleAssistant {
		m.Blocks = joinTexts(m.Blocks)
	}
	dropRepeated(m.Blocks, nil)
	if !m.Role.Known() {
		for i := range m.Blocks {
			m.Blocks[i].Fixed = true
		}
	}
	return nil
}

func roleOf(role string) furl.Role {
	switch role {
	case roleUser, "":
		return furl.RoleUser
	case roleModel:
		return furl.RoleAssistant
	case roleFunction:
		return furl.RoleTool
	}
	return furl.Role(role)
}

// joinTexts makes one block of each run of texts.
func joinTexts(blocks []furl.Block) []furl.Block {
	out := blocks[:0]
	for i := range blocks {
		b := &blocks[i]
		if n := len(out); n > 0 && b.Kind == furl.KindText && out[n-1].Kind == furl.KindText {
			last := &out[n-1]
			last.Text += b.Text
			last.Signature += b.Signature
			last.End = b.End
			continue
		}
		out = append(out, *b)
	}
	return out
}

// repeated is the Name of a block that repeats a result.
const repeated = "repeated"

// dropRepeated makes thinking, which is not compared, of results whose call has one
// already: Gemini CLI 0.61 sends each result twice after it resumes a session. answered
// are the ids with a result before the blocks, and get those of the blocks.
func dropRepeated(blocks []furl.Block, answered map[string]bool) {
	results := 0
	for i := range blocks {
		if blocks[i].Kind == furl.KindResult {
			results++
		}
	}
	if results == 0 || results == 1 && answered == nil {
		return
	}
	if answered == nil {
		answered = make(map[string]bool, results)
	}
	for i := range blocks {
		b := &blocks[i]
		if b.Kind != furl.KindResult || b.ID == "" {
			continue
		}
		if answered[b.ID] {
			*b = furl.Block{Kind: furl.KindThinking, Name: repeated, Signature: b.End - b.Start, Start: b.Start, End: b.End}
			continue
		}
		answered[b.ID] = true
	}
}

// part are the fields of a part that furl uses.
type part struct {
	data      string // the name of the field with the content; "" if there is none
	value     rawjson.Value
	thought   bool
	signature rawjson.Value
	unknown   string // the name of the first unknown field
}

// attributes are the fields that describe the content of a part.
var attributes = map[string]bool{
	"videoMetadata": true, "mediaResolution": true, "mediaProcessing": true, "partMetadata": true, "speechMetadata": true,
}

func readPart(r *rawjson.Reader, ambiguous *string) (p part) {
	if r.Kind() != '{' {
		r.Skip()
		return p
	}
	for key := range fields(r, ambiguous) {
		switch {
		case key == "thought":
			p.thought, _ = r.Bool()
		case key == "thoughtSignature":
			p.signature = r.Value()
		case attributes[key]:
		case Types[key] != protocol.Unknown:
			v := r.Value()
			if isNull(v.Raw) {
				continue
			}
			if p.data != "" && ambiguous != nil && *ambiguous == "" {
				*ambiguous = key // Google accepts one; which one is read is not documented
			}
			p.data, p.value = key, v
		case p.unknown == "":
			p.unknown = key
		}
	}
	return p
}

// decodePart decodes the next part of r, a Reader of buf, in a content that starts at
// start.
func decodePart(r *rawjson.Reader, buf []byte, start int, ambiguous *string) furl.Block {
	at := r.Offset()
	p := readPart(r, ambiguous)
	if r.Err() != nil {
		return furl.Block{}
	}
	raw := buf[at:r.Pos()]
	b := furl.Block{Start: at - start, End: r.Pos() - start, Signature: len(p.signature.Inside())}
	switch p.data {
	case "text":
		b.Text = p.value.Text()
		b.Kind = furl.KindText
		if p.thought || b.Text == "" {
			b.Kind = furl.KindThinking
		}
	case "functionCall":
		b.Kind = furl.KindCall
		readCall(rawjson.NewReader(p.value.Raw), &b, ambiguous)
	case "functionResponse":
		b.Kind = furl.KindResult
		readResult(rawjson.NewReader(p.value.Raw), &b, ambiguous)
	case "inlineData", "fileData":
		media := readMedia(p.value.Raw)
		b.Kind, b.Media = media.Kind, []furl.Media{media}
	case "":
		if p.unknown == "" {
			b.Kind = furl.KindThinking // nothing, or a signature alone
			return b
		}
		b.Kind, b.Name, b.Fixed = furl.KindOpaque, p.unknown, true
		b.Text = readWords(raw)
	default:
		b.Kind, b.Name = furl.KindOpaque, p.data
		b.Text = readWords(p.value.Raw)
		b.Fixed = Types[p.data].Fixed()
	}
	if p.thought && b.Kind != furl.KindCall && b.Kind != furl.KindResult {
		b.Kind = furl.KindThinking
	}
	return b
}

func readCall(r *rawjson.Reader, b *furl.Block, ambiguous *string) {
	b.Args = []byte("{}")
	if r.Kind() != '{' {
		return
	}
	for key := range fields(r, ambiguous) {
		switch key {
		case "id":
			b.ID, _ = r.String()
		case "name":
			b.Name, _ = r.String()
		case "args":
			if raw := r.Raw(); !isNull(raw) {
				b.Args = raw
			}
		}
	}
}

func readResult(r *rawjson.Reader, b *furl.Block, ambiguous *string) {
	if r.Kind() != '{' {
		return
	}
	var texts []string
	for key := range fields(r, ambiguous) {
		switch key {
		case "id":
			b.ID, _ = r.String()
		case "name":
			b.Name, _ = r.String()
		case "response":
			var text string
			text, b.Error = readResponse(r.Raw())
			texts = append(texts, text)
		case "parts":
			if r.Kind() != '[' {
				continue
			}
			for range r.Elements() {
				p := readPart(r, ambiguous)
				switch p.data {
				case "inlineData", "fileData":
					b.Media = append(b.Media, readMedia(p.value.Raw))
				case "text":
					texts = append(texts, p.value.Text())
				case "":
					b.Fixed = b.Fixed || p.unknown != ""
				default:
					b.Fixed = true
				}
			}
		}
	}
	b.Text = joinLines(texts...)
}

// outputs are the fields of a response that are its whole content if nothing else is in
// it. "output" and "error" are those that Google documents, "result" and "content" those
// of clients.
var outputs = []string{"output", "error", "result", "content"}

// readResponse returns the text of a function's response: the string in its only content,
// or the whole object as JSON. failed reports whether the response has an error.
func readResponse(response []byte) (text string, failed bool) {
	r := rawjson.NewReader(response)
	if r.Kind() != '{' {
		if s, ok := r.String(); ok {
			return s, false
		}
		return string(rawjson.Compact(nil, response)), false
	}
	var only rawjson.Value
	others := 0
	for key := range r.Fields() {
		name := string(key)
		if name == "error" && r.Kind() != 'n' && r.Kind() != 'f' {
			failed = true
		}
		switch {
		case only.Raw == nil && slices.Contains(outputs, name) && r.Kind() == '"':
			only = r.Value()
		case name == "name": // the AI SDK repeats the function's name
		default:
			others++
		}
	}
	if only.Raw != nil && others == 0 {
		return only.Text(), failed
	}
	return string(rawjson.Compact(nil, response)), failed
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
