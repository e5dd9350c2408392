package openai

import (
	"encoding/json"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// EncodeMessage returns the messages for one shown message. An image replaced
// by a text becomes a text part. The arguments of a masked call stay a string
// with a JSON object, those of a custom tool a plain string. The content of a
// masked result becomes a string. If all content of an assistant message is
// hidden and its calls stay, content is null.
//
// For messages of other formats, results become tool messages before
// everything else, calls become tool_calls, and thinking is omitted.
func (chat) EncodeMessage(s furl.Shown) ([]json.RawMessage, error) {
	if s.Msg.Format != furl.FormatChat || s.Msg.Raw == nil {
		return buildChat(s.Msg.Role, shownPieces(&s), false), nil
	}
	raw, err := chatBytes(s.Msg, &s)
	if raw == nil || err != nil {
		return nil, err
	}
	return []json.RawMessage{raw}, nil
}

// EncodeChat returns the messages list of Chat Completions for a whole view.
// Adjacent messages of other formats are joined where Chat Completions
// requires it: the model's, because the results of all its calls must follow
// the last call, and those of tools, whose results must precede any text.
func EncodeChat(v *furl.View) ([]json.RawMessage, error) {
	list := make([]json.RawMessage, 0, len(v.Messages))
	var run []piece
	var role furl.Role // of the run
	flush := func() {
		list = append(list, buildChat(role, run, false)...)
		run = nil
	}
	for k := range v.Messages {
		s := &v.Messages[k]
		foreign := s.Msg.Format != furl.FormatChat || s.Msg.Raw == nil
		if s.Msg.Role != role || !foreign {
			flush()
		}
		role = s.Msg.Role
		if foreign && (role == furl.RoleAssistant || role == furl.RoleTool) {
			run = append(run, shownPieces(s)...)
			continue
		}
		elems, err := Chat.EncodeMessage(*s)
		if err != nil {
			return nil, err
		}
		list = append(list, elems...)
	}
	flush()
	return list, nil
}

// EncodeRequest applies a view to req's body.
func (c chat) EncodeRequest(req *protocol.Request, v *furl.View) ([]byte, error) {
	body, err := spliceList(req, v, "messages", func(k int, m *furl.Message) ([]byte, error) {
		return chatBytes(m, &v.Messages[k])
	}, c.EncodeMessage)
	if err != nil {
		return nil, fmt.Errorf("encode Chat Completions request: %w", err)
	}
	return body, nil
}

// chatBytes returns what s shows of m: m.Raw itself if nothing changes, nil
// if all blocks are hidden.
func chatBytes(m *furl.Message, s *furl.Shown) ([]byte, error) {
	if s.AsRecorded() {
		return m.Raw, nil
	}
	views, err := blockViews(m, s)
	if err != nil {
		return nil, err
	}
	raw, err := editChat(m.Raw, views)
	if err != nil {
		return nil, fmt.Errorf("edit message %d: %w", s.Seq, err)
	}
	return raw, nil
}

// chatEdit is an edit of one message.
type chatEdit struct {
	change
	s     chatScan
	raw   []byte
	parts []rawjson.Item // of content, not hidden
	calls []rawjson.Item // of tool_calls, not hidden
	left  int            // number of blocks not hidden
}

func editChat(raw []byte, views []blockView) ([]byte, error) {
	e := chatEdit{raw: raw}
	r := rawjson.NewReader(raw)
	e.s.read(raw, r)
	if err := r.End(); err != nil {
		return nil, err
	}
	if e.s.role == "tool" || e.s.role == "function" {
		if len(views) != 1 {
			return nil, fmt.Errorf("a result has one block, got %d", len(views))
		}
		return e.result(views[0]), nil
	}
	slots := e.s.slots()
	if len(slots) != len(views) {
		return nil, fmt.Errorf("the message has %d blocks, got %d", len(slots), len(views))
	}
	for i, sl := range slots {
		e.block(sl, views[i])
	}
	if e.left == 0 {
		return nil, nil
	}
	if n := len(e.s.parts); n > 0 && len(e.parts) == 0 {
		e.replace(e.s.content.Span, []byte("null"))
	} else if n > 0 {
		e.list(e.s.content, spansOf(e.s.parts, func(p part) rawjson.Span { return p.span }), e.parts)
	}
	if n := len(e.s.calls); n > 0 && len(e.calls) == 0 {
		e.drop = append(e.drop, "tool_calls")
	} else if n > 0 {
		e.list(e.s.callList, spansOf(e.s.calls, func(c chatCall) rawjson.Span { return c.Span }), e.calls)
	}
	return e.apply(raw), nil
}

func spansOf[T any](list []T, span func(T) rawjson.Span) []rawjson.Span {
	spans := make([]rawjson.Span, len(list))
	for i := range list {
		spans[i] = span(list[i])
	}
	return spans
}

func (e *chatEdit) list(v value, elems []rawjson.Span, items []rawjson.Item) {
	e.edits = append(e.edits, rawjson.List(inside(v.Span), elems, items)...)
}

func (e *chatEdit) result(v blockView) []byte {
	switch {
	case v.gone:
		return nil
	case !v.edited:
		return e.raw
	case e.s.content.kind == 0:
		e.set = append(e.set, field{"content", quote(v.text)})
	default:
		e.replace(e.s.content.Span, resultText(e.raw, e.s.parts, "text", v.text))
	}
	return e.apply(e.raw)
}

// resultText returns a text that replaces a result's string or parts: a
// string, or one part if a cache breakpoint must be kept.
func resultText(raw []byte, parts []part, typ, text string) []byte {
	for i := range parts {
		if parts[i].mark.Len() > 0 {
			out := append([]byte{'['}, inPlaceOf(raw, parts, typ, text)...)
			return append(out, ']')
		}
	}
	return quote(text)
}

func (e *chatEdit) block(sl chatSlot, v blockView) {
	if !v.gone {
		e.left++
	}
	switch sl.kind {
	case slotContent:
		e.content(v)
	case slotPart:
		e.part(sl.i, v)
	case slotThinking:
		if val := e.s.thinking[sl.i]; v.gone || v.edited && val.kind != '"' {
			e.drop = append(e.drop, thinkingFields[sl.i])
		} else if v.edited {
			e.replace(val.Span, quote(v.text))
		}
	case slotRefusal:
		if v.gone {
			e.drop = append(e.drop, "refusal")
		} else if v.edited {
			e.replace(e.s.refusal.Span, quote(v.text))
		}
	case slotAudio:
		if v.gone {
			e.drop = append(e.drop, "audio")
		}
	case slotCall:
		if !v.gone {
			e.calls = append(e.calls, rawjson.Item{Index: sl.i})
			e.call(&e.s.calls[sl.i], v)
		}
	case slotFunction:
		if v.gone {
			e.drop = append(e.drop, "function_call")
		} else {
			e.call(&e.s.function, v)
		}
	}
}

func (e *chatEdit) content(v blockView) {
	switch {
	case v.gone && e.s.content.kind != 0:
		e.replace(e.s.content.Span, []byte("null"))
	case v.edited && e.s.content.kind != 0:
		e.replace(e.s.content.Span, quote(v.text))
	case v.edited:
		e.set = append(e.set, field{"content", quote(v.text)})
	}
}

func (e *chatEdit) part(i int, v blockView) {
	if v.gone {
		return
	}
	p := &e.s.parts[i]
	item := rawjson.Item{Index: i}
	if v.edited && p.words.Len() > 0 {
		e.replace(p.words, quote(v.text))
	} else if v.edited {
		item.New = inPlaceOf(e.raw, e.s.parts[i:i+1], "text", v.text)
	}
	e.parts = append(e.parts, item)
}

// call replaces a call's arguments. Calls of unknown types are not changed.
func (e *chatEdit) call(c *chatCall, v blockView) {
	switch {
	case !v.edited || c.args.kind == 0:
	case c.free:
		e.replace(c.args.Span, freeInput(v.text))
	case c.args.kind == '"':
		e.replace(c.args.Span, quote(string(shortened(v.text))))
	default:
		e.replace(c.args.Span, shortened(v.text))
	}
}
