package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"

	"github.com/furlhq/furl/internal/rawjson"
)

// With Reader.UsageOnly, messages have a short text in place of each recorded one. All else is read by the same
// code, so that requests are the same.

// partFields are the fields that a content block has, each once and with a value of the usual kind, unless
// unexpected is set: such a block is not shortened.
type partFields uint16

const (
	hasType partFields = 1 << iota
	hasText
	hasThinking
	hasSignature
	hasID
	hasName
	hasInput
	hasAnswer
	hasContent
	hasError
	hasCaller
	hasMark
	unexpected
)

// briefParts are the blocks that are shortened, by their types: the fields that they must and may have.
var briefParts = map[string]struct{ must, may partFields }{
	"text":        {hasType | hasText, hasMark},
	"thinking":    {hasType | hasThinking, hasSignature},
	"tool_use":    {hasType | hasID | hasName | hasInput, hasCaller | hasMark},
	"tool_result": {hasType | hasAnswer, hasContent | hasError | hasMark},
}

// note adds a field, whose value must be of one of the kinds.
func (s *partFields) note(field partFields, r *rawjson.Reader, kinds string) {
	if *s&field != 0 || strings.IndexByte(kinds, r.Kind()) < 0 {
		*s |= unexpected
	}
	*s |= field
}

// plainResult consumes the content of a result, and reports whether it is a text, or a list of texts and images.
func plainResult(r *rawjson.Reader) bool {
	switch r.Kind() {
	case '"':
		r.Skip()
		return true
	case '[':
		plain := true
		for range r.Elements() {
			if r.Kind() != '{' {
				plain = false
				continue
			}
			typ := 0
			for key := range r.Fields() {
				if string(key) == "type" {
					typ++
					v := r.Value()
					plain = plain && (string(v.Inside()) == "text" || string(v.Inside()) == "image")
				}
			}
			plain = plain && typ == 1
		}
		return plain
	}
	r.Skip()
	return false
}

// brief appends the block with short texts.
func (b *part) brief(out []byte) []byte {
	known, ok := briefParts[b.typ]
	if !ok || b.fields&known.must != known.must || b.fields&^(known.must|known.may) != 0 {
		return append(out, b.raw...)
	}
	switch b.typ {
	case "text":
		return append(out, `{"type":"text","text":"-"}`...)
	case "thinking":
		return append(out, `{"type":"thinking","thinking":"-","signature":""}`...)
	case "tool_use":
		out = rawjson.AppendString(append(out, `{"type":"tool_use","id":`...), b.id)
		out = append(append(out, `,"name":`...), b.name...)
		if b.caller != nil {
			out = append(append(out, `,"caller":`...), b.caller...)
		}
		return append(out, `,"input":{}}`...)
	}
	out = rawjson.AppendString(append(out, `{"type":"tool_result","tool_use_id":`...), b.answer)
	return append(out, `,"content":""}`...)
}

// spliced makes a message of content blocks, with short texts if the thread is read for usage only.
func (t *claudeThread) spliced(role string, blocks []part) []byte {
	if !t.brief {
		return spliced(role, blocks)
	}
	raw := append(make([]byte, 0, 128+96*len(blocks)), `{"role":"`...)
	raw = append(append(raw, role...), `","content":[`...)
	only := true
	for i := range blocks {
		if blocks[i].blank {
			continue
		}
		if !only {
			raw = append(raw, ',')
		}
		raw, only = blocks[i].brief(raw), false
	}
	if only {
		return nil
	}
	return append(raw, "]}"...)
}

// briefOf returns a short text that is as blank as another one.
func briefOf(text string) string {
	if strings.TrimSpace(text) == "" {
		return text
	}
	return "-"
}

// isFolder reports whether a recorded project is certainly a folder, so that none is looked for in the first messages.
func isFolder(project string) bool {
	return len(project) > 3 && (project[0] == '/' || project[1] == ':') && !strings.ContainsFunc(project, unicode.IsControl)
}

// knownStrings keeps one copy of the strings that most records repeat.
type knownStrings map[string]string

// string consumes a value and returns it if it is a string.
func (k knownStrings) string(r *rawjson.Reader) string {
	v := r.Value()
	if s, ok := k[string(v.Inside())]; ok {
		return s
	}
	s := v.Text()
	k[string(v.Inside())] = s
	return s
}

// brief returns an item without its output, and with a digest in place of the arguments of a call, if only usage is read. Replies
// may be identified by what was said and called before them, but not by outputs.
func (c *codex) brief(p object, raw []byte) []byte {
	if !c.b.in.usageOnly || p.kind("call_id") != '"' {
		return raw
	}
	typ := p.str("type")
	var words string
	switch typ {
	case "function_call":
		words = "arguments"
	case "custom_tool_call":
		words = "input"
	case "function_call_output", "custom_tool_call_output":
		words = "output"
	default:
		return raw
	}
	if p.kind(words) != '"' || words != "output" && p.kind("name") != '"' {
		return raw
	}
	for name := range p {
		switch name {
		case "type", "call_id", "id", "status", "name", words:
		default:
			return raw
		}
	}
	out := append(make([]byte, 0, 256), `{"type":"`...)
	out = append(append(out, typ...), `","call_id":`...)
	out = append(append(out, p["call_id"]...), `,"`...)
	out = append(append(out, words...), `":"`...)
	if words == "output" {
		return append(out, `"}`...)
	}
	digest := sha256.Sum256(p[words])
	if words == "input" {
		out = hex.AppendEncode(out, digest[:])
	} else {
		out = append(hex.AppendEncode(append(out, `{\"digest\":\"`...), digest[:]), `\"}`...)
	}
	out = append(append(out, `","name":`...), p["name"]...)
	return append(out, '}')
}
