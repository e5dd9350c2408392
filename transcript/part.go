package transcript

import (
	"slices"

	"github.com/furlhq/furl/internal/rawjson"
)

// part is one content block of a message, in Anthropic's format.
type part struct {
	raw    []byte
	typ    string
	str    []byte // the original JSON string, if content was one
	id     string // of a call
	answer string // of a result: the id of its call
	blank  bool   // a text of white space only

	fields       partFields
	name, caller []byte // of a call, as JSON
}

// partsOf returns the content of a message as the bytes of its blocks, and
// the number of elements that are not blocks. String content becomes a text
// block.
func partsOf(content []byte) (blocks []part, others int) {
	return partsIn(rawjson.NewReader(content), content)
}

// partsIn is partsOf for the next value of r, a Reader of buf.
func partsIn(r *rawjson.Reader, buf []byte) (blocks []part, others int) {
	switch r.Kind() {
	case '"':
		content := r.Raw()
		if len(content) <= len(`""`) {
			return nil, 0
		}
		raw := append(append([]byte(`{"type":"text","text":`), content...), '}')
		blocks = append(blocks, part{raw: raw, typ: "text", str: content, blank: blank(content), fields: hasType | hasText})
	case '[':
		for range r.Elements() {
			if b := readPart(r, buf); b.typ != "" {
				blocks = append(blocks, b)
			} else {
				others++
			}
		}
	default:
		r.Skip()
	}
	return blocks, others
}

// hasPart reports whether content has a block of one of these types. It does
// not keep the blocks, so content may have any size.
func hasPart(content []byte, types ...string) bool {
	r := rawjson.NewReader(content)
	if r.Kind() != '[' {
		return false
	}
	for range r.Elements() {
		if slices.Contains(types, readPart(r, content).typ) {
			return true
		}
	}
	return false
}

func readPart(r *rawjson.Reader, buf []byte) part {
	var b part
	start := r.Offset()
	if r.Kind() != '{' {
		r.Skip()
		return b
	}
	for key := range r.Fields() {
		switch string(key) {
		case "type":
			b.fields.note(hasType, r, `"`)
			b.typ = partType(r)
		case "id":
			b.fields.note(hasID, r, `"`)
			b.id, _ = r.String()
		case "tool_use_id":
			b.fields.note(hasAnswer, r, `"`)
			b.answer, _ = r.String()
		case "text":
			b.fields.note(hasText, r, `"`)
			b.blank = blank(r.Raw())
		case "thinking":
			b.fields.note(hasThinking, r, `"`)
		case "signature":
			b.fields.note(hasSignature, r, `"`)
		case "name":
			b.fields.note(hasName, r, `"`)
			b.name = r.Raw()
		case "input":
			b.fields.note(hasInput, r, `{`)
		case "content":
			b.fields.note(hasContent, r, `"[`)
			if !plainResult(r) {
				b.fields |= unexpected
			}
		case "is_error":
			b.fields.note(hasError, r, `tf`)
		case "caller":
			b.fields.note(hasCaller, r, `{`)
			b.caller = r.Raw()
		case "cache_control":
			b.fields.note(hasMark, r, `{n`)
		default:
			b.fields |= unexpected
		}
	}
	b.raw = buf[start:r.Pos():r.Pos()]
	return b
}

// partType consumes a type. The usual ones cost no allocation.
func partType(r *rawjson.Reader) string {
	v := r.Value()
	switch string(v.Inside()) {
	case "text":
		return "text"
	case "thinking":
		return "thinking"
	case "tool_use":
		return "tool_use"
	case "tool_result":
		return "tool_result"
	}
	return v.Text()
}

// blank reports whether a JSON string is only white space.
func blank(str []byte) bool {
	if len(str) > 64 {
		return false
	}
	for _, c := range rawjson.Unquote(str) {
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// spliced makes a message of content blocks and keeps the bytes of each.
// Blank texts are skipped, because providers refuse them. It returns nil if
// no block is left.
func spliced(role string, blocks []part) []byte {
	size, only := 64, true
	for i := range blocks {
		size += len(blocks[i].raw) + 1
	}
	raw := append(make([]byte, 0, size), `{"role":"`...)
	raw = append(append(raw, role...), `","content":`...)
	if len(blocks) == 1 && blocks[0].str != nil && !blocks[0].blank {
		return append(append(raw, blocks[0].str...), '}')
	}
	raw = append(raw, '[')
	for i := range blocks {
		if blocks[i].blank {
			continue
		}
		if !only {
			raw = append(raw, ',')
		}
		raw, only = append(raw, blocks[i].raw...), false
	}
	if only {
		return nil
	}
	return append(raw, "]}"...)
}
