package openai

import (
	"bytes"
	"fmt"

	"github.com/furlhq/furl/internal/rawjson"
)

// chatFragments is an incomplete call of a streamed message.
type chatFragments struct {
	index         int
	id, typ, name string
	args          []byte
	free          bool    // args are a custom tool's input
	extra         []extra // unknown fields
}

// fragment adds an element of a delta's tool_calls.
func (a *chatAssembler) fragment(r *rawjson.Reader) error {
	raw := r.Raw()
	f := chatFragments{index: -1}
	r = rawjson.NewReader(raw)
	if r.Kind() != '{' {
		return nil
	}
	for key := range r.Fields() {
		switch string(key) {
		case "index":
			if n, ok := r.Int(); ok {
				f.index = n
			}
		case "id":
			f.id, _ = r.String()
		}
	}
	c := a.callOf(&f)
	if c == nil {
		if len(a.calls) == maxPieces {
			return fmt.Errorf("more than %d calls", maxPieces)
		}
		if f.index < 0 {
			f.index = len(a.calls)
		}
		c = &f
		a.calls = append(a.calls, c)
	}
	c.add(raw)
	return nil
}

// callOf finds the call that a fragment continues, nil if it starts one: by
// its index, unless it has the id of another call; without an index by its
// id, and without either the newest.
func (a *chatAssembler) callOf(f *chatFragments) *chatFragments {
	for i := len(a.calls) - 1; i >= 0; i-- {
		c := a.calls[i]
		switch {
		case f.index >= 0 && c.index != f.index:
		case f.id != "" && c.id != "" && f.id != c.id:
			if f.index >= 0 {
				return nil
			}
		default:
			return c
		}
	}
	return nil
}

func (c *chatFragments) add(raw []byte) {
	r := rawjson.NewReader(raw)
	for key := range r.Fields() {
		switch string(key) {
		case "index":
		case "id":
			keep(r, &c.id)
		case "type":
			keep(r, &c.typ)
		case "function", "custom":
			c.free = string(key) == "custom"
			c.body(r)
		default:
			c.extra = addExtra(c.extra, string(key), r)
		}
	}
}

// body reads name and arguments. A name is complete in the first fragment, or
// repeated in all; only if more of it arrives before the arguments is it in
// pieces.
func (c *chatFragments) body(r *rawjson.Reader) {
	if r.Kind() != '{' {
		return
	}
	for key := range r.Fields() {
		switch string(key) {
		case "name":
			if s, _ := r.String(); s != c.name && len(c.args) == 0 {
				c.name += s
			}
		case "arguments", "input":
			if r.Kind() == '{' { // some servers do not quote them
				c.args = append(c.args, r.Raw()...)
				continue
			}
			appendString(r, &c.args)
		}
	}
}

// wholeCalls returns the calls as elements of tool_calls. If the reply is
// incomplete, it returns only calls that are certainly complete.
func wholeCalls(calls []*chatFragments, complete bool) [][]byte {
	var out [][]byte
	for i, c := range calls {
		whole := i < len(calls)-1
		if !c.free {
			whole = isObject(c.args)
		}
		if complete || whole {
			out = append(out, c.call())
		}
	}
	return out
}

func (c *chatFragments) call() []byte {
	field, typ := "function", c.typ
	if c.free {
		field = "custom"
	}
	if typ == "" {
		typ = field
	}
	out := appendField([]byte{'{'}, "id", quote(c.id))
	out = appendField(out, "type", quote(typ))
	out = appendField(out, field, c.function())
	for _, e := range c.extra {
		out = appendField(out, e.name, e.value)
	}
	return append(out, '}')
}

func (c *chatFragments) function() []byte {
	args := "arguments"
	if c.free {
		args = "input"
	}
	out := appendField([]byte{'{'}, "name", quote(c.name))
	return append(appendField(out, args, quote(string(c.args))), '}')
}

// extra is a field that furl does not know.
type extra struct {
	name  string
	value []byte
}

// addExtra adds a piece of an unknown field: strings and lists are
// concatenated, of other values the newest is kept. Null is ignored.
func addExtra(fields []extra, name string, r *rawjson.Reader) []extra {
	kind := r.Kind()
	raw := bytes.Clone(r.Raw())
	if raw == nil || kind == 'n' {
		return fields
	}
	for i := range fields {
		f := &fields[i]
		if f.name != name {
			continue
		}
		switch before := rawjson.NewReader(f.value).Kind(); {
		case before == '"' && kind == '"':
			f.value = joinInside(f.value, raw, nil)
		case before == '[' && kind == '[':
			f.value = joinInside(f.value, raw, []byte{','})
		default:
			f.value = raw
		}
		return fields
	}
	if len(fields) == maxExtra {
		return fields
	}
	return append(fields, extra{name, raw})
}

// joinInside joins two strings, or two lists, without decoding them.
func joinInside(a, b, sep []byte) []byte {
	inA, inB := a[1:len(a)-1], b[1:len(b)-1]
	if len(bytes.TrimSpace(inB)) == 0 && len(sep) > 0 {
		return a
	}
	if len(bytes.TrimSpace(inA)) == 0 && len(sep) > 0 {
		return b
	}
	return append(append(append(a[:len(a)-1], sep...), inB...), b[len(b)-1])
}

// detail is an element of reasoning_details, which arrive in pieces: those of
// one type and index belong together.
type detail struct {
	typ, index string
	fields     []extra
}

func (a *chatAssembler) addDetails(r *rawjson.Reader) error {
	if r.Kind() != '[' {
		return nil
	}
	for range r.Elements() {
		raw := r.Raw()
		if rawjson.NewReader(raw).Kind() != '{' {
			continue
		}
		typ, index := string(rawjson.Field(raw, "type")), string(rawjson.Field(raw, "index"))
		last := len(a.details) - 1
		if last < 0 || index == "" || a.details[last].typ != typ || a.details[last].index != index {
			if len(a.details) == maxPieces {
				return fmt.Errorf("more than %d reasoning details", maxPieces)
			}
			a.details = append(a.details, detail{typ: typ, index: index})
			last++
		}
		a.details[last].add(raw)
	}
	return nil
}

// add adds a piece: texts are concatenated, other fields replaced.
func (d *detail) add(raw []byte) {
	r := rawjson.NewReader(raw)
	for key := range r.Fields() {
		switch name := string(key); name {
		case "text", "summary", "data":
			d.fields = addExtra(d.fields, name, r)
		default:
			d.fields = setExtra(d.fields, name, r)
		}
	}
}

func setExtra(fields []extra, name string, r *rawjson.Reader) []extra {
	if r.Kind() == 'n' {
		r.Skip()
		return fields
	}
	for i := range fields {
		if fields[i].name == name {
			fields[i].value = bytes.Clone(r.Raw())
			return fields
		}
	}
	return addExtra(fields, name, r)
}

func detailList(details []detail) []byte {
	var elems [][]byte
	for i := range details {
		out := []byte{'{'}
		for _, f := range details[i].fields {
			out = appendField(out, f.name, f.value)
		}
		elems = append(elems, append(out, '}'))
	}
	return list(elems)
}
