package furl

import (
	"slices"
	"testing"
	"time"
)

// What a tool says in answer to something opaque belongs to the step before
// it: it is not taken for words of the user.
func TestAnswersToOpaqueCallsStayInTheStep(t *testing.T) {
	message := func(role Role, b Block) *Message { return &Message{Role: role, Blocks: []Block{b}} }
	path := []*Message{
		message(RoleUser, Block{Kind: KindText, Text: "find it"}),
		message(RoleAssistant, Block{Kind: KindCall, ID: "c1", Name: "f", Args: []byte(`{}`)}),
		message(RoleAssistant, Block{Kind: KindOpaque, Name: "tool_search_call", ID: "c2"}),
		message(RoleTool, Block{Kind: KindResult, ID: "c1", Text: "one"}),
		message(RoleTool, Block{Kind: KindOpaque, Name: "tool_search_output", ID: "c2"}),
		message(RoleAssistant, Block{Kind: KindText, Text: "found"}),
	}
	log := NewLog()
	for _, m := range path {
		m.Seal()
		if _, err := log.Append(log.Head(), time.Time{}, Client, m); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Fold(log, log.Head())
	if err != nil {
		t.Fatal(err)
	}
	var kinds []UnitKind
	var last []int
	for _, u := range s.View(Model{}).Units {
		kinds, last = append(kinds, u.Kind), append(last, u.Last)
	}
	if len(kinds) != 3 || kinds[0] != UnitUser || kinds[1] != UnitStep || kinds[2] != UnitStep || last[1] != 4 {
		t.Errorf("units of kinds %v that end at %v, want words, a step that ends at 4, and a step", kinds, last)
	}
}

// A message of the user that is a tool's output belongs to the step before it,
// its words after the output do not, and the digests are those of plain text.
func TestObservations(t *testing.T) {
	text := func(s string, observed bool) Block { return Block{Kind: KindText, Text: s, Observation: observed} }
	build := func(observed bool) (*State, *Log) {
		log := NewLog()
		for _, m := range []*Message{
			{Role: RoleUser, Blocks: []Block{text("fix it", false)}},
			{Role: RoleAssistant, Blocks: []Block{text("ls", false)}},
			{Role: RoleUser, Blocks: []Block{text("a.go", observed)}},
			{Role: RoleAssistant, Blocks: []Block{text("cat a.go", false)}},
			{Role: RoleUser, Blocks: []Block{text("package a", observed), text("and hurry", false)}},
			{Role: RoleAssistant, Blocks: []Block{text("done", false)}},
		} {
			m.Seal()
			if _, err := log.Append(log.Head(), time.Time{}, Client, m); err != nil {
				t.Fatal(err)
			}
		}
		return log.State(), log
	}
	s, log := build(true)
	plain, _ := build(false)
	if s.Chain(s.Len()) != plain.Chain(plain.Len()) {
		t.Error("an observation changes the chain of digests: a client's history would not be matched")
	}
	var kinds []UnitKind
	var steps []int
	for _, u := range s.View(Model{}).Units {
		kinds, steps = append(kinds, u.Kind), append(steps, u.Step)
	}
	if !slices.Equal(kinds, []UnitKind{UnitUser, UnitStep, UnitStep, UnitUser, UnitStep}) || !slices.Equal(steps, []int{0, 1, 2, 0, 3}) {
		t.Errorf("units of kinds %v in steps %v", kinds, steps)
	}
	// A marker cannot separate an observation from its command.
	mark := Mark{Messages: []*Message{TextMessage(RoleUser, "[hidden]")}}
	split := &Reduction{Stage: "t", Items: []Item{{Spans: []Span{{First: Pos{Msg: 2}, Last: Pos{Msg: 2}}}, Show: mark}}}
	if _, err := log.Append(log.Head(), time.Time{}, Furl, split); err == nil {
		t.Error("a marker over the command alone was accepted")
	}
}
