package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// change collects the changes to one message.
type change struct {
	edits []rawjson.Edit
	drop  []string // fields to remove
	set   []field  // fields to add
}

type field struct {
	name  string
	value []byte
}

func (c *change) replace(s rawjson.Span, with []byte) {
	c.edits = append(c.edits, rawjson.Edit{Span: s, New: with})
}

func (c *change) apply(raw []byte) []byte {
	slices.SortStableFunc(c.edits, func(a, b rawjson.Edit) int { return cmp.Compare(a.Start, b.Start) })
	raw = rawjson.Splice(raw, c.edits)
	for _, name := range c.drop {
		raw = rawjson.Splice(raw, rawjson.DropField(raw, name))
	}
	for _, f := range c.set {
		raw = rawjson.Splice(raw, rawjson.SetField(raw, f.name, f.value))
	}
	return raw
}

// inside is the span between the brackets, or quotes, of the value at s.
func inside(s rawjson.Span) rawjson.Span {
	return rawjson.Span{Start: s.Start + 1, End: max(s.Start+1, s.End-1)}
}

// blockView is the shown state of one block of a message.
type blockView struct {
	gone   bool
	edited bool   // text replaces the block's text
	text   string // empty unless edited
}

// blockViews returns what s shows of each block of m, a message of a request.
// s.Msg is m as recorded. Clients may omit recorded thinking or keep thinking
// that was not recorded; then the other blocks are paired.
func blockViews(m *furl.Message, s *furl.Shown) ([]blockView, error) {
	recorded := make([]blockView, len(s.Msg.Blocks))
	for i := range recorded {
		recorded[i].gone = true
	}
	next := 0
	for i := range s.Blocks {
		sb := &s.Blocks[i]
		at := next
		for at < len(s.Msg.Blocks) && sb.Block != &s.Msg.Blocks[at] {
			at++
		}
		if at == len(s.Msg.Blocks) { // a copy of the block
			at = sb.Pos.Block
		}
		if at < next || at >= len(recorded) {
			return nil, fmt.Errorf("message %d shows block %d of %d out of order", s.Seq, at, len(recorded))
		}
		recorded[at] = blockView{edited: sb.By != 0, text: sb.Text}
		next = at + 1
	}
	if len(m.Blocks) == len(s.Msg.Blocks) {
		return recorded, nil
	}
	return alignViews(m, s, recorded)
}

// alignViews pairs the blocks other than thinking. Thinking in m that was not
// recorded is kept.
func alignViews(m *furl.Message, s *furl.Shown, recorded []blockView) ([]blockView, error) {
	views := make([]blockView, len(m.Blocks))
	j := 0
	for i := range m.Blocks {
		if m.Blocks[i].Kind == furl.KindThinking {
			continue
		}
		for j < len(recorded) && s.Msg.Blocks[j].Kind == furl.KindThinking {
			j++
		}
		if j == len(recorded) || s.Msg.Blocks[j].Kind != m.Blocks[i].Kind {
			return nil, fmt.Errorf("message %d differs from the request: other blocks were recorded", s.Seq)
		}
		views[i] = recorded[j]
		j++
	}
	for ; j < len(recorded); j++ {
		if s.Msg.Blocks[j].Kind != furl.KindThinking {
			return nil, fmt.Errorf("message %d differs from the request: more blocks were recorded", s.Seq)
		}
	}
	return views, nil
}

// spliceList applies a view to the list of a request's messages. encode
// returns the bytes of the k-th message of the view: those of m if nothing
// changes, nil if all blocks are hidden. build makes the elements of a
// marker.
func spliceList(req *protocol.Request, v *furl.View, name string,
	encode func(k int, m *furl.Message) ([]byte, error),
	build func(s furl.Shown) ([]json.RawMessage, error),
) ([]byte, error) {
	elems, err := elements(req)
	if err != nil {
		return nil, err
	}
	items := make([]rawjson.Item, 0, len(v.Messages))
	last := -1
	for k := range v.Messages {
		s := &v.Messages[k]
		if s.Index < 0 {
			marks, err := build(*s)
			if err != nil {
				return nil, err
			}
			for _, b := range marks {
				items = append(items, rawjson.Item{Index: -1, New: b})
			}
			continue
		}
		if s.Index <= last || s.Index >= len(elems) {
			return nil, fmt.Errorf("the view shows message %d after %d of a request that has %d", s.Index, last, len(elems))
		}
		last = s.Index
		m := &req.Messages[s.Index]
		b, err := encode(k, m)
		switch {
		case err != nil:
			return nil, err
		case b == nil:
		case len(b) == len(m.Raw) && &b[0] == &m.Raw[0]:
			items = append(items, rawjson.Item{Index: s.Index})
		default:
			items = append(items, rawjson.Item{Index: s.Index, New: b})
		}
	}
	between := rawjson.Span{}
	if len(elems) == 0 || len(items) == 0 {
		if len(elems) == len(items) {
			return req.Body, nil
		}
		if between, err = listInside(req.Body, name); err != nil {
			return nil, err
		}
	}
	return rawjson.Splice(req.Body, rawjson.List(between, elems, items)), nil
}

// elements returns the spans of the request's messages in its body.
func elements(req *protocol.Request) ([]rawjson.Span, error) {
	if len(req.Offsets) != len(req.Messages) {
		return nil, fmt.Errorf("request has %d messages and %d offsets", len(req.Messages), len(req.Offsets))
	}
	elems := make([]rawjson.Span, len(req.Messages))
	at := 0
	for i := range elems {
		e := rawjson.Span{Start: req.Offsets[i], End: req.Offsets[i] + len(req.Messages[i].Raw)}
		if e.Start < at || e.Len() == 0 || e.End > len(req.Body) {
			return nil, fmt.Errorf("message %d is not in the request's body", i)
		}
		elems[i], at = e, e.End
	}
	return elems, nil
}

// listInside finds the list itself, if it has no elements.
func listInside(body []byte, name string) (s rawjson.Span, err error) {
	found := false
	r := rawjson.NewReader(body)
	for key := range r.Fields() {
		if string(key) == name && r.Kind() == '[' {
			s, found = inside(r.Skip()), true
		}
	}
	if !found {
		return s, fmt.Errorf("the request's body has no list %q", name)
	}
	return s, nil
}

// shortened wraps a text that is not a JSON object in one.
func shortened(text string) []byte {
	if b := []byte(text); isObject(b) {
		return b
	}
	return append(appendField([]byte{'{'}, "furl_shortened", quote(text)), '}')
}

// freeInput returns the value of a custom tool's input. text is what a view
// shows: a JSON string, like the Args of such a call, or plain text.
func freeInput(text string) []byte {
	b := []byte(text)
	if r := rawjson.NewReader(b); r.Kind() == '"' && rawjson.Check(b) == nil {
		return r.Raw()
	}
	return quote(text)
}
