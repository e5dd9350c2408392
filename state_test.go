package furl

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// conversation is four messages of words around a step with two results.
//
//	1 user, 2 calls a and b, 3 results of both, 4 assistant, 5 user
func conversation(t *testing.T, then ...Body) *Log {
	t.Helper()
	return logOf(t, append([]Body{
		says(RoleUser, "one"), calls("a", "b"), results("", "a", "b"), says(RoleAssistant, "four"), says(RoleUser, "five"),
	}, then...)...)
}

// layersOf writes down who shows each block: "." as recorded, else the record.
func layersOf(s *State) string {
	var out []string
	for i := range s.Len() {
		seq, m := s.Message(i)
		for b := range m.Blocks {
			if by := s.ShownBy(at(seq, b)); by != 0 {
				out = append(out, fmt.Sprint(by))
			} else {
				out = append(out, ".")
			}
		}
	}
	return strings.Join(out, " ")
}

// The newest layer that covers a block shows it; lifting one shows what lies
// beneath; opening shows the originals through all of them.
func TestLayers(t *testing.T) {
	step := Span{at(2, 0), at(3, 1)}
	for _, tt := range []struct {
		name string
		then []Body
		// of blocks 1, 2.0, 2.1, 3.0, 3.1, 4, 5
		want string
		view string // what is shown, in short
	}{
		{"nothing", nil, ". . . . . . .", "1 2 2 3 3 4 5"},
		{"a mask", []Body{masking(at(3, 0))}, ". . . 6 . . .", "1 2 2 3← 3 4 5"},
		{"a mark over a mask", []Body{masking(at(3, 0)), hiding(step)}, ". 7 7 7 7 . .", "1 m 4 5"},
		{"a mask behind a mark", []Body{hiding(Span{at(1, 0), at(3, 1)}), masking(at(3, 1), at(4, 0))}, "6 6 6 6 6 7 .", "m 4← 5"},
		{"a mask that was behind a mark", []Body{hiding(Span{at(1, 0), at(3, 1)}), masking(at(3, 1)), &Restoration{Of: 6}}, ". . . . 7 . .", "1 2 2 3 3← 4 5"},
		{"one mark for two places", []Body{hiding(between(1, 1), between(4, 4))}, "6 . . . . 6 .", "m 2 2 3 3 5"},
		{"nested marks", []Body{hiding(step), hiding(Span{at(1, 0), at(4, 0)})}, "7 7 7 7 7 7 .", "m 5"},
		{"overlapping marks", []Body{hiding(Span{at(1, 0), at(3, 1)}), hiding(Span{at(2, 0), at(4, 0)})}, "6 7 7 7 7 7 .", "m m 5"},
		{"lift the only one", []Body{hiding(step), &Restoration{Of: 6}}, ". . . . . . .", "1 2 2 3 3 4 5"},
		{"lift the upper", []Body{masking(at(3, 0)), hiding(step), &Restoration{Of: 7}}, ". . . 6 . . .", "1 2 2 3← 3 4 5"},
		{"lift the covered", []Body{masking(at(3, 0)), hiding(step), &Restoration{Of: 6}}, ". 7 7 7 7 . .", "1 m 4 5"},
		{"lift both", []Body{masking(at(3, 0)), hiding(step), &Restoration{Of: 6}, &Restoration{Of: 7}}, ". . . . . . .", "1 2 2 3 3 4 5"},
		{"lift twice", []Body{hiding(step), &Restoration{Of: 6}, &Restoration{Of: 6}}, ". . . . . . .", "1 2 2 3 3 4 5"},
		{"open one result under a mark, its step comes", []Body{hiding(Span{at(1, 0), at(4, 0)}), &Restoration{Open: true, Spans: []Span{{at(3, 0), at(3, 0)}}}}, "6 . . . . 6 .", "m 2 2 3 3 5"},
		{"open one result under a mask, only that", []Body{masking(at(3, 0), at(3, 1)), &Restoration{Open: true, Spans: []Span{{at(3, 0), at(3, 0)}}}}, ". . . . 6 . .", "1 2 2 3 3← 4 5"},
		{"lift what was opened since", []Body{hiding(step), &Restoration{Open: true, Spans: []Span{step}}, &Restoration{Of: 6}}, ". . . . . . .", "1 2 2 3 3 4 5"},
		{"hide what was opened", []Body{hiding(step), &Restoration{Open: true, Spans: []Span{step}}, hiding(step)}, ". 8 8 8 8 . .", "1 m 4 5"},
		{"a hold alone shows nothing", []Body{hiding(step), &Restoration{Spans: []Span{step}, Hold: Pin}}, ". 6 6 6 6 . .", "1 m 4 5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := conversation(t, tt.then...).State()
			if got := layersOf(s); got != tt.want {
				t.Errorf("shown by\n%s\nwant\n%s", got, tt.want)
			}
			if got := inShort(s.View(Model{})); got != tt.view {
				t.Errorf("the view is\n%s\nwant\n%s", got, tt.view)
			}
		})
	}
}

