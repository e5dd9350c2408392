package furl

import (
	"testing"
	"time"
)

// A reduction goes around what furl does not understand, unless the client, the provider
// or the recording of another agent says so: a compaction drops what it replaces.
func TestReductionsGoAroundFixedUnits(t *testing.T) {
	for by := Client; by <= Import; by++ {
		log := NewLog()
		add := func(by Actor, body Body) Seq {
			r, err := log.Append(log.Head(), time.Time{}, by, body)
			if err != nil {
				t.Fatal(err)
			}
			return r.Seq
		}
		first := add(Client, &Message{Role: RoleUser, Blocks: []Block{{Kind: KindText, Text: "go"}}})
		fixed := add(Client, &Message{Role: RoleUser, Blocks: []Block{{Kind: KindOpaque, Name: "hologram", Fixed: true}}})
		last := add(Client, &Message{Role: RoleUser, Blocks: []Block{{Kind: KindText, Text: "go on"}}})
		span := []Span{{First: Pos{Msg: first}, Last: Pos{Msg: last}}}
		red := add(by, &Reduction{Stage: "x", Items: []Item{{Spans: span, Show: Mark{Messages: []*Message{TextMessage(RoleUser, "hidden")}}}}})
		want := red
		if by == Furl || by == Person {
			want = 0
		}
		s := log.State()
		if got := s.ShownBy(Pos{Msg: fixed}); got != want || s.ShownBy(Pos{Msg: first}) != red || s.ShownBy(Pos{Msg: last}) != red {
			t.Errorf("by %v: the fixed message is shown by %d, want %d", by, got, want)
		}
	}
}
