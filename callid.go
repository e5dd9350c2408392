package furl

import (
	"fmt"
	"slices"
	"strings"
)

// In Gemini's format the ids of calls identify nothing: servers leave them out, and clients
// make them up, drop or replace them. So results belong to calls by id where both have the
// same one, else by name and order. When a message is appended, its calls get ids that no
// other call of the session has, and its results those of their calls. Then everything else
// can rely on ids, as in other formats.

// hasCallIDs reports whether the ids of calls in messages of a format identify them.
func (f Format) hasCallIDs() bool { return f != FormatGemini }

// givenID is the start of ids that Append gives to calls.
const givenID = "furl_call_"

// IsGivenID reports whether the id of a call is one that Log.Append gave it, which no
// provider and no client knows.
func IsGivenID(id string) bool { return strings.HasPrefix(id, givenID) }

// withCallIDs returns the message that would be record seq with the ids of its calls and
// results; m itself if they stay the same.
func (s *State) withCallIDs(m *Message, seq Seq) *Message {
	if m.Format.hasCallIDs() {
		return m
	}
	out := m
	set := func(i int, id string) {
		if out.Blocks[i].ID == id {
			return
		}
		if out == m {
			copied := *m
			copied.Blocks = slices.Clone(m.Blocks)
			out = &copied
		}
		out.Blocks[i].ID = id
	}
	open := s.openClientCalls()
	for i := range m.Blocks {
		switch b := &m.Blocks[i]; b.Kind {
		case KindCall:
			if b.ID == "" || IsGivenID(b.ID) || s.hasCall(b.ID) || hasCall(out.Blocks[:i], b.ID) {
				set(i, fmt.Sprintf("%s%d_%d", givenID, seq, i))
			}
		case KindResult:
			at := slices.IndexFunc(open, func(c *Block) bool { return b.ID != "" && c.ID == b.ID })
			if at < 0 {
				at = slices.IndexFunc(open, func(c *Block) bool { return c.Name == b.Name })
			}
			if at >= 0 {
				set(i, open[at].ID)
				open = slices.Delete(open, at, at+1)
			}
		}
	}
	return out
}

// openClientCalls returns the calls that wait for a result of the client, in order.
func (s *State) openClientCalls() (open []*Block) {
	for _, o := range s.open {
		if o.hosted {
			continue
		}
		m := s.msgs[o.msg]
		for b := range m.Blocks {
			if blk := &m.Blocks[b]; blk.Kind == KindCall && blk.ID == o.id && !slices.Contains(open, blk) {
				open = append(open, blk)
				break
			}
		}
	}
	return open
}

// hasCall reports whether a call on the path has the id.
func (s *State) hasCall(id string) bool {
	return slices.ContainsFunc(s.msgs, func(m *Message) bool { return hasCall(m.Blocks, id) })
}

func hasCall(blocks []Block, id string) bool {
	return slices.ContainsFunc(blocks, func(b Block) bool { return b.Kind == KindCall && b.ID == id })
}