// inShort gives the messages a view shows, block by block.
func inShort(v *View) string {
	var out []string
	for i := range v.Messages {
		sh := &v.Messages[i]
		for _, b := range sh.Blocks {
			switch {
			case sh.Index < 0:
				out = append(out, "m")
			case b.By != 0:
				out = append(out, fmt.Sprint(sh.Seq)+"←")
			default:
				out = append(out, fmt.Sprint(sh.Seq))
			}
		}
	}
	return strings.Join(out, " ")
}

func TestCovering(t *testing.T) {
	step := Span{at(2, 0), at(3, 1)}
	s := conversation(t, masking(at(3, 0), at(3, 1)), masking(at(3, 0)), hiding(step)).State()
	for seq, want := range map[Seq][]Seq{6: {8}, 7: {8}, 8: nil, 3: nil, 99: nil} {
		if got := s.Covering(seq); !slices.Equal(got, want) {
			t.Errorf("reduction %d is covered by %v, want %v", seq, got, want)
		}
	}
	s = conversation(t, masking(at(3, 0), at(3, 1)), masking(at(3, 0))).State()
	if got := s.Covering(6); !slices.Equal(got, []Seq{7}) {
		t.Errorf("a mask half covered is covered by %v, want 7", got)
	}
}

func TestReductionsOnThePath(t *testing.T) {
	log := conversation(t, masking(at(3, 0)), hiding(between(4, 4)), &Restoration{Of: 6})
	var seqs []Seq
	for red := range log.State().Reductions() {
		seqs = append(seqs, red.Seq)
	}
	if !slices.Equal(seqs, []Seq{6, 7}) {
		t.Errorf("reductions %v, want 6 and 7", seqs)
	}
	for seq, want := range map[Seq][2]bool{6: {true, true}, 7: {false, true}, 8: {}, 3: {}} {
		if red, ok := log.State().Reduction(seq); red.Undone != want[0] || ok != want[1] {
			t.Errorf("reduction %d: undone %v, on the path %v; want %v", seq, red.Undone, ok, want)
		}
	}
	for range log.State().Reductions() {
		break // may end early
	}
	if _, err := log.Rewind(5, time.Time{}, Person); err != nil {
		t.Fatal(err)
	}
	if _, ok := log.State().Reduction(7); ok {
		t.Error("a reduction that was rewound past is on the path")
	}
}

// What may not be covered is refused, and changes nothing.
func TestRefusedReductions(t *testing.T) {
	mark := Mark{Messages: []*Message{says(RoleUser, "hidden")}}
	in := In{Text: "x", Tokens: 1}
	item := func(show Show, spans ...Span) *Reduction {
		return &Reduction{Stage: "s", Items: []Item{{Spans: spans, Show: show}}}
	}
	for _, tt := range []struct {
		name string
		red  Body
		want string
		is   error
	}{
		{"no span", item(in), "item 0 covers nothing", nil},
		{"a message that is not there", item(in, between(77, 77)), "message 77", ErrNotOnPath},
		{"a block that is not there", item(in, Span{at(1, 1), at(1, 1)}), "message 1 has no block 1", ErrNotOnPath},
		{"backwards", item(mark, between(5, 4)), "ends before it begins", nil},
		{"a mark on half a step", item(mark, between(2, 2)), "splits the step", nil},
		{"a mark that ends in a step", item(mark, between(1, 2)), "splits the step", nil},
		{"a mark without words", item(Mark{}, between(1, 1)), "without words", nil},
		{"words that are gone", item(Gone{}, between(1, 1)), "cannot replace", nil},
		{"no show", item(nil, between(1, 1)), "unknown show", nil},
		{"two items for one block", masking(at(3, 0), at(3, 0)), "same block", nil},
		{"nothing restored", &Restoration{}, "neither a reduction nor blocks", nil},
		{"a hold on what is not there", &Restoration{Hold: Pin, Spans: []Span{between(77, 77)}}, "message 77", ErrNotOnPath},
		{"a head", &Head{}, "head is not part of a path", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log := conversation(t, masking(at(3, 1)))
			before := log.State().View(Model{}).Prefix()
			_, err := log.Append(log.Head(), time.Time{}, Furl, tt.red)
			if err == nil || !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if log.Len() != 6 || layersOf(log.State()) != ". . . . 6 . ." || log.State().View(Model{}).Prefix() != before {
				t.Error("what was refused changed something")
			}
		})
	}
	// While a call waits, no mark may cover it or what is after it.
	log := logOf(t, says(RoleUser, "1"), calls("a"))
	if _, err := log.Append(2, time.Time{}, Furl, hiding(between(1, 2))); !errors.Is(err, ErrOpenCall) {
		t.Errorf("a mark over an open call: %v, want ErrOpenCall", err)
	}
}

