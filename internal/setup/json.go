package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/furlhq/furl/internal/lazyregexp"
)

// jsonLanguage is JSON with comments and trailing commas.
type jsonLanguage struct{}

func (jsonLanguage) decode(data []byte) (any, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return map[string]any{}, nil
	}
	v, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	v = v.Clone()
	v.Standardize()
	return decodeJSON(v.Pack())
}

func (jsonLanguage) value(text string) (any, error) { return decodeJSON([]byte(text)) }

func decodeJSON(data []byte) (tree any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err = d.Decode(&tree)
	return tree, err
}

var hujsonPlace = lazyregexp.New(`^hujson: line (\d+), column \d+: `)

// parseJSON parses an object with comments.
func parseJSON(data []byte) (hujson.Value, error) {
	v, err := hujson.Parse(append(bytes.Clone(data), '\n')) // a comment at the end needs a line end
	if err != nil {
		text := err.Error()
		if at := hujsonPlace.FindStringSubmatch(text); at != nil {
			return v, fmt.Errorf("line %s: %s", at[1], strings.TrimPrefix(text, at[0]))
		}
		return v, errors.New(strings.TrimPrefix(text, "hujson: "))
	}
	if _, ok := v.Value.(*hujson.Object); !ok {
		return v, fmt.Errorf("line %d: not an object in braces", lineOf(data, v.StartOffset))
	}
	return v, nil
}

// position is a member of an object, or an element of a list, in a document.
type position struct {
	from, to int           // of the key, or the element, to the end of the value
	value    *hujson.Value // its offsets are those of the value
	comma    int           // offset after the value and its comments: a comma or a bracket
}

// member finds a key of a value. Of several equal keys the last one counts.
func member(v *hujson.Value, key string) (position, bool) {
	switch c := v.Value.(type) {
	case *hujson.Object:
		for i := len(c.Members) - 1; i >= 0; i-- {
			m := &c.Members[i]
			if name, ok := m.Name.Value.(hujson.Literal); ok && name.String() == key {
				return position{m.Name.StartOffset, m.Value.EndOffset, &m.Value, m.Value.EndOffset + len(m.Value.AfterExtra)}, true
			}
		}
	case *hujson.Array:
		want, _ := elementName(key)
		for i := range c.Elements {
			e := &c.Elements[i]
			if name, ok := member(e, "name"); ok {
				if text, ok := name.value.Value.(hujson.Literal); ok && text.String() == want && text.Kind() == '"' {
					return position{e.StartOffset, e.EndOffset, e, e.EndOffset + len(e.AfterExtra)}, true
				}
			}
		}
	}
	return position{}, false
}

func (jsonLanguage) set(data []byte, path []string, value string) ([]byte, change, error) {
	c := change{Path: path, Value: value}
	if len(bytes.TrimSpace(data)) == 0 {
		c.Made = len(path)
		eol := lineEnd(data)
		return []byte("{" + eol + "  " + writeJSON(path, value, style{eol: eol, unit: "  ", indent: "  "}) + eol + "}" + eol), c, nil
	}
	root, err := parseJSON(data)
	if err != nil {
		return nil, c, err
	}
	at := &root
	for i, key := range path {
		p, ok := member(at, key)
		if !ok {
			return insertJSON(data, &root, at, path[i:], c)
		}
		at = p.value
	}
	old := string(data[at.StartOffset:at.EndOffset])
	c.Old = &old
	s := styleOf(data, &root, at)
	s.indent = lineIndent(data, at.StartOffset)
	return splice(data, at.StartOffset, at.EndOffset, formatJSON(value, s)), c, nil
}

// insertJSON inserts the keys that are missing, at the end of an object.
func insertJSON(data []byte, root, parent *hujson.Value, path []string, c change) ([]byte, change, error) {
	c.Made = len(path)
	o, ok := parent.Value.(*hujson.Object)
	if !ok {
		return nil, c, fmt.Errorf("line %d: the value of %s is not an object in braces", lineOf(data, parent.StartOffset), describe(c.Path[:len(c.Path)-len(path)]))
	}
	s := styleOf(data, root, parent)
	if len(o.Members) == 0 {
		inner := string(data[parent.StartOffset+1 : parent.EndOffset-1])
		c.Inner = inner
		if strings.TrimSpace(inner) == "" {
			if s.oneLine {
				return splice(data, parent.StartOffset+1, parent.EndOffset-1, writeJSON(path, c.Value, s)), c, nil
			}
			outer := strings.TrimSuffix(s.indent, s.unit)
			return splice(data, parent.StartOffset+1, parent.EndOffset-1, s.eol+s.indent+writeJSON(path, c.Value, s)+s.eol+outer), c, nil
		}
		// Comments stay before the new member.
		if i := strings.LastIndexByte(inner, '\n'); i >= 0 {
			c.Lead, c.Tail = s.indent, s.eol
			at := parent.StartOffset + 1 + i + 1
			return splice(data, at, at, c.Lead+writeJSON(path, c.Value, s)+c.Tail), c, nil
		}
		at := parent.EndOffset - 1
		return splice(data, at, at, writeJSON(path, c.Value, s)), c, nil
	}
	last := o.Members[len(o.Members)-1].Value
	end := last.EndOffset
	comma := last.EndOffset + len(last.AfterExtra)
	trailing := data[comma] == ','
	if trailing {
		end = comma + 1
	}
	at, comment := afterComments(data, end)
	c.Lead = s.eol + s.indent
	if s.oneLine && !comment {
		c.Lead = s.gap
	}
	text := c.Lead + writeJSON(path, c.Value, s)
	if trailing {
		return splice(data, at, at, text+","), c, nil
	}
	return splice(splice(data, at, at, text), end, end, ","), c, nil
}

