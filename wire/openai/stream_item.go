package openai

import (
	"bytes"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// streamItem is an incomplete output item.
type streamItem struct {
	id     string
	added  []byte // from the added event
	done   []byte // from the done event
	listed []byte // from the final response
	parts  []streamPart
	args   []byte
	whole  bool // args are complete
}

// streamPart is a part of a message's content.
type streamPart struct {
	index int
	raw   []byte // from the added or the done event; nil: only text
	done  bool
	text  []byte
	// refusal means that text is a refusal.
	refusal bool
}

// part returns the content part of an event.
func (it *streamItem) part(e *responseEvent) (*streamPart, error) {
	at := max(e.content, 0)
	for i := len(it.parts) - 1; i >= 0; i-- {
		if it.parts[i].index == at {
			return &it.parts[i], nil
		}
	}
	if len(it.parts) == maxPieces {
		return nil, fmt.Errorf("more than %d content parts", maxPieces)
	}
	it.parts = append(it.parts, streamPart{index: at})
	return &it.parts[len(it.parts)-1], nil
}

func (it *streamItem) setPart(e *responseEvent) error {
	p, err := it.part(e)
	if err != nil || rawjson.NewReader(e.part).Kind() != '{' {
		return err
	}
	p.raw, p.done = bytes.Clone(e.part), e.typ == "response.content_part.done"
	return nil
}

func (it *streamItem) addText(e *responseEvent) error {
	p, err := it.part(e)
	if err != nil {
		return err
	}
	p.text = append(p.text, e.delta.Text()...)
	p.refusal = e.typ == "response.refusal.delta"
	return nil
}

func (it *streamItem) addArgs(e *responseEvent) error {
	it.args = append(it.args, e.delta.Text()...)
	return nil
}

func (it *streamItem) setArgs(e *responseEvent) error {
	it.whole = true
	if len(e.text.Raw) > 0 {
		it.args = []byte(e.text.Text())
	}
	return nil
}

// raw returns the item as a client sends it back, nil if it cannot be sent
// back.
func (it *streamItem) raw(complete bool) []byte {
	switch {
	case it.done != nil:
		return it.done
	case it.listed != nil:
		return it.listed
	case it.added == nil:
		return nil
	}
	switch typ := rawjson.Unquote(rawjson.Field(it.added, "type")); typ {
	case "message":
		return it.message()
	case "function_call", "custom_tool_call":
		if !complete && !it.whole {
			return nil
		}
		name := "arguments"
		if typ == "custom_tool_call" {
			name = "input"
		}
		if len(it.args) == 0 {
			return it.added
		}
		return rawjson.Splice(it.added, rawjson.SetField(it.added, name, quote(string(it.args))))
	}
	if complete {
		return it.added
	}
	return nil
}

// message assembles a message from the parts so far, nil if they are empty.
func (it *streamItem) message() []byte {
	var parts [][]byte
	for i := range it.parts {
		if raw := it.parts[i].json(); raw != nil {
			parts = append(parts, raw)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	raw := rawjson.Splice(it.added, rawjson.SetField(it.added, "content", list(parts)))
	if len(rawjson.Field(raw, "status")) > 0 {
		raw = rawjson.Splice(raw, rawjson.SetField(raw, "status", quote("incomplete")))
	}
	return raw
}

func (p *streamPart) json() []byte {
	switch {
	case p.done:
		return p.raw
	case len(p.text) == 0:
		return nil
	}
	typ, name := "output_text", "text"
	if p.refusal {
		typ, name = "refusal", "refusal"
	}
	raw := p.raw
	if raw == nil {
		raw = append(appendField([]byte{'{'}, "type", quote(typ)), '}')
	}
	if part := readPart(raw, rawjson.NewReader(raw), 0); part.kind != furl.KindText && part.kind != furl.KindOpaque {
		return raw // no field for text
	}
	return rawjson.Splice(raw, rawjson.SetField(raw, name, quote(string(p.text))))
}
