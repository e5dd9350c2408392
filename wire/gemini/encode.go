package gemini

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// EncodeMessage returns the wire form of one shown message. If the message is
// in this format, these are its bytes with the changed blocks spliced in;
// otherwise it is built from its blocks. It returns none if all blocks are
// hidden.
func (codec) EncodeMessage(s furl.Shown) ([]json.RawMessage, error) {
	if s.Msg.Format != furl.FormatGemini || s.Msg.Raw == nil {
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

// EncodeRequest applies the view to the body of req. It touches only contents
// that are hidden, changed or new; without changes it returns the body
// itself.
//
// The changes are made to the bytes of this request, which may differ from
// the recorded ones: clients leave out thoughts and change signatures and ids. Blocks
// are matched in order, ignoring thinking. A content whose blocks do not match is an
// error. Once anything of the results between two contents of the model is changed,
// repeated results there are removed: they would show what is hidden.
func (c codec) EncodeRequest(req *protocol.Request, v *furl.View) ([]byte, error) {
	items := make([]rawjson.Item, 0, len(v.Messages))
	same, next := true, 0
	changed := false  // results since the last content of the model
	var ours [][]byte // results of furl's tools that wait for those of the client's
	for i := range v.Messages {
		s := &v.Messages[i]
		if s.Msg.Role == furl.RoleAssistant {
			changed = false
		}
		if len(ours) > 0 && s.Msg.Role == furl.RoleAssistant && saysNothing(s.Msg) {
			same = false
			if s.Index >= 0 {
				next = s.Index + 1
			}
			continue // it must not part the results
		}
		if len(ours) > 0 && (s.Msg.Role == furl.RoleAssistant || !startsWithResult(s)) {
			items, ours = append(items, rawjson.Item{Index: -1, New: content(roleUser, ours...)}), nil
		}
		if s.Index < 0 {
			raws, err := c.EncodeMessage(*s)
			if err != nil {
				return nil, fmt.Errorf("encode marker of reduction %d: %w", s.By, err)
			}
			if s.Msg.HasOwn() && startsWithResult(s) {
				for _, raw := range raws {
					ours = append(ours, rawjson.Elements(value(raw, "parts"))...)
				}
				same, changed = false, true
				continue
			}
			for _, raw := range raws {
				if len(ours) > 0 {
					raw, ours = joinContents(content(roleUser, ours...), raw), nil
				}
				items = append(items, rawjson.Item{Index: -1, New: raw})
				same = false
			}
			changed = true
			continue
		}
		if s.Index < next || s.Index >= len(req.Messages) {
			return nil, fmt.Errorf("the view shows message %d, the request has %d messages", s.Index, len(req.Messages))
		}
		m := &req.Messages[s.Index]
		edits, shown, err := encodeInto(m, s, changed)
		if err != nil {
			return nil, fmt.Errorf("encode contents.%d: %w", s.Index, err)
		}
		changed = changed || m.Role != furl.RoleAssistant && (!shown || len(edits) > 0)
		same = same && shown && s.Index == next && len(edits) == 0
		next = s.Index + 1
		if !shown {
			continue
		}
		item := rawjson.Item{Index: s.Index, Edits: edits}
		if len(ours) > 0 {
			item.New, ours = joinContents(content(roleUser, ours...), rawjson.Splice(m.Raw, edits)), nil
		}
		items = append(items, item)
	}
	if len(ours) > 0 {
		items = append(items, rawjson.Item{Index: -1, New: content(roleUser, ours...)})
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

// saysNothing reports whether a content has no parts but thoughts and empty ones.
func saysNothing(m *furl.Message) bool {
	return !slices.ContainsFunc(m.Blocks, func(b furl.Block) bool { return b.Kind != furl.KindThinking })
}

// startsWithResult reports whether a shown message has a result as its first block.
func startsWithResult(s *furl.Shown) bool {
	return len(s.Blocks) > 0 && s.Blocks[0].Block.Kind == furl.KindResult
}

// encodeInto returns the edits of m, an incoming content, that make it what s shows of its
// recorded counterpart. shown is false if all blocks are hidden. once is set if repeated
// results must be removed.
func encodeInto(m *furl.Message, s *furl.Shown, once bool) (edits []rawjson.Edit, shown bool, err error) {
	if s.AsRecorded() {
		if !once || !hasRepeated(m) {
			return nil, true, nil
		}
		return apply(m, withoutRepeated(m, make([]action, len(m.Blocks))))
	}
	acts, err := actions(s)
	if err != nil {
		return nil, false, err
	}
	acts, err = align(acts, s.Msg.Blocks, m.Blocks)
	if err != nil {
		return nil, false, err
	}
	return apply(m, withoutRepeated(m, acts))
}

func hasRepeated(m *furl.Message) bool {
	for i := range m.Blocks {
		if m.Blocks[i].Name == repeated && m.Blocks[i].Kind == furl.KindThinking {
			return true
		}
	}
	return false
}

// withoutRepeated hides repeated results.
func withoutRepeated(m *furl.Message, acts []action) []action {
	for i := range m.Blocks {
		if m.Blocks[i].Name == repeated && m.Blocks[i].Kind == furl.KindThinking {
			acts[i] = action{hide: true}
		}
	}
	return acts
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
// content. Clients leave out thoughts, and add and remove empty parts; the other blocks
// are equal, because the messages were matched by their digest.
func align(acts []action, recorded, incoming []furl.Block) ([]action, error) {
	out := make([]action, len(incoming))
	at := 0
	for i := range incoming {
		thinking := incoming[i].Kind == furl.KindThinking
		for !thinking && at < len(recorded) && recorded[at].Kind == furl.KindThinking {
			at++ // left out by the client
		}
		if thinking && (at == len(recorded) || recorded[at].Kind != furl.KindThinking) {
			continue // never recorded: unchanged
		}
		if at == len(recorded) || recorded[at].Kind != incoming[i].Kind {
			return nil, fmt.Errorf("parts.%d differs from the recorded block", i)
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
			if item.Edits, err = editBlock(elems[i].Of(m.Raw), b, a.text); err != nil {
				return nil, false, fmt.Errorf("parts.%d: %w", i, err)
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
	at := 0
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if b.Start < at || b.End <= b.Start || b.End > len(m.Raw) {
			return fmt.Errorf("parts.%d: invalid position %d to %d of %d bytes", i, b.Start, b.End, len(m.Raw))
		}
		at = b.End
	}
	return nil
}

// editBlock returns the edits that replace the text of a block and keep the position and
// bytes of every other field. A text in several parts becomes one with the signature of the
// last. An image or document becomes a text, the only part that can replace it.
func editBlock(raw []byte, b *furl.Block, text string) ([]rawjson.Edit, error) {
	switch b.Kind {
	case furl.KindText:
		if single(raw) {
			return set(raw, "text", quote(text)), nil
		}
		return []rawjson.Edit{{Span: rawjson.Span{End: len(raw)}, New: joinedText(raw, text)}}, nil
	case furl.KindResult:
		name := nameIn(raw, "functionResponse")
		old := rawjson.Field(raw, name)
		result := with(old, "response", response(text, b.Error))
		if len(b.Media) > 0 {
			result = without(result, "parts")
		}
		return rawjson.SetField(raw, name, result), nil
	case furl.KindCall:
		name := nameIn(raw, "functionCall")
		call := with(rawjson.Field(raw, name), "args", rawjson.ObjectOf(text, "furl_shortened"))
		return rawjson.SetField(raw, name, call), nil
	case furl.KindImage, furl.KindDocument:
		p := readPart(rawjson.NewReader(raw), nil)
		return []rawjson.Edit{{Span: rawjson.Span{End: len(raw)}, New: textPart(text, p.signature.Raw)}}, nil
	}
	return nil, fmt.Errorf("the text of a block of kind %v cannot be replaced", b.Kind)
}

// single reports whether the bytes of a block are one part.
func single(raw []byte) bool { return rawjson.Check(raw) == nil }

// joinedText returns a part with a text that replaces several parts.
func joinedText(raw []byte, text string) []byte {
	var signature []byte
	for _, elem := range rawjson.Elements(append(append([]byte{'['}, raw...), ']')) {
		if s := value(elem, "thoughtSignature"); !isNull(s) {
			signature = s
		}
	}
	return textPart(text, signature)
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

// quoteAny quotes ids and names, which may contain anything.
func quoteAny(s string) []byte { return rawjson.AppendString(nil, s) }

// textPart returns a part with a text, and with a signature unless that is nil.
func textPart(text string, signature []byte) []byte {
	out := append([]byte(`{"text":`), quote(text)...)
	if len(signature) > 0 {
		out = append(append(out, `,"thoughtSignature":`...), signature...)
	}
	return append(out, '}')
}

// response returns the response of a function with a text under the name that Google
// documents for it.
func response(text string, failed bool) []byte {
	name := "output"
	if failed {
		name = "error"
	}
	out := rawjson.AppendString([]byte{'{'}, name)
	return append(append(append(out, ':'), quote(text)...), '}')
}
