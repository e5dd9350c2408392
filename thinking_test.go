package furl

import "testing"

// reply is an assistant's message that thinks and calls a tool.
func reply(id string) *Message {
	return &Message{Role: RoleAssistant, Blocks: []Block{
		{Kind: KindThinking, Text: "hm", Tokens: 30},
		{Kind: KindCall, ID: id, Name: "read", Args: []byte("{}"), Tokens: 10},
	}}
}

func answer(id string) *Message {
	return &Message{Role: RoleUser, Blocks: []Block{{Kind: KindResult, ID: id, Text: "text", Tokens: 20}}}
}

func words(text string) *Message {
	return &Message{Role: RoleUser, Blocks: []Block{{Kind: KindText, Text: text, Tokens: 5}}}
}

func stateOf(t *testing.T, messages ...*Message) *State {
	t.Helper()
	s := new(State)
	for i, m := range messages {
		m.Seal()
		if err := s.Apply(Record{Seq: Seq(i + 1), Parent: Seq(i), Body: m}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// A provider that keeps only the last thinking does not bill what comes
// before the newest words of the user, so no size counts it.
func TestDroppedThinkingWeighsNothing(t *testing.T) {
	s := stateOf(t, words("one"), reply("a"), answer("a"), words("two"), reply("b"), answer("b"))
	keeps, drops := Model{}, Model{Thinking: Thinking{LastOnly: true}}
	if v := s.View(keeps); v.Tokens != 130 || v.ThinkingFrom != 0 {
		t.Errorf("%d tokens, thinking from %d; want 130 from 0", v.Tokens, v.ThinkingFrom)
	}
	v := s.View(drops)
	// "two" comes right after a result: it may belong to the same turn.
	if v.Tokens != 130 || v.ThinkingFrom != 0 {
		t.Errorf("words behind results: %d tokens, thinking from %d; want 130 from 0", v.Tokens, v.ThinkingFrom)
	}

	done := &Message{Role: RoleAssistant, Blocks: []Block{{Kind: KindText, Text: "done", Tokens: 5}}}
	s = stateOf(t, words("one"), reply("a"), answer("a"), done, words("two"), reply("b"), answer("b"))
	v = s.View(drops)
	if v.Tokens != 105 || v.ThinkingFrom != 4 {
		t.Errorf("%d tokens, thinking from %d; want 105 from 4", v.Tokens, v.ThinkingFrom)
	}
	if u := v.Units[1]; u.Tokens != 30 || u.Items != 2 || len(u.Blocks) != 3 {
		t.Errorf("the first step has %d tokens and %d items in %d blocks; want 30 and 2 in 3", u.Tokens, u.Items, len(u.Blocks))
	}
	if v := s.View(keeps); v.Tokens != 135 {
		t.Errorf("the same state for a model that keeps all: %d tokens, want 135", v.Tokens)
	}
}

// A pin on thinking protects its step, also where the thinking is not shown.
func TestPinnedThinkingThatIsNotShown(t *testing.T) {
	s := stateOf(t, words("one"), reply("a"), answer("a"), words("two"), reply("b"), answer("b"))
	thinking := Pos{Msg: 2}
	for i, body := range []Body{
		&Restoration{Spans: []Span{{First: thinking, Last: thinking}}, Hold: Pin},
		&Reduction{Items: []Item{{Spans: []Span{{First: Pos{Msg: 1}, Last: Pos{Msg: 1}}}, Show: In{Text: "1", Tokens: 1}}}},
	} {
		if err := s.Apply(Record{Seq: Seq(7 + i), Parent: Seq(6 + i), Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	v := s.View(Model{Thinking: Thinking{Binds: true}})
	if u := v.Units[1]; u.Blocks[0].Pos == thinking || u.Hold != Pin || !u.Protected {
		t.Errorf("the step begins with %v, hold %d, protected %v", u.Blocks[0].Pos, u.Hold, u.Protected)
	}
	for _, i := range []int{0, 2} {
		if v.Units[i].Hold != 0 {
			t.Errorf("unit %d has hold %d", i, v.Units[i].Hold)
		}
	}
}

func TestBudgetOf(t *testing.T) {
	for _, tc := range []struct {
		b             Budget
		tokens, items int
		want          int
	}{
		{Budget{}, 100, 3, 100},
		{Budget{Scale: 1.5}, 101, 0, 152},
		{Budget{Scale: 1.5}, -101, 0, -152},
		{Budget{Scale: 2, PerItem: 40}, 100, 3, 320},
		{Budget{PerItem: 0.5}, 0, 1, 1},
	} {
		if got := tc.b.Of(tc.tokens, tc.items); got != tc.want {
			t.Errorf("%+v of %d tokens and %d items: %d, want %d", tc.b, tc.tokens, tc.items, got, tc.want)
		}
	}
}

// What went away with a step is its words and its calls and results; what is
// hidden in place leaves the call and the result.
func TestBudgetAfter(t *testing.T) {
	s := stateOf(t, words("one"), reply("a"), answer("a"), words("two"))
	before := s.View(Model{})
	b := Budget{Size: 1000, Scale: 2, PerItem: 50}

	in := In{Text: "gone", Tokens: 4}
	at := Pos{Msg: 3}
	masked, err := s.With(&Reduction{Stage: "mask", Items: []Item{{Spans: []Span{{at, at}}, Show: in}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.After(before, masked.View(Model{})).Size; got != 1000-2*16 {
		t.Errorf("masked: %d, want %d", got, 1000-2*16)
	}

	mark := Mark{Messages: []*Message{{Role: RoleUser, Blocks: []Block{{Text: "hidden", Tokens: 6}}}}}
	cut, err := s.With(&Reduction{Stage: "truncate", Items: []Item{{Spans: []Span{{Pos{Msg: 2}, at}}, Show: mark}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.After(before, cut.View(Model{})).Size; got != 1000-2*(60-6)-2*50 {
		t.Errorf("truncated: %d, want %d", got, 1000-2*(60-6)-2*50)
	}

	// The provider reported less than what is hidden.
	b.Size = 100
	whole, left := b.Of(before.Tokens, before.Items), b.Of(before.Tokens-54, before.Items-2)
	if got, want := b.After(before, cut.View(Model{})).Size, 100*left/whole; got < want-1 || got > want+1 {
		t.Errorf("truncated with a small report: %d, want %d", got, want)
	}
}
