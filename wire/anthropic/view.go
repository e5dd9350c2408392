package anthropic

import (
	"encoding/json"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// EncodeMessages encodes a whole view as the elements of a messages list.
// Recorded messages of this format that are shown as recorded keep their
// bytes.
//
// The provider joins adjacent messages of one role itself. But all results of
// a step must be at the start of the next user message, and other formats
// have one message for each result. So adjacent user messages are joined if a
// result would otherwise follow something else, or if several messages with
// results were built rather than recorded.
func EncodeMessages(v *furl.View) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, 0, len(v.Messages))
	var run userRun
	list, _ := orderInstructions(v.Messages)
	for i := range list {
		s := &list[i]
		raws, err := codec{}.EncodeMessage(*s)
		if err != nil {
			return nil, fmt.Errorf("encode shown message %d: %w", i, err)
		}
		if !joins(s) {
			out = append(run.flush(out), raws...)
			continue
		}
		for _, raw := range raws {
			run.add(s, raw)
		}
	}
	return run.flush(out), nil
}

// joins reports whether a shown message becomes a user message, which may
// have to be joined with its neighbours. Recorded system messages stay
// separate.
func joins(s *furl.Shown) bool {
	if s.Msg.Format == furl.FormatAnthropic && s.Msg.Raw != nil {
		return s.Msg.Role == furl.RoleUser
	}
	return newBuilt(s.Msg.Role, s.Msg.Blocks).role == "user"
}

// userRun is a run of user messages.
type userRun struct {
	raws     []json.RawMessage
	last     int  // the last message with results
	carriers int  // messages with results
	built    bool // one of them was built
	others   bool // other content was added
	late     bool // a result followed other content
}

func (u *userRun) add(s *furl.Shown, raw json.RawMessage) {
	carries := false
	for i := range s.Blocks {
		if s.Blocks[i].Block.Kind == furl.KindResult {
			carries = true
			u.late = u.late || u.others && len(u.raws) > 0
		} else {
			u.others = true
		}
	}
	if carries {
		u.last = len(u.raws)
		u.carriers++
		u.built = u.built || s.Msg.Format != furl.FormatAnthropic || s.Msg.Raw == nil
	}
	u.raws = append(u.raws, raw)
}

// flush ends the run.
func (u *userRun) flush(out []json.RawMessage) []json.RawMessage {
	if u.late || u.built && u.carriers > 1 {
		out = append(out, joinUser(u.raws[:u.last+1]))
		u.raws = u.raws[u.last+1:]
	}
	out = append(out, u.raws...)
	*u = userRun{raws: u.raws[:0]}
	return out
}

// joinUser joins several user messages into one, results first.
func joinUser(raws []json.RawMessage) json.RawMessage {
	b := builder{message: &built{role: "user"}}
	for _, raw := range raws {
		r := rawjson.NewReader(raw)
		var content []byte
		for key := range r.Fields() {
			if string(key) == "content" {
				content = r.Raw()
			}
		}
		r = rawjson.NewReader(content)
		if r.Kind() == '"' {
			if text := r.Raw(); string(text) != `""` {
				b.add(append(append([]byte(`{"type":"text","text":`), text...), '}'), part{}, false)
			}
			continue
		}
		for range r.Elements() {
			elem := r.Raw()
			result := readFields(rawjson.NewReader(elem)).typ == "tool_result"
			b.add(elem, part{result: result}, false)
		}
	}
	return b.done().encode()
}