// afterComments returns the end of the comments that follow on the line, and whether
// the last one reaches to the end of the line.
func afterComments(data []byte, at int) (end int, toLineEnd bool) {
	end = at
	for i := at; i < len(data); {
		switch {
		case data[i] == ' ' || data[i] == '\t':
			i++
		case bytes.HasPrefix(data[i:], []byte("/*")):
			n := bytes.Index(data[i:], []byte("*/"))
			if n < 0 || bytes.IndexByte(data[i:i+n], '\n') >= 0 {
				return end, false
			}
			i += n + 2
			end = i
		case bytes.HasPrefix(data[i:], []byte("//")):
			n := bytes.IndexByte(data[i:], '\n')
			if n < 0 {
				return end, false
			}
			return i + len(bytes.TrimRight(data[i:i+n], "\r")), true
		default:
			return end, false
		}
	}
	return end, false
}

func (jsonLanguage) unset(data []byte, c change) ([]byte, error) {
	root, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	path := c.Path
	at, parents := &root, []*hujson.Value{&root}
	var p position
	for _, key := range path {
		var ok bool
		if p, ok = member(at, key); !ok {
			return data, nil
		}
		at = p.value
		parents = append(parents, at)
	}
	if c.Old != nil {
		return splice(data, at.StartOffset, at.EndOffset, *c.Old), nil
	}
	// Parents that were inserted with the value go with it unless they hold more.
	n := len(path) - 1
	for ; n > len(path)-c.Made && only(parents[n], path[n]); n-- {
	}
	p, _ = member(parents[n], path[n])
	return c.cut(data, parents[n], p, n == len(path)-c.Made), nil
}

// only reports whether an object has a single member, of this name, and no comments.
func only(v *hujson.Value, key string) bool {
	o, ok := v.Value.(*hujson.Object)
	if !ok || len(o.Members) != 1 {
		return false
	}
	m := o.Members[0]
	name, _ := m.Name.Value.(hujson.Literal)
	for _, extra := range []hujson.Extra{m.Name.BeforeExtra, m.Name.AfterExtra, m.Value.BeforeExtra, m.Value.AfterExtra, o.AfterExtra} {
		if len(bytes.TrimSpace(extra)) > 0 {
			return false
		}
	}
	return name.String() == key
}

// cut removes a member with its comma. First means that it was inserted as it is, so
// that the spaces around it are known.
func (c change) cut(data []byte, parent *hujson.Value, p position, first bool) []byte {
	if o, ok := parent.Value.(*hujson.Object); ok && first && len(o.Members) == 1 && strings.TrimSpace(c.Inner) == "" {
		before, after := data[parent.StartOffset+1:p.from], bytes.TrimPrefix(data[p.to:parent.EndOffset-1], []byte(","))
		if len(bytes.TrimSpace(before)) == 0 && len(bytes.TrimSpace(after)) == 0 {
			return splice(data, parent.StartOffset+1, parent.EndOffset-1, c.Inner)
		}
	}
	if len(bytes.TrimSpace(data[parent.StartOffset+1:p.from])) == 0 && data[p.comma] == ',' {
		// It is the first one now: the next one takes its place.
		next := p.comma + 1
		for bytes.IndexByte([]byte(" \t\r\n"), data[next]) >= 0 {
			next++
		}
		return splice(data, p.from, next, "")
	}
	from, to := p.from, p.to
	switch {
	case first && bytes.HasSuffix(data[:from], []byte(c.Lead)):
		from -= len(c.Lead)
	default:
		for from > 0 && (data[from-1] == ' ' || data[from-1] == '\t') {
			from--
		}
		if from > 0 && data[from-1] == '\n' {
			from--
			if from > 0 && data[from-1] == '\r' {
				from--
			}
		} else {
			from = p.from
		}
	}
	if first && c.Tail != "" && bytes.HasPrefix(data[to:], []byte(c.Tail)) {
		to += len(c.Tail)
	}
	if data[p.comma] == ',' {
		// Comments between the value and its comma stay.
		kept := string(data[min(to, p.comma):p.comma])
		return splice(data, from, p.comma+1, kept)
	}
	data = splice(data, from, to, "")
	// It was the last one: the comma before it goes too.
	if before := commaBefore(data, parent, from); before >= 0 {
		data = splice(data, before, before+1, "")
	}
	return data
}