// What is restored is kept, a pin is stronger, and a release ends both.
// A step whose first message was hidden and which another message continued is
// hidden part by part: each of the two may get a mark, the whole may as well.
func TestMarkInAStepThatWasContinued(t *testing.T) {
	for _, span := range []Span{between(2, 2), between(4, 5), between(2, 5)} {
		log := logOf(t, says(RoleUser, "1"), says(RoleAssistant, "2"), hiding(between(2, 2)), calls("a"), results("", "a"))
		if _, err := log.Append(log.Head(), time.Time{}, Furl, hiding(span)); err != nil {
			t.Errorf("a mark over %v: %v", span, err)
		}
	}
}

func TestHolds(t *testing.T) {
	step := Span{at(2, 0), at(3, 1)}
	hold := func(h Hold, sp Span) Body { return &Restoration{Spans: []Span{sp}, Hold: h} }
	for _, tt := range []struct {
		name string
		then []Body
		want []Hold // of the units: words, step, step, words
	}{
		{"nothing", nil, []Hold{0, 0, 0, 0}},
		{"keep", []Body{hold(Keep, between(1, 1))}, []Hold{Keep, 0, 0, 0}},
		{"one block holds its unit", []Body{hold(Pin, Span{at(3, 1), at(3, 1)})}, []Hold{0, Pin, 0, 0}},
		{"a lift keeps", []Body{hiding(step), &Restoration{Of: 6}}, []Hold{0, Keep, 0, 0}},
		{"an opening keeps", []Body{hiding(step), &Restoration{Open: true, Spans: []Span{step}}}, []Hold{0, Keep, 0, 0}},
		{"a lift that pins", []Body{hiding(step), &Restoration{Of: 6, Hold: Pin}}, []Hold{0, Pin, 0, 0}},
		{"a lift that keeps nothing", []Body{hiding(step), &Restoration{Of: 6, Hold: Release}}, []Hold{0, 0, 0, 0}},
		{"a pin outlives a lift", []Body{hold(Pin, step), hiding(step), &Restoration{Of: 7}}, []Hold{0, Pin, 0, 0}},
		{"keep said of what is pinned", []Body{hold(Pin, step), hold(Keep, step)}, []Hold{0, Keep, 0, 0}},
		{"pin what is kept", []Body{hold(Keep, step), hold(Pin, step)}, []Hold{0, Pin, 0, 0}},
		{"release a pin", []Body{hold(Pin, step), hold(Release, step)}, []Hold{0, 0, 0, 0}},
		{"release a part", []Body{hold(Pin, between(1, 5)), hold(Release, between(4, 4))}, []Hold{Pin, Pin, 0, Pin}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []Hold
			v := conversation(t, tt.then...).State().View(Model{})
			for i := range v.Units {
				got = append(got, v.Units[i].Hold)
				if p := v.Units[i].Protected; p != (got[i] == Pin || v.Units[i].Newest) {
					t.Errorf("unit %d is protected: %v", i, p)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("holds %v, want %v", got, tt.want)
			}
		})
	}
}

// A view is made once per state and model, is not changed by what comes later,
// and a plan tried out on the side leaves it alone.
func TestViewsStay(t *testing.T) {
	log := conversation(t)
	s := log.State()
	v := s.View(Model{})
	if s.View(Model{}) != v {
		t.Error("the same view was made twice")
	}
	if s.View(Model{Thinking: Thinking{LastOnly: true}}) == v {
		t.Error("models that treat thinking differently share a view")
	}
	v = s.View(Model{})
	side, err := s.With(hiding(Span{at(2, 0), at(3, 1)}))
	if err != nil {
		t.Fatal(err)
	}
	if got := inShort(side.View(Model{})); got != "1 m 4 5" {
		t.Errorf("on the side: %s", got)
	}
	if s.View(Model{}) != v || inShort(v) != "1 2 2 3 3 4 5" {
		t.Error("trying a reduction out changed the view")
	}
	if _, err := log.Append(5, time.Time{}, Furl, masking(at(3, 0))); err != nil {
		t.Fatal(err)
	}
	if got := inShort(s.View(Model{})); got != "1 2 2 3← 3 4 5" {
		t.Errorf("after an append: %s", got)
	}
	if got := inShort(v); got != "1 2 2 3 3 4 5" {
		t.Errorf("an older view became %s", got)
	}
}

