package anthropic

import (
	"encoding/json"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// A client sets a cache breakpoint at the end of its prompt, and the provider
// searches for cached prefixes only about twenty blocks before each
// breakpoint. If furl changes the middle of a prompt, the cached prefixes
// after the change are lost, and those before it may be too far away: the
// whole prompt would be written to the cache again. So furl sets a breakpoint
// on the last changed block too, equal to the client's next one, if the
// client has a breakpoint after it and one unused. It stays there until the
// next reduction, like all other changes.

// newestChange returns where a view was changed last: the index of the first
// shown message with the newest reduction, and the id of the call or result
// there, "" for a marker. at is -1 if nothing was changed.
func newestChange(list []furl.Shown) (at int, id string) {
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

// breakpointFor returns the cache breakpoint for a block before the message
// from: equal to the client's next one, so that those of one hour precede
// those of five minutes. It returns nil if the client has none, or none
// unused.
func breakpointFor(req *protocol.Request, from int) (mark []byte) {
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

// withBreakpoint returns an encoded message with a cache breakpoint on the
// call or result with that id, or on its first text if id is "". It returns
// the message unchanged if that block cannot have one or already has one.
func withBreakpoint(raw json.RawMessage, id string, mark []byte) json.RawMessage {
	if mark == nil {
		return raw
	}
	m, err := codec{}.DecodeMessage(raw)
	if err != nil {
		return raw // cannot happen: it was just encoded
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

// CacheRequest implements wire.API. Breakpoints of one hour precede those of five
// minutes, so if the last one is of an hour, all are. The automatic one is the last. It
// is read only if it can make a difference, which saves reading the other fields of most
// requests.
func (codec) CacheRequest(req *protocol.Request) protocol.CacheRequest {
	out := protocol.CacheRequest{HourTail: -1}
	for i := len(req.Messages) - 1; i >= 0; i-- {
		m := &req.Messages[i]
		for j := len(m.Blocks) - 1; j >= 0; j-- {
			if !m.Blocks[j].CacheMark {
				continue
			}
			life := lifetimeOf(markOf(m, &m.Blocks[j]))
			if out.Lifetime == 0 {
				out.Lifetime = life
			}
			if life >= time.Hour {
				if auto := autoLifetime(req); auto > 0 {
					out.Lifetime = auto
				}
				if out.Lifetime < life {
					out.HourTail = len(req.Messages) - 1 - i
				}
				return out
			}
		}
	}
	if out.Lifetime > 0 {
		return out
	}
	if out.Lifetime = autoLifetime(req); out.Lifetime > 0 {
		return out
	}
	out.Uncached = true
	for _, name := range []string{"system", "tools"} {
		if mark := lastMark(rawjson.Field(req.Fields(), name)); present(mark) {
			out.Lifetime = lifetimeOf(mark)
			break
		}
	}
	return out
}

// autoLifetime returns the lifetime of the automatic breakpoint, 0 if there is none.
func autoLifetime(req *protocol.Request) time.Duration {
	if auto := (rawjson.Value{Raw: rawjson.Field(req.Fields(), "cache_control")}); present(auto) {
		return lifetimeOf(auto)
	}
	return 0
}

// markOf returns the breakpoint of a block, or the last one in its parts.
func markOf(m *furl.Message, b *furl.Block) rawjson.Value {
	f := rawFields(m, b)
	if present(f.cacheControl) {
		return f.cacheControl
	}
	return lastMark(f.content.Raw)
}

// lastMark returns the last breakpoint in a list of blocks or tools.
func lastMark(list []byte) (mark rawjson.Value) {
	r := rawjson.NewReader(list)
	if r.Kind() != '[' {
		return mark
	}
	for range r.Elements() {
		if f := (rawjson.Value{Raw: rawjson.Field(r.Raw(), "cache_control")}); present(f) {
			mark = f
		}
	}
	return mark
}

func lifetimeOf(mark rawjson.Value) time.Duration {
	if lifetime(mark) == "1h" {
		return time.Hour
	}
	return 5 * time.Minute
}
