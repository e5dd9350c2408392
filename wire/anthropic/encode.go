package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// EncodeMessage gives the wire form of one shown message: its own bytes if it
// came in this format, with the changed blocks spliced in, and otherwise one
// built from its blocks. It gives none when nothing is left of the message.
//
// Messages of other formats and furl's own lose what cannot be carried over:
// thinking, because signatures hold for the provider that made them, and
// opaque blocks, of which the words stay. Results become a user message.
func (codec) EncodeMessage(s furl.Shown) ([]json.RawMessage, error) {
	if s.Msg.Format != furl.FormatAnthropic || s.Msg.Raw == nil {
		m := buildShown(s)
		if len(m.parts) == 0 {
			return nil, nil
		}
		return []json.RawMessage{m.encode()}, nil
	}
	if s.AsRecorded() {
		return []json.RawMessage{s.Msg.Raw}, nil
	}
	acts, err := actions(&s)
	if err != nil {
		return nil, err
	}
	raw, err := apply(s.Msg, acts)
	if err != nil || raw == nil {
		return nil, err
	}
	return []json.RawMessage{raw}, nil
}

// EncodeRequest makes the view's changes in the body of req. Only messages
// that are hidden, changed or new are touched; nothing to change gives back
// the body itself.
//
// The changes are made to the bytes that came in with this request, which need
// not be those recorded: clients move their cache marks, write a text as a
// string or as a block, and leave out old thinking. Blocks are matched in
// order, thinking apart. A message whose blocks do not match is an error.
//
// Where the view was changed last, a cache mark like the client's next one is
// set, if the client has one to spare: what stands before is then read from
// the cache however much stands behind.
func (c codec) EncodeRequest(req *furl.Request, v *furl.View) ([]byte, error) {
	items := make([]rawjson.Item, 0, len(v.Messages))
	same, next := true, 0
	list, late := settled(v.Messages)
	cutAt, cutID := cut(list)
	for i := range list {
		s := &list[i]
		if s.Index < 0 {
			raws, err := c.EncodeMessage(*s)
			if err != nil {
				return nil, fmt.Errorf("encode mark of reduction %d: %w", s.By, err)
			}
			if i == cutAt && len(raws) > 0 {
				raws[0] = withMark(raws[0], cutID, markFor(req, next))
			}
			for _, raw := range raws {
				items = append(items, rawjson.Item{Index: -1, New: raw})
				same = false
			}
			continue
		}
		if s.Index < next && !late[i] || s.Index >= len(req.Messages) {
			return nil, fmt.Errorf("the view shows message %d, the request has %d messages", s.Index, len(req.Messages))
		}
		item, shown, err := encodeInto(&req.Messages[s.Index], s)
		if err != nil {
			return nil, fmt.Errorf("encode messages.%d: %w", s.Index, err)
		}
		if late[i] {
			if item == nil {
				item = req.Messages[s.Index].Raw
			}
			same = false
			if shown {
				items = append(items, rawjson.Item{Index: -1, New: item})
			}
			continue
		}
		if i == cutAt && item != nil {
			item = withMark(item, cutID, markFor(req, s.Index))
		}
		same = same && s.Index == next
		next = s.Index + 1
		same = same && shown && item == nil
		if shown {
			items = append(items, rawjson.Item{Index: s.Index, New: item})
		}
	}
	if same && next == len(req.Messages) {
		return req.Body, nil
	}
	if len(items) == 0 || len(req.Messages) == 0 {
		return nil, fmt.Errorf("the view shows %d of the request's %d messages", len(items), len(req.Messages))
	}
	elems := make([]rawjson.Span, len(req.Messages))
	for i := range elems {
		start := req.Offsets[i]
		elems[i] = rawjson.Span{Start: start, End: start + len(req.Messages[i].Raw)}
	}
	// The span inside the brackets is for empty lists only.
	return rawjson.Splice(req.Body, rawjson.List(rawjson.Span{}, elems, items)), nil
}

// encodeInto gives the new bytes of m, an incoming message, as s shows its
// recorded counterpart: nil if they stay as they are. shown is false if
// nothing is left of it.
func encodeInto(m *furl.Message, s *furl.Shown) (raw json.RawMessage, shown bool, err error) {
	if s.AsRecorded() {
		return nil, true, nil
	}
	acts, err := actions(s)
	if err != nil {
		return nil, false, err
	}
	acts, err = align(acts, s.Msg.Blocks, m.Blocks)
	if err != nil {
		return nil, false, err
	}
	raw, err = apply(m, acts)
	if err != nil || raw == nil {
		return nil, false, err
	}
	if len(raw) == len(m.Raw) && &raw[0] == &m.Raw[0] {
		return nil, true, nil
	}
	return raw, true, nil
}

// action is what happens to one block of a message.
type action struct {
	hide bool
	edit bool
	text string // with edit
}

// actions says what s does to each block of s.Msg.
func actions(s *furl.Shown) ([]action, error) {
	acts := make([]action, len(s.Msg.Blocks))
	next := 0
	for i := range s.Blocks {
		sb := &s.Blocks[i]
		for next < len(acts) && sb.Block != &s.Msg.Blocks[next] {
			acts[next].hide = true
			next++
		}
		if next == len(acts) {
			return nil, fmt.Errorf("block %d of what is shown is not one of the message's, or not in order", i)
		}
		if sb.By != 0 {
			acts[next] = action{edit: true, text: sb.Text}
		}
		next++
	}
	for ; next < len(acts); next++ {
		acts[next].hide = true
	}
	return acts, nil
}