// Words after results in one message are a unit of their own.
func TestUnitsOfAMixedMessage(t *testing.T) {
	s := logOf(t, says(RoleUser, "1"), calls("a"), results("and now?", "a"), calls("b"), results("", "b")).State()
	v := s.View(Model{})
	var got []string
	for i := range v.Units {
		u := &v.Units[i]
		got = append(got, fmt.Sprintf("%d:%d-%d/%d %v", u.Kind, u.First, u.Last, u.Messages, v.Spans(*u)))
	}
	want := []string{
		"1:0-0/1 [{{1 0} {1 0}}]",
		"2:1-2/2 [{{2 0} {3 0}}]",
		"1:2-2/0 [{{3 1} {3 1}}]", // no message of its own
		"2:3-4/2 [{{4 0} {5 0}}]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("units\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !v.Units[2].Newest || !v.Units[3].Newest || v.Units[0].Newest || v.Units[1].Newest {
		t.Error("the newest words and the newest step are not those marked")
	}
	if got := v.Spans(v.Units[:2]...); !slices.Equal(got, []Span{{at(1, 0), at(3, 0)}}) {
		t.Errorf("the first two cover %v", got)
	}
}

// A record may have no chain: it was made by hand, or nothing before it and of
// it counts in one, as thinking does not.
func TestApplyWithoutChain(t *testing.T) {
	log := NewLog()
	thinks := &Message{Role: RoleAssistant, Blocks: []Block{{Kind: KindThinking, Text: "hm"}}}
	for _, m := range []*Message{thinks, TextMessage(RoleUser, "go on")} {
		if _, err := log.Append(log.Head(), time.Time{}, Client, m); err != nil {
			t.Fatal(err)
		}
	}
	s := new(State)
	for _, r := range log.Records(0) {
		r.Chain = Digest{}
		if err := s.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := s.Chain(2), log.State().Chain(2); got != want || got.IsZero() {
		t.Errorf("the chain is %v, want %v", got, want)
	}
}

// Two plans for one state do not get in each other's way.
func TestWithIsIndependent(t *testing.T) {
	log := NewLog()
	for _, text := range []string{"one", "two", "three"} {
		m := TextMessage(RoleUser, text)
		if _, err := log.Append(log.Head(), time.Time{}, Client, m); err != nil {
			t.Fatal(err)
		}
	}
	in := func(i int, text string) *Reduction {
		at := Pos{Msg: Seq(i)}
		return &Reduction{Stage: "mask", Items: []Item{{Spans: []Span{{First: at, Last: at}}, Show: In{Text: text, Tokens: 1}}}}
	}
	with := func(s *State, red *Reduction) *State {
		next, err := s.With(red)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	s := log.State()
	a := with(s, in(1, "a"))
	b := with(with(a, in(2, "b")), in(3, "b"))
	c := with(with(a, in(3, "c")), in(2, "c"))
	for _, tt := range []struct {
		s    *State
		want [3]string
	}{
		{s, [3]string{"one", "two", "three"}},
		{a, [3]string{"a", "two", "three"}},
		{b, [3]string{"a", "b", "b"}},
		{c, [3]string{"a", "c", "c"}},
	} {
		v := tt.s.View(Model{})
		for i := range v.Messages {
			if got := v.Messages[i].Blocks[0].Words(); got != tt.want[i] {
				t.Errorf("message %d shows %q, want %q", i+1, got, tt.want[i])
			}
		}
	}
	lifted, err := a.with(Record{Seq: a.Head() + 1, Parent: a.Head(), Body: &Restoration{Of: a.Head()}})
	if err != nil {
		t.Fatal(err)
	}
	if got := lifted.View(Model{}).Messages[0].Blocks[0].Words(); got != "one" {
		t.Errorf("lifted, it shows %q", got)
	}
	if got := a.View(Model{}).Messages[0].Blocks[0].Words(); got != "a" {
		t.Errorf("lifting a copy changed the state: %q", got)
	}
}

func TestEffect(t *testing.T) {
	log := NewLog()
	add := func(body Body) {
		t.Helper()
		if m, ok := body.(*Message); ok {
			m.Blocks[0].Tokens = 10
		}
		if _, err := log.Append(log.Head(), time.Unix(int64(log.Len()), 0), Client, body); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		add(TextMessage(RoleUser, "go"))
		add(&Message{Role: RoleAssistant, Blocks: []Block{{Kind: KindCall, ID: "a", Name: "read", Args: []byte(`{}`)}}})
		add(&Message{Role: RoleTool, Blocks: []Block{{Kind: KindResult, ID: "a", Text: "héllo"}}})
		add(TextMessage(RoleAssistant, "done"))
	}
	truncation := func(from, to Seq) *Reduction {
		mark := Mark{Messages: []*Message{TextMessage(RoleUser, "hidden")}}
		return &Reduction{Stage: "truncate", Items: []Item{{Spans: []Span{{Pos{Msg: from}, Pos{Msg: to}}}, Show: mark}}}
	}
	e, err := log.State().Effect(truncation(2, 4))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(e.Messages, []Seq{2, 3, 4}) || e.Tokens != 30 || e.Blocks != 0 || !e.From.Equal(time.Unix(1, 0)) || !e.To.Equal(time.Unix(3, 0)) {
		t.Errorf("effect %+v", e)
	}
	add(truncation(2, 4))
	if e, err = log.State().Effect(truncation(2, 5)); err != nil || !slices.Equal(e.Messages, []Seq{5}) || e.Tokens != 10 {
		t.Errorf("what is hidden already counts again: %+v, %v", e, err)
	}
	// A mask over a clip counts by what the clip showed.
	shows := func(text string) *Reduction {
		return &Reduction{Stage: "mask", Items: []Item{{Spans: []Span{{Pos{Msg: 7}, Pos{Msg: 7}}}, Show: In{Text: text, Tokens: len(text)}}}}
	}
	for _, tt := range []struct {
		text string
		want Effect
	}{
		{"héll", Effect{Blocks: 1, Chars: 1, Tokens: 10}},
		{"h", Effect{Blocks: 1, Chars: 3, Tokens: 5}},
		{"h", Effect{}},
	} {
		if e, err = log.State().Effect(shows(tt.text)); err != nil || !reflect.DeepEqual(e, tt.want) {
			t.Errorf("effect of %q: %+v, %v; want %+v", tt.text, e, err, tt.want)
		}
		add(shows(tt.text))
	}
	if _, err := log.State().Effect(truncation(3, 3)); err == nil {
		t.Error("a mark may split a step")
	}
}

// forks counts how often a draft continued a memo, and after how many messages.
type forks struct{ depth, messages int }

func TestMemo(t *testing.T) {
	log := NewLog()
	add := func(log *Log) {
		t.Helper()
		m := TextMessage(RoleUser, "text")
		if _, err := log.Append(log.Head(), time.Time{}, Client, m); err != nil {
			t.Fatal(err)
		}
	}
	created := 0
	memo := func(log *Log) *forks {
		return Memo(log.State(), func(original *forks, shared int) *forks {
			if original == nil {
				created++
				return new(forks)
			}
			return &forks{original.depth + 1, shared}
		})
	}
	add(log)
	draft := log.Draft()
	add(draft)
	first := memo(draft) // before the log has one
	if *first != (forks{1, 1}) {
		t.Errorf("the memo of a draft is %+v", *first)
	}
	if memo(draft) != first {
		t.Error("a draft has a new memo each time")
	}
	second := draft.Draft()
	if got := memo(second); *got != (forks{2, 2}) {
		t.Errorf("the memo of a draft's draft is %+v", *got)
	}
	own := memo(log)
	if own.depth != 0 || created != 1 {
		t.Errorf("the memo of the log is %+v, created %d times", *own, created)
	}
	add(log)
	if memo(log) != own {
		t.Error("a message replaces the memo")
	}
}

// The zero value is the state of the empty path, whatever is called first.
func TestZeroState(t *testing.T) {
	for name, call := range map[string]func(s *State) bool{
		"View":     func(s *State) bool { v := s.View(Model{}); return len(v.Messages)+len(v.Units)+v.Steps == 0 },
		"With":     func(s *State) bool { next, err := s.With(&Exchange{Model: "m"}); return err == nil && next.Head() == 1 },
		"Effect":   func(s *State) bool { _, err := s.Effect(hiding(between(1, 2))); return errors.Is(err, ErrNotOnPath) },
		"Boundary": func(s *State) bool { return s.Boundary(3) == 3 },
		"Size":     func(s *State) bool { return s.Size() == 0 && s.Chain(0) == Digest{} && len(s.OpenCalls()) == 0 },
		"Memo":     func(s *State) bool { return Memo(s, func(*int, int) *int { return new(2) }) != nil },
	} {
		if !call(new(State)) {
			t.Errorf("%s: not that of an empty path", name)
		}
	}
}
