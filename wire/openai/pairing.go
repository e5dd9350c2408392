package openai

import (
	"encoding/json"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// pairing encodes the items of a view in order and keeps reasoning and its
// output together (wire rule: a reasoning item must be followed by its
// output; an output item with an id must follow its reasoning).
//
// A response contains reasoning, then the items that resulted from it, up to
// the next reasoning or the next item that is not the model's.
type pairing struct {
	v   *furl.View
	req *protocol.Request // nil: only the view is known
	// detached means that the current item belongs to reasoning that is not
	// shown.
	detached bool
	last     int // index of the previous message, plus one
}

// bytes returns the bytes of the k-th message of the view, nil if it is not
// sent.
func (p *pairing) bytes(k int, m *furl.Message) ([]byte, error) {
	s := &p.v.Messages[k]
	p.skipTo(s.Index)
	p.last = s.Index + 1
	raw, err := itemBytes(m, s)
	if err != nil {
		return nil, err
	}
	switch {
	case m.Role != furl.RoleAssistant:
		p.detached = false
	case isReasoning(m):
		if raw != nil && p.barren(k) {
			raw = nil
		}
		p.detached = raw == nil
	case p.detached && raw != nil:
		raw = withoutID(raw)
	}
	return raw, nil
}

// asRecorded returns the items of a shown message that is not in the request: a
// marker, or a message that is sent as recorded. Reasoning without its
// encrypted content is useful only if the provider has stored it, which the
// request does not tell.
func (p *pairing) asRecorded(s furl.Shown) ([]json.RawMessage, error) {
	if s.Seq != 0 && unreadable(s.Msg) {
		p.detached = false
		return nil, nil
	}
	items, err := Responses.EncodeMessage(s)
	p.detached = false
	if err == nil && len(items) == 1 && s.Seq != 0 && s.Msg.Role == furl.RoleAssistant && !isReasoning(s.Msg) && p.orphan(s.Seq) {
		items[0] = withoutID(items[0])
	}
	return items, err
}

// unreadable reports whether a message is reasoning identified by its id
// only.
func unreadable(m *furl.Message) bool { return isReasoning(m) && m.Blocks[0].Signature == 0 }

// orphan reports whether the reasoning of the recorded item seq is not sent.
func (p *pairing) orphan(seq furl.Seq) bool {
	st := p.v.State
	if st == nil {
		return false
	}
	i, ok := st.Find(seq)
	for i--; ok && i >= 0; i-- {
		at, m := st.Message(i)
		if m.Role != furl.RoleAssistant {
			return false
		}
		if isReasoning(m) {
			return unreadable(m) || !slices.ContainsFunc(p.v.Messages, func(s furl.Shown) bool { return s.Seq == at })
		}
	}
	return false
}

// skipTo examines what is hidden between the last shown message and the one at
// index.
func (p *pairing) skipTo(index int) {
	if p.req == nil {
		if p.last != index {
			p.detached = true // the hidden message may be its reasoning
		}
		return
	}
	for i := p.last; i < index; i++ {
		m := &p.req.Messages[i]
		switch {
		case m.Role != furl.RoleAssistant:
			p.detached = false
		case isReasoning(m):
			p.detached = true
		}
	}
}

// barren reports whether the view shows the k-th message, which is reasoning,
// without the item that followed it.
func (p *pairing) barren(k int) bool {
	index := p.v.Messages[k].Index
	if k+1 < len(p.v.Messages) {
		next := &p.v.Messages[k+1]
		if len(next.Blocks) > 0 && (next.Index == index+1 || next.Index < 0 && p.contiguous(k)) {
			return false
		}
	} else if p.req == nil {
		return false // the end of the list
	}
	if p.req == nil {
		return true
	}
	return index+1 < len(p.req.Messages) && p.req.Messages[index+1].Role == furl.RoleAssistant
}

// contiguous reports whether the message after the k-th is sent as recorded
// and directly followed it.
func (p *pairing) contiguous(k int) bool {
	st, s, next := p.v.State, &p.v.Messages[k], &p.v.Messages[k+1]
	if st == nil || s.Seq == 0 || next.Seq == 0 || next.Msg.Role != furl.RoleAssistant {
		return false
	}
	i, ok := st.Find(s.Seq)
	j, too := st.Find(next.Seq)
	return ok && too && j == i+1
}

func isReasoning(m *furl.Message) bool {
	return len(m.Blocks) == 1 && m.Blocks[0].Kind == furl.KindThinking
}

// detachable are the items that the provider accepts without their id. Others
// need it, or have no other identification.
var detachable = map[string]bool{
	"message": true, "function_call": true, "custom_tool_call": true, "local_shell_call": true, "shell_call": true,
	"apply_patch_call": true, "tool_search_call": true, "computer_call": true, "web_search_call": true,
}

// withoutID removes the id of an item that can be sent without it.
func withoutID(raw []byte) []byte {
	var s itemScan
	r := rawjson.NewReader(raw)
	if r.Kind() != '{' {
		return raw
	}
	for key := range r.Fields() {
		switch string(key) {
		case "type":
			s.typ, _ = r.String()
		case "id":
			s.id, _ = r.String()
		case "call_id":
			s.callID, _ = r.String()
		}
	}
	alone := s.callID == "" && s.typ != "message" && s.typ != "" && s.typ != "web_search_call"
	if s.id == "" || alone || s.typ != "" && !detachable[s.typ] {
		return raw
	}
	return rawjson.Splice(raw, rawjson.DropField(raw, "id"))
}