// commaBefore returns the offset of the comma after the last member that ends before
// an offset, -1 if there is none.
func commaBefore(data []byte, parent *hujson.Value, before int) int {
	comma := -1
	check := func(v *hujson.Value) {
		if at := v.EndOffset + len(v.AfterExtra); v.EndOffset <= before && at < before && data[at] == ',' {
			comma = at
		}
	}
	switch o := parent.Value.(type) {
	case *hujson.Object:
		for i := range o.Members {
			check(&o.Members[i].Value)
		}
	case *hujson.Array:
		for i := range o.Elements {
			check(&o.Elements[i])
		}
	}
	return comma
}

// style is how a document is written.
type style struct {
	eol, unit string
	indent    string // of the new member
	oneLine   bool   // the object is on one line
	gap       string // after a comma or a colon on one line
}

// styleOf returns how the members of an object are written.
func styleOf(data []byte, root, v *hujson.Value) style {
	s := style{eol: lineEnd(data), unit: "  ", gap: " "}
	if o, ok := root.Value.(*hujson.Object); ok && len(o.Members) > 0 {
		if indent := lineIndent(data, o.Members[0].Name.StartOffset); indent != "" && startsLine(data, o.Members[0].Name.StartOffset) {
			s.unit = strings.TrimPrefix(indent, lineIndent(data, root.StartOffset))
			if s.unit == "" {
				s.unit = indent
			}
		}
		colon := o.Members[0].Name.EndOffset + len(o.Members[0].Name.AfterExtra)
		if colon+1 < len(data) && !bytes.ContainsRune([]byte(" \t\r\n"), rune(data[colon+1])) {
			s.gap = ""
		}
		s.oneLine = !bytes.Contains(data[root.StartOffset:root.EndOffset], []byte("\n"))
	}
	s.indent = lineIndent(data, v.StartOffset) + s.unit
	if o, ok := v.Value.(*hujson.Object); ok && len(o.Members) > 0 {
		first := o.Members[0].Name.StartOffset
		if startsLine(data, first) {
			s.indent = lineIndent(data, first)
		} else {
			s.oneLine = true
		}
	}
	return s
}

// lineIndent returns the spaces at the start of the line with an offset.
func lineIndent(data []byte, at int) string {
	start := bytes.LastIndexByte(data[:at], '\n') + 1
	end := start
	for end < at && (data[end] == ' ' || data[end] == '\t') {
		end++
	}
	return string(data[start:end])
}

// startsLine reports whether only spaces precede an offset on its line.
func startsLine(data []byte, at int) bool {
	start := bytes.LastIndexByte(data[:at], '\n') + 1
	return len(bytes.TrimLeft(data[start:at], " \t")) == 0
}

// writeJSON returns the member of the first key, with the others nested in it.
func writeJSON(path []string, value string, s style) string {
	for i := len(path) - 1; i > 0; i-- {
		value = "{" + quote(path[i]) + ":" + value + "}"
	}
	return quote(path[0]) + ":" + s.gapOr(" ") + formatJSON(value, s)
}

func (s style) gapOr(usual string) string {
	if s.oneLine {
		return s.gap
	}
	return usual
}

// formatJSON writes a value in a style. Lists stay on one line.
func formatJSON(value string, s style) string {
	var tree json.RawMessage = []byte(value)
	v, err := hujson.Parse(tree)
	if err != nil {
		return value
	}
	var b strings.Builder
	writeValue(&b, &v, s, s.indent)
	return b.String()
}

func writeValue(b *strings.Builder, v *hujson.Value, s style, indent string) {
	switch c := v.Value.(type) {
	case *hujson.Object:
		if len(c.Members) == 0 {
			b.WriteString("{}")
			return
		}
		inner := indent + s.unit
		b.WriteByte('{')
		for i := range c.Members {
			if i > 0 {
				b.WriteByte(',')
			}
			switch {
			case !s.oneLine:
				b.WriteString(s.eol + inner)
			case i > 0:
				b.WriteString(s.gap)
			}
			b.Write(c.Members[i].Name.Value.(hujson.Literal))
			b.WriteString(":" + s.gapOr(" "))
			writeValue(b, &c.Members[i].Value, s, inner)
		}
		if !s.oneLine {
			b.WriteString(s.eol + indent)
		}
		b.WriteByte('}')
	case *hujson.Array:
		b.WriteByte('[')
		for i := range c.Elements {
			if i > 0 {
				b.WriteString("," + s.gapOr(" "))
			}
			writeValue(b, &c.Elements[i], s, indent)
		}
		b.WriteByte(']')
	case hujson.Literal:
		b.Write(c)
	}
}

func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string has no error
	return strings.TrimSuffix(b.String(), "\n")
}

// describe returns a path for an error.
func describe(path []string) string {
	if len(path) == 0 {
		return "the file"
	}
	return strconv.Quote(strings.Join(path, "."))
}
