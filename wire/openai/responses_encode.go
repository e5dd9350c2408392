package openai

import (
	"encoding/json"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// EncodeMessage returns the items for one shown message. The output of a
// masked result becomes a string, except a shell's, which becomes one output
// with the text. The arguments of a masked call keep their structure. An
// image replaced by a text becomes a text part. An input that is a string
// becomes a message item, the form it has in a list.
//
// For messages of other formats, results become function_call_output items
// before everything else, calls function_call items, texts message items, and
// thinking is omitted.
//
// If a reasoning item is hidden, the provider no longer accepts the ids of
// the items it produced. EncodeResponses and EncodeRequest, which see the
// neighbours, remove those ids; this method cannot.
func (responses) EncodeMessage(s furl.Shown) ([]json.RawMessage, error) {
	if s.Msg.Format != furl.FormatResponses || s.Msg.Raw == nil {
		return buildItems(s.Msg.Role, shownPieces(&s), false), nil
	}
	raw, err := itemBytes(s.Msg, &s)
	if raw == nil || err != nil {
		return nil, err
	}
	return []json.RawMessage{asItem(raw)}, nil
}

// asItem converts an input that is a string into an item.
func asItem(raw []byte) []byte {
	if raw[0] != '"' {
		return raw
	}
	out := appendField([]byte{'{'}, "type", quote("message"))
	out = appendField(out, "role", quote("user"))
	return append(appendField(out, "content", raw), '}')
}

// EncodeResponses returns the input list of Responses for a whole view. An
// item of the model loses its id if its reasoning is not shown; a reasoning
// item is omitted if its output is not shown. Without the request, what was
// between two shown messages is unknown, so an item also loses its id if
// anything directly before it is hidden.
func EncodeResponses(v *furl.View) ([]json.RawMessage, error) {
	p := pairing{v: v}
	list := make([]json.RawMessage, 0, len(v.Messages))
	for k := range v.Messages {
		s := &v.Messages[k]
		if s.Msg.Format == furl.FormatResponses && s.Msg.Raw != nil {
			raw, err := p.bytes(k, s.Msg)
			if err != nil {
				return nil, err
			}
			if raw != nil {
				list = append(list, asItem(raw))
			}
			continue
		}
		p.detached = false
		elems, err := Responses.EncodeMessage(*s)
		if err != nil {
			return nil, err
		}
		list = append(list, elems...)
	}
	return list, nil
}

// EncodeRequest applies a view to req's body. Items whose reasoning is not
// shown lose their id, as the provider requires. The items of some hosted
// tools (image_generation_call, mcp_call and others) are refused without an
// id and keep it: reasoning before such an item should not be hidden. An
// input that is a string stays a string while it is the only message.
//
// A Stateful request is returned unchanged, whatever the view: it does not
// contain the stored history, so calls and results could not be hidden
// together.
func (c responses) EncodeRequest(req *protocol.Request, v *furl.View) ([]byte, error) {
	body, err := c.encodeRequest(req, v)
	// Checked only now: most views change nothing, and the check reads the
	// whole body.
	if changed := err != nil || len(body) != len(req.Body) || len(body) > 0 && &body[0] != &req.Body[0]; changed && isStateful(req) {
		return req.Body, nil
	}
	if err != nil {
		return nil, fmt.Errorf("encode Responses request: %w", err)
	}
	return body, nil
}

func (c responses) encodeRequest(req *protocol.Request, v *furl.View) ([]byte, error) {
	if len(req.Messages) == 1 && len(req.Messages[0].Raw) > 0 && req.Messages[0].Raw[0] == '"' {
		return c.encodeString(req, v)
	}
	p := pairing{v: v, req: req}
	return spliceList(req, v, "input", p.bytes, p.asRecorded)
}

// encodeString applies a view to an input that is a string.
func (c responses) encodeString(req *protocol.Request, v *furl.View) ([]byte, error) {
	elems, err := elements(req)
	if err != nil {
		return nil, err
	}
	if len(v.Messages) == 1 && v.Messages[0].Index == 0 {
		raw, err := itemBytes(&req.Messages[0], &v.Messages[0])
		if err != nil {
			return nil, err
		}
		if raw != nil {
			if len(raw) == elems[0].Len() && &raw[0] == &req.Messages[0].Raw[0] {
				return req.Body, nil
			}
			return rawjson.Splice(req.Body, []rawjson.Edit{{Span: elems[0], New: raw}}), nil
		}
	}
	items, err := EncodeResponses(v)
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for _, item := range items {
		all = append(all, item)
	}
	return rawjson.Splice(req.Body, []rawjson.Edit{{Span: elems[0], New: list(all)}}), nil
}

// itemBytes returns what s shows of m: m.Raw itself if nothing changes, nil
// if all blocks are hidden.
func itemBytes(m *furl.Message, s *furl.Shown) ([]byte, error) {
	if s.AsRecorded() {
		return m.Raw, nil
	}
	views, err := blockViews(m, s)
	if err != nil {
		return nil, err
	}
	raw, err := editItem(m.Raw, views)
	if err != nil {
		return nil, fmt.Errorf("edit message %d: %w", s.Seq, err)
	}
	return raw, nil
}

// isStateful reports whether a Responses request continues a response or a
// conversation stored by the provider. Nothing of such a request may be
// hidden: the list contains only new items.
func isStateful(req *protocol.Request) bool {
	if req.Format != furl.FormatResponses || len(req.Body) == 0 {
		return false
	}
	stateful := false
	r := rawjson.NewReader(req.Fields())
	for key := range r.Fields() {
		switch string(key) {
		case "previous_response_id", "conversation":
			stateful = stateful || r.Kind() != 'n'
		}
	}
	return stateful
}
