package openai

import (
	"fmt"

	"github.com/furlhq/furl/internal/rawjson"
)

// editItem returns an item with the changes of the views, nil if all blocks
// are hidden.
func editItem(raw []byte, views []blockView) ([]byte, error) {
	e := itemEdit{raw: raw}
	r := rawjson.NewReader(raw)
	e.s.read(raw, r)
	if err := r.End(); err != nil {
		return nil, err
	}
	want := 1
	if e.s.typ == "message" {
		want = max(1, len(e.s.parts))
	}
	if len(views) != want {
		return nil, fmt.Errorf("the item has %d blocks, got %d", want, len(views))
	}
	switch _, isCall := callItems[e.s.typ]; {
	case e.s.typ == "message" && len(e.s.parts) > 0:
		return e.message(views), nil
	case views[0].gone:
		return nil, nil
	case !views[0].edited:
		return raw, nil
	case e.s.plain:
		return quote(views[0].text), nil
	case e.s.typ == "message":
		e.put("content", e.s.content, quote(views[0].text))
	case isCall:
		e.call(views[0].text)
	case outputItems[e.s.typ]:
		e.output(views[0].text)
	}
	return e.apply(raw), nil
}

// itemEdit is an edit of one item.
type itemEdit struct {
	change
	s   itemScan
	raw []byte
}

// put replaces the value of a field, or adds the field.
func (e *itemEdit) put(name string, v value, with []byte) {
	if v.kind == 0 {
		e.set = append(e.set, field{name, with})
		return
	}
	e.replace(v.Span, with)
}

func (e *itemEdit) message(views []blockView) []byte {
	typ := "input_text"
	if e.s.role == "assistant" {
		typ = "output_text"
	}
	var items []rawjson.Item
	for i, v := range views {
		if v.gone {
			continue
		}
		p := &e.s.parts[i]
		item := rawjson.Item{Index: i}
		if v.edited && p.words.Len() > 0 {
			e.replace(p.words, quote(v.text))
		} else if v.edited {
			item.New = inPlaceOf(e.raw, e.s.parts[i:i+1], typ, v.text)
		}
		items = append(items, item)
	}
	if len(items) == 0 {
		return nil
	}
	elems := spansOf(e.s.parts, func(p part) rawjson.Span { return p.span })
	e.edits = append(e.edits, rawjson.List(inside(e.s.content.Span), elems, items)...)
	return e.apply(e.raw)
}

// call replaces a call's arguments by text, which is JSON of the type of the
// arguments. If it no longer has the structure that the provider requires,
// only the long member of the old value is replaced by the text.
func (e *itemEdit) call(text string) {
	switch arg := callItems[e.s.typ].args; arg {
	case argInput:
		e.put("input", e.s.args[arg], freeInput(text))
	case argArguments:
		with := shortened(text)
		if e.s.args[arg].kind != '{' { // an object there is wrong, but not changed here
			with = quote(string(with))
		}
		e.put("arguments", e.s.args[arg], with)
	case argAction:
		member := "commands"
		if e.s.typ == "local_shell_call" {
			member = "command"
		}
		e.object(e.s.args[arg], text, member, '[', list([][]byte{quote(text)}))
	case argOperation:
		e.object(e.s.args[arg], text, "diff", '"', quote(text))
	}
}

// object replaces an object by text if that is an object too and its member
// has the required type; otherwise it replaces the member's value by with.
func (e *itemEdit) object(v value, text, member string, kind byte, with []byte) {
	if v.kind != '{' {
		return
	}
	old := v.Of(e.raw)
	if b := []byte(text); isObject(b) && kindOf(b, member) == kindOf(old, member) && kindOf(b, "type") == kindOf(old, "type") {
		e.replace(v.Span, b)
		return
	}
	if kindOf(old, member) == kind {
		e.replace(v.Span, rawjson.Splice(old, rawjson.SetField(old, member, with)))
	}
}

func kindOf(object []byte, name string) byte {
	return rawjson.NewReader(rawjson.Field(object, name)).Kind()
}

// output replaces an output by a text: a string, one part if a cache
// breakpoint must be kept, or a shell output.
func (e *itemEdit) output(text string) {
	if e.s.typ != "shell_call_output" {
		e.put("output", e.s.output, resultText(e.raw, e.s.outputs, "input_text", text))
		return
	}
	outcome := []byte(`{"type":"exit","exit_code":0}`)
	if e.s.output.kind == '[' {
		e.s.readShell(e.raw)
		for _, o := range e.s.shell {
			if o.outcome.Len() > 0 {
				outcome = o.outcome.Of(e.s.output.Of(e.raw))
			}
			if o.failed {
				break
			}
		}
	}
	out := appendField([]byte{'{'}, "stdout", quote(text))
	out = appendField(out, "stderr", quote(""))
	out = append(appendField(out, "outcome", outcome), '}')
	e.put("output", e.s.output, list([][]byte{out}))
}
