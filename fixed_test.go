package furl

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/furlhq/furl/internal/dev/racetest"
)

// appender appends records to a log.
func appender(t *testing.T, log *Log) func(by Actor, body Body) Seq {
	return func(by Actor, body Body) Seq {
		t.Helper()
		r, err := log.Append(log.Head(), time.Time{}, by, body)
		if err != nil {
			t.Fatal(err)
		}
		return r.Seq
	}
}

// A reduction goes around what furl does not understand, unless the client, the provider
// or the recording of another agent says so: a compaction drops what it replaces.
func TestReductionsGoAroundFixedUnits(t *testing.T) {
	for by := Client; by <= Import; by++ {
		log := NewLog()
		add := appender(t, log)
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

// The pinned units are kept while messages that do not change them are added.
func TestPinnedUnitsAreKept(t *testing.T) {
	racetest.FewerChecks(t, 30)
	rapid.Check(t, func(rt *rapid.T) {
		log := NewLog()
		for range rapid.IntRange(1, 30).Draw(rt, "messages") {
			m := &Message{Role: rapid.SampledFrom([]Role{RoleUser, RoleAssistant, RoleAssistant, RoleTool, RoleSystem, "hologram"}).Draw(rt, "role")}
			for range rapid.IntRange(0, 3).Draw(rt, "blocks") {
				b := Block{
					Kind: rapid.SampledFrom([]Kind{KindText, KindText, KindCall, KindResult, KindThinking}).Draw(rt, "kind"),
					ID:   rapid.SampledFrom([]string{"", "a", "b", "c", "d"}).Draw(rt, "id"),
				}
				if rapid.IntRange(0, 7).Draw(rt, "fixed") == 0 {
					b.Kind, b.Name, b.Fixed = KindOpaque, "hologram", true
				}
				if m.Role == RoleAssistant && b.ID != "" {
					b.Half = rapid.SampledFrom([]Half{0, HalfCall, HalfAnswer}).Draw(rt, "half")
				}
				m.Blocks = append(m.Blocks, b)
			}
			if _, err := log.Append(log.Head(), time.Time{}, Client, m); err != nil {
				continue // a user's text while a call is open
			}
			s := log.State()
			fresh := *s
			fresh.pinnedIDs = nil
			if got, want := s.pinnedUnits(), fresh.pinnedUnits(); !slices.Equal(got, want) {
				rt.Fatalf("after message %d: %v, want %v", len(s.msgs), got, want)
			}
		}
	})
}

// Thinking that the provider has refused leaves a pinned unit too.
func TestThinkingLeavesFixedUnits(t *testing.T) {
	log := NewLog()
	add := appender(t, log)
	add(Client, TextMessage(RoleUser, "go"))
	step := add(Upstream, &Message{Role: RoleAssistant, Blocks: []Block{
		{Kind: KindThinking, Text: "hm"}, {Kind: KindOpaque, Name: "hologram", Fixed: true},
	}})
	thinking := Pos{Msg: step}
	red := add(Furl, &Reduction{Stage: StageRefusedThinking, Items: []Item{{Spans: []Span{{First: thinking, Last: thinking}}, Show: Gone{}}}})
	if got := log.State().ShownBy(thinking); got != red {
		t.Errorf("the thinking is shown by %d, want %d", got, red)
	}
	if got := log.State().ShownBy(Pos{Msg: step, Block: 1}); got != 0 {
		t.Errorf("the fixed block is shown by %d", got)
	}
}
