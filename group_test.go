package furl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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

// hosted builds a path from messages in a short form: "u" is a message of the
// user, "r" results of the client, "a" a reply. The blocks follow: "t" a text,
// "c1" a call, "c1<p" a call by the program p, "r1" a result, "+p" a call that
// the provider runs, "-p" its answer.
func hosted(t *testing.T, messages ...string) *Log {
	t.Helper()
	log := NewLog()
	for _, short := range messages {
		fields := strings.Fields(short)
		m := &Message{Role: RoleUser}
		if fields[0] == "a" {
			m.Role = RoleAssistant
		}
		for _, f := range fields[1:] {
			b := Block{Kind: KindText, Text: "words"}
			switch id, caller, _ := strings.Cut(f[1:], "<"); f[0] {
			case 'c':
				b = Block{Kind: KindCall, ID: id, Caller: caller, Name: "f", Args: []byte(`{}`)}
			case 'r':
				b = Block{Kind: KindResult, ID: id, Text: "found"}
			case '+':
				b = Block{Kind: KindOpaque, Half: HalfCall, ID: id, Name: "server_tool_use"}
			case '-':
				b = Block{Kind: KindOpaque, Half: HalfAnswer, ID: id, Name: "x_tool_result"}
			}
			m.Blocks = append(m.Blocks, b)
		}
		m.Seal()
		if _, err := log.Append(log.Head(), time.Time{}, Client, m); err != nil {
			t.Fatalf("%s: %v", short, err)
		}
	}
	return log
}

// A call that the provider runs and its answer are in one unit, whatever is
// between. A call that is given up does not keep what follows it in its step.
func TestHostedPairs(t *testing.T) {
	for _, test := range []struct {
		name     string
		messages []string
		want     string // the units: kind, first and last message, blocks; "!" if open
		awaits   bool
		boundary string // the boundary for each message
	}{
		{"answered in the next reply", []string{"u t", "a t +p c1", "u r1", "a -p t c2", "u r2", "a t"},
			"user 0-0 1, step 1-3 5, step 3-4 3, step 5-5 1", false, "1 1 1 1 5 6"},
		{"waiting", []string{"u t", "a t +p c1", "u r1"}, "user 0-0 1, step! 1-2 4", true, "1 1 1"},
		{"one in each reply", []string{"u t", "a +p c1", "u r1", "a -p t +q c2", "u r2", "a -q t"},
			"user 0-0 1, step 1-3 4, step 3-5 5, step 5-5 1", false, "1 1 1 1 1 6"},
		{"a program over rounds", []string{"u t", "a +p c1<p", "u r1", "a c2<p", "u r2", "a -p t", "u t"},
			"user 0-0 1, step 1-5 6, step 5-5 1, user 6-6 1", false, "1 1 1 1 1 6 7"},
		{"a program that goes on", []string{"u t", "a +p c1<p", "u r1", "a c2<p", "u r2", "a c3<p", "u r3"},
			"user 0-0 1, step! 1-6 7", true, "1 1 1 1 1 1 1"},
		{"two, of which one waits longer", []string{"u t", "a +p +q c1<q", "u r1", "a -p c2<q", "u r2", "a -q t"},
			"user 0-0 1, step 1-5 8, step 5-5 1", false, "1 1 1 1 1 6"},
		{"paused", []string{"u t", "a +p", "a -p t"}, "user 0-0 1, step 1-2 2, step 2-2 1", false, "1 1 3"},
		{"in one reply", []string{"u t", "a +p -p t", "u t"}, "user 0-0 1, step 1-1 3, user 2-2 1", false, "1 2 3"},
		{"given up by words", []string{"u t", "a +p c1", "u r1", "u t", "a c2", "u r2", "a t"},
			"user 0-0 1, step 1-2 3, user 3-3 1, step 4-5 2, step 6-6 1", false, "1 1 3 4 4 6 7"},
		{"given up by a reply that has nothing of it", []string{"u t", "a +p c1", "u r1", "a c2", "u r2", "a c3", "u r3"},
			"user 0-0 1, step 1-4 5, step 5-6 2", false, "1 1 3 1 5 5 7"},
		{"an answer to nothing", []string{"u t", "a -p t", "u t"}, "user 0-0 1, step 1-1 2, user 2-2 1", false, "1 2 3"},
	} {
		s := hosted(t, test.messages...).State()
		var units, cuts []string
		for _, u := range s.View(Model{}).Units {
			kind := [...]string{"system", "user", "step", "mark"}[u.Kind]
			if u.Open {
				kind += "!"
			}
			units = append(units, fmt.Sprintf("%s %d-%d %d", kind, u.First, u.Last, len(u.Blocks)))
		}
		for i := range s.Len() {
			cuts = append(cuts, fmt.Sprint(s.Boundary(s.seqs[i])))
		}
		if got := strings.Join(units, ", "); got != test.want || s.AwaitsProvider() != test.awaits {
			t.Errorf("%s: units %s, awaits the provider: %v; want %s, %v", test.name, got, s.AwaitsProvider(), test.want, test.awaits)
		}
		if got := strings.Join(cuts, " "); got != test.boundary {
			t.Errorf("%s: boundaries %s, want %s", test.name, got, test.boundary)
		}
	}
}

// No marker ends between a call that the provider runs and its answer, and none
// covers a call that waits. A client that repeats its request continues where the
// answer is missing, a person before the step.
func TestHostedPairsStayWhole(t *testing.T) {
	mark := Mark{Messages: []*Message{TextMessage(RoleUser, "[hidden]")}}
	hide := func(log *Log, first, last Pos) error {
		_, err := log.Append(log.Head(), time.Time{}, Furl, &Reduction{Stage: "t", Items: []Item{{Spans: []Span{{First: first, Last: last}}, Show: mark}}})
		return err
	}
	log := hosted(t, "u t", "a +p c1", "u r1", "a -p t c2", "u r2")
	if err := hide(log, Pos{Msg: 2}, Pos{Msg: 3}); err == nil {
		t.Error("a marker separates a call from its answer")
	}
	if err := hide(log, Pos{Msg: 4, Block: 1}, Pos{Msg: 5}); err != nil {
		t.Errorf("a marker over the rest of a reply that begins with an answer: %v", err)
	}
	if err := hide(log, Pos{Msg: 2}, Pos{Msg: 4}); err != nil {
		t.Errorf("a marker over a call and its answer: %v", err)
	}
	waits := hosted(t, "u t", "a +p c1", "u r1")
	if err := hide(waits, Pos{Msg: 2}, Pos{Msg: 3}); !errors.Is(err, ErrOpenCall) {
		t.Errorf("a marker over a call that waits: %v", err)
	}
	for _, by := range []Actor{Client, Person} {
		log := hosted(t, "u t", "a +p c1", "u r1", "a -p t")
		want := Seq(1)
		if by == Client {
			want = 3
		}
		if r, err := log.Rewind(3, time.Time{}, by); err != nil || r.Parent != want {
			t.Errorf("%v rewinds to %d, %v; want %d", by, r.Parent, err, want)
		}
	}
}
