package anthropic

import (
	"encoding/json"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// A client marks the end of its prompt for the cache, and the provider looks
// for what it holds of it at most some twenty blocks further ahead. Where furl
// shows something else in the middle, nothing behind that is held any more, and
// what stands before it may be out of reach: all of it would be written again.
// So the block that was changed last bears a mark too, the same as the
// client's next one, if the client marks anything behind it and has a mark
// left. It stays there until another reduction, as all else does.

// cut is where a view was changed last: the shown message in which its newest
// reduction is seen first, and the call or result there, "" in a mark of
// furl's own. at is -1 if there is no such place.
func cut(list []furl.Shown) (at int, id string) {
	at = -1
	var newest furl.Seq
	for i := range list {
		if s := &list[i]; s.Index < 0 && s.By > newest {
			newest, at, id = s.By, i, ""
		}
		for j := range list[i].Blocks {
			sb := &list[i].Blocks[j]
			if list[i].Index < 0 || sb.By <= newest {
				continue
			}
			if newest, at, id = sb.By, i, sb.Block.ID; id == "" {
				at = -1
			}
		}
	}
	return at, id
}

// markFor is the cache mark that a block before the message from may bear: that
// of the client's next one, so that those of an hour stay before those of five
// minutes. It is nil if there is none, or none to spare.
func markFor(req *furl.Request, from int) (mark []byte) {
	n := 0
	for i := range req.Preamble {
		if req.Preamble[i].CacheMark {
			n++
		}
	}
	for i := range req.Messages {
		m := &req.Messages[i]
		for j := range m.Blocks {
			if !m.Blocks[j].CacheMark {
				continue
			}
			n++
			if f := rawFields(m, &m.Blocks[j]).cacheControl; mark == nil && i >= from && present(f) {
				mark = f.Raw
			}
		}
	}
	if auto := (rawjson.Value{Raw: rawjson.Field(req.Fields(), "cache_control")}); present(auto) {
		n++
		if mark == nil {
			mark = auto.Raw
		}
	}
	if n >= defaultMaxMarks {
		return nil
	}
	return mark
}

// withMark gives an encoded message with a cache mark on the call or result of
// that id, or on its first text if it has none; as it is if that cannot bear
// one or has one.
func withMark(raw json.RawMessage, id string, mark []byte) json.RawMessage {
	if mark == nil {
		return raw
	}
	m, err := codec{}.DecodeMessage(raw)
	if err != nil {
		return raw // cannot be: it was encoded just now
	}
	for i := range m.Blocks {
		b := &m.Blocks[i]
		switch {
		case b.Start >= b.End || b.ID != id || b.Kind == furl.KindThinking:
			continue
		case id == "" && (b.Kind != furl.KindText || b.Text == ""):
			continue
		case b.CacheMark:
			return raw
		}
		block := rawjson.Span{Start: b.Start, End: b.End}
		marked := rawjson.Splice(block.Of(raw), rawjson.SetField(block.Of(raw), "cache_control", mark))
		return rawjson.Splice(raw, []rawjson.Edit{{Span: block, New: marked}})
	}
	return raw
}