// align carries actions on recorded blocks over to the blocks of the same
// message as it came in now. Clients leave out thinking as they like; the
// other blocks are the same by what the messages were matched on.
func align(acts []action, recorded, incoming []furl.Block) ([]action, error) {
	out := make([]action, len(incoming))
	at := 0
	for i := range incoming {
		thinking := incoming[i].Kind == furl.KindThinking
		for !thinking && at < len(recorded) && recorded[at].Kind == furl.KindThinking {
			at++ // left out by the client
		}
		if thinking && (at == len(recorded) || recorded[at].Kind != furl.KindThinking) {
			continue // never recorded: stays
		}
		if at == len(recorded) || recorded[at].Kind != incoming[i].Kind || recorded[at].ID != incoming[i].ID {
			return nil, fmt.Errorf("content.%d is not the block that was recorded", i)
		}
		out[i] = acts[at]
		if out[i].edit && shows(&incoming[i], out[i].text) {
			out[i] = action{} // the client hid it itself; its bytes stay
		}
		at++
	}
	for ; at < len(recorded); at++ {
		if recorded[at].Kind != furl.KindThinking {
			return nil, fmt.Errorf("a recorded block of kind %v is missing", recorded[at].Kind)
		}
	}
	return out, nil
}

// shows reports whether the block says just that text already.
func shows(b *furl.Block, text string) bool {
	switch b.Kind {
	case furl.KindText, furl.KindResult:
		return b.Text == nonEmpty(text) && len(b.Media) == 0
	case furl.KindCall:
		return string(b.Args) == text
	}
	return false
}

// apply splices the actions into the bytes of m. It returns m.Raw itself if
// there is nothing to do and nil if nothing is left.
func apply(m *furl.Message, acts []action) (json.RawMessage, error) {
	if err := inOrder(m); err != nil {
		return nil, err
	}
	items := make([]rawjson.Item, 0, len(acts))
	elems := make([]rawjson.Span, len(acts))
	edited := false
	for i, a := range acts {
		b := &m.Blocks[i]
		elems[i] = rawjson.Span{Start: b.Start, End: b.End}
		if a.hide {
			continue
		}
		item := rawjson.Item{Index: i}
		if a.edit {
			edited = true
			if b.End == 0 { // the content is one string
				edit := rawjson.SetField(m.Raw, "content", quote(a.text))
				return rawjson.Splice(m.Raw, edit), nil
			}
			var err error
			if item.New, err = editBlock(elems[i].Of(m.Raw), b, a.text); err != nil {
				return nil, fmt.Errorf("content.%d: %w", i, err)
			}
		}
		items = append(items, item)
	}
	switch {
	case len(items) == 0 && len(acts) > 0:
		return nil, nil
	case len(items) == len(acts) && !edited:
		return m.Raw, nil
	}
	return rawjson.Splice(m.Raw, rawjson.List(rawjson.Span{}, elems, items)), nil
}

// inOrder checks that the blocks stand in the message's bytes one behind the
// other. What a damaged store or a stranger's file holds need not.
func inOrder(m *furl.Message) error {
	if len(m.Blocks) == 1 && m.Blocks[0].End == 0 {
		return nil // the content is one string
	}
	at := 0
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if b.Start < at || b.End <= b.Start || b.End > len(m.Raw) {
			return fmt.Errorf("content.%d stands at bytes %d to %d of %d, which cannot be", i, b.Start, b.End, len(m.Raw))
		}
		at = b.End
	}
	return nil
}

// editBlock shows another text in a block's own envelope: every other field
// keeps its place and bytes. An image or document becomes a text block, which
// is all that can stand for it.
func editBlock(raw []byte, b *furl.Block, text string) ([]byte, error) {
	switch b.Kind {
	case furl.KindText:
		return rawjson.Splice(raw, rawjson.SetField(raw, "text", quote(text))), nil
	case furl.KindResult:
		return rawjson.Splice(raw, rawjson.SetField(raw, "content", quote(text))), nil
	case furl.KindCall:
		return rawjson.Splice(raw, rawjson.SetField(raw, "input", object(text, "furl_shortened"))), nil
	case furl.KindImage, furl.KindDocument:
		f := readFields(rawjson.NewReader(raw))
		out := appendText(nil, text)
		if present(f.cacheControl) {
			out = append(append(out[:len(out)-1], `,"cache_control":`...), f.cacheControl.Raw...)
			out = append(out, '}')
		}
		return out, nil
	}
	return nil, fmt.Errorf("a block of kind %v cannot show another text", b.Kind)
}

// emptyText stands where a text would be empty, which the provider refuses.
const emptyText = "(empty)"

func nonEmpty(text string) string {
	if strings.TrimSpace(text) == "" {
		return emptyText
	}
	return text
}

func quote(text string) []byte { return rawjson.AppendString(nil, nonEmpty(text)) }

func appendText(dst []byte, text string) []byte {
	dst = append(dst, `{"type":"text","text":`...)
	return append(rawjson.AppendString(dst, nonEmpty(text)), '}')
}

// object gives text as it is if it is a JSON object, which a call's input has
// to be, and otherwise an object with the text in a field of that name.
func object(text, field string) []byte {
	raw := []byte(text)
	if rawjson.NewReader(raw).Kind() == '{' && rawjson.Check(raw) == nil {
		return raw
	}
	if strings.TrimSpace(text) == "" {
		return []byte("{}")
	}
	out := rawjson.AppendString([]byte{'{'}, field)
	out = rawjson.AppendString(append(out, ':'), text)
	return append(out, '}')
}
