package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// EncodeMessage returns the wire form of one shown message. If the message is
// in this format, these are its bytes with the changed blocks spliced in;
// otherwise it is built from its blocks. It returns none if all blocks are
// hidden.
//
// Messages of other formats, and those that furl wrote, lose what this format
// cannot represent: thinking, because signatures are valid for one provider
// only, and opaque blocks, of which the text is kept. Results become a user
// message.
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
	edits, shown, err := apply(s.Msg, acts)
	if err != nil || !shown {
		return nil, err
	}
	return []json.RawMessage{rawjson.Splice(s.Msg.Raw, edits)}, nil
}

// EncodeRequest applies the view to the body of req. It touches only messages
// that are hidden, changed or new; without changes it returns the body
// itself.
//
// The changes are made to the bytes of this request, which may differ from
// the recorded ones: clients move their cache breakpoints, write a text as a
// string or as a block, and omit old thinking. Blocks are matched in order,
// ignoring thinking. A message whose blocks do not match is an error.
//
// EncodeRequest sets a cache breakpoint where the view changed last, equal to
// the client's next one, if the client leaves one unused. The provider can
// then read everything before it from the cache, however much follows.
func (c codec) EncodeRequest(req *protocol.Request, v *furl.View) ([]byte, error) {
	items := make([]rawjson.Item, 0, len(v.Messages))
	same, next := true, 0
	list, late := orderInstructions(v.Messages)
	cutAt, cutID := newestChange(list)
	for i := range list {
		s := &list[i]
		if s.Index < 0 {
			raws, err := c.EncodeMessage(*s)
			if err != nil {
				return nil, fmt.Errorf("encode marker of reduction %d: %w", s.By, err)
			}
			if i == cutAt && len(raws) > 0 {
				raws[0] = withBreakpoint(raws[0], cutID, breakpointFor(req, next))
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
		raw := req.Messages[s.Index].Raw
		edits, shown, err := encodeInto(&req.Messages[s.Index], s)
		if err != nil {
			return nil, fmt.Errorf("encode messages.%d: %w", s.Index, err)
		}
		if late[i] {
			same = false
			if shown {
				items = append(items, rawjson.Item{Index: -1, New: rawjson.Splice(raw, edits)})
			}
			continue
		}
		same = same && shown && s.Index == next && len(edits) == 0
		next = s.Index + 1
		if !shown {
			continue
		}
		item := rawjson.Item{Index: s.Index, Edits: edits}
		if i == cutAt && len(edits) > 0 {
			item.New = withBreakpoint(rawjson.Splice(raw, edits), cutID, breakpointFor(req, s.Index))
		}
		items = append(items, item)
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
	// The span is used for empty lists only.
	return rawjson.Splice(req.Body, rawjson.List(rawjson.Span{}, elems, items)), nil
}

// encodeInto returns the edits of m, an incoming message, that make it what s shows of its
// recorded counterpart. shown is false if all blocks are hidden.
func encodeInto(m *furl.Message, s *furl.Shown) (edits []rawjson.Edit, shown bool, err error) {
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
	return apply(m, acts)
}

// action says what happens to one block of a message.
type action struct {
	hide bool
	edit bool
	text string // with edit
}

// actions returns what s does to each block of s.Msg.
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
			return nil, fmt.Errorf("shown block %d is not in the message, or not in order", i)
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

// align maps actions on recorded blocks to the blocks of the incoming
// message. Clients may omit thinking; the other blocks are equal, because the
// messages were matched by their digest.
func align(acts []action, recorded, incoming []furl.Block) ([]action, error) {
	out := make([]action, len(incoming))
	at := 0
	for i := range incoming {
		thinking := incoming[i].Kind == furl.KindThinking
		for !thinking && at < len(recorded) && recorded[at].Kind == furl.KindThinking {
			at++ // omitted by the client
		}
		if thinking && (at == len(recorded) || recorded[at].Kind != furl.KindThinking) {
			continue // never recorded: unchanged
		}
		if at == len(recorded) || recorded[at].Kind != incoming[i].Kind || recorded[at].ID != incoming[i].ID {
			return nil, fmt.Errorf("content.%d differs from the recorded block", i)
		}
		out[i] = acts[at]
		if out[i].edit && shows(&incoming[i], out[i].text) {
			out[i] = action{} // the client hid it itself; its bytes are kept
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

// shows reports whether the block already has exactly that text.
func shows(b *furl.Block, text string) bool {
	switch b.Kind {
	case furl.KindText, furl.KindResult:
		return b.Text == nonEmpty(text) && len(b.Media) == 0
	case furl.KindCall:
		return string(b.Args) == text
	}
	return false
}

// apply returns the edits of m.Raw that make the actions. shown is false if all blocks are
// hidden.
func apply(m *furl.Message, acts []action) (edits []rawjson.Edit, shown bool, err error) {
	if err := inOrder(m); err != nil {
		return nil, false, err
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
				return rawjson.SetField(m.Raw, "content", quote(a.text)), true, nil
			}
			if item.Edits, err = editBlock(elems[i].Of(m.Raw), b, a.text); err != nil {
				return nil, false, fmt.Errorf("content.%d: %w", i, err)
			}
		}
		items = append(items, item)
	}
	switch {
	case len(items) == 0 && len(acts) > 0:
		return nil, false, nil
	case len(items) == len(acts) && !edited:
		return nil, true, nil
	}
	return rawjson.List(rawjson.Span{}, elems, items), true, nil
}

// inOrder checks that the positions of the blocks ascend without overlap. A
// damaged store or an imported file may violate this.
func inOrder(m *furl.Message) error {
	if len(m.Blocks) == 1 && m.Blocks[0].End == 0 {
		return nil // the content is one string
	}
	at := 0
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if b.Start < at || b.End <= b.Start || b.End > len(m.Raw) {
			return fmt.Errorf("content.%d: invalid position %d to %d of %d bytes", i, b.Start, b.End, len(m.Raw))
		}
		at = b.End
	}
	return nil
}

// editBlock returns the edits that replace the text of a block and keep the position and bytes of
// every other field. An image or document becomes a text block, the only type
// that can replace it.
func editBlock(raw []byte, b *furl.Block, text string) ([]rawjson.Edit, error) {
	switch b.Kind {
	case furl.KindText:
		return rawjson.SetField(raw, "text", quote(text)), nil
	case furl.KindResult:
		return rawjson.SetField(raw, "content", quote(text)), nil
	case furl.KindCall:
		return rawjson.SetField(raw, "input", rawjson.ObjectOf(text, "furl_shortened")), nil
	case furl.KindImage, furl.KindDocument:
		f := readFields(rawjson.NewReader(raw))
		out := appendText(nil, text)
		if present(f.cacheControl) {
			out = append(append(out[:len(out)-1], `,"cache_control":`...), f.cacheControl.Raw...)
			out = append(out, '}')
		}
		return []rawjson.Edit{{Span: rawjson.Span{End: len(raw)}, New: out}}, nil
	}
	return nil, fmt.Errorf("the text of a block of kind %v cannot be replaced", b.Kind)
}

// emptyText replaces an empty text, which the provider refuses.
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
