package furl

import (
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
