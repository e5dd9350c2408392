package furl

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"
)

// logOf appends the bodies one after the other.
func logOf(t *testing.T, bodies ...Body) *Log {
	t.Helper()
	log := NewLog()
	for _, b := range bodies {
		if m, ok := b.(*Message); ok {
			m.Seal()
		}
		if _, err := log.Append(log.Head(), time.Time{}, Client, b); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

func says(role Role, text string) *Message {
	return &Message{Role: role, Blocks: []Block{{Kind: KindText, Text: text, Tokens: 5}}}
}

// calls is an assistant's message with calls, in parallel if there are several.
func calls(ids ...string) *Message {
	m := &Message{Role: RoleAssistant}
	for _, id := range ids {
		m.Blocks = append(m.Blocks, Block{Kind: KindCall, ID: id, Name: "read", Args: []byte("{}"), Tokens: 10})
	}
	return m
}

// results is a message with the results of calls, and words after them if
// there are any.
func results(words string, ids ...string) *Message {
	m := &Message{Role: RoleUser}
	for _, id := range ids {
		m.Blocks = append(m.Blocks, Block{Kind: KindResult, ID: id, Text: "result of " + id, Tokens: 20})
	}
	if words != "" {
		m.Blocks = append(m.Blocks, Block{Kind: KindText, Text: words, Tokens: 5})
	}
	return m
}

func at(msg Seq, block int) Pos { return Pos{Msg: msg, Block: block} }

// between is the span of whole messages of one block each.
func between(first, last Seq) Span { return Span{at(first, 0), at(last, 0)} }

// masking shows "gone" in place of blocks, hiding a mark in place of steps.
func masking(at ...Pos) *Reduction {
	r := &Reduction{Stage: "mask"}
	for _, p := range at {
		r.Items = append(r.Items, Item{Spans: []Span{{p, p}}, Show: In{Text: "gone", Tokens: 1}})
	}
	return r
}

func hiding(spans ...Span) *Reduction {
	return &Reduction{Stage: "truncate", Items: []Item{{Spans: spans, Show: Mark{Messages: []*Message{says(RoleUser, "hidden")}}}}}
}

func TestAppend(t *testing.T) {
	log := logOf(t, says(RoleUser, "one"), calls("a"), results("", "a"), masking(at(3, 0)))
	for _, tt := range []struct {
		name  string
		after Seq
		body  Body
		want  Seq // the record that is there; 0 with an error
		err   error
	}{
		{"a message again", 0, says(RoleUser, "one"), 1, nil},
		{"calls again", 1, calls("a"), 2, nil},
		{"a reduction again", 3, masking(at(3, 0)), 4, nil},
		{"other words in the same place", 0, says(RoleUser, "two"), 0, ErrConflict},
		{"another reduction in the same place", 3, masking(at(2, 0)), 0, ErrConflict},
		{"another kind of body in the same place", 3, says(RoleUser, "two"), 0, ErrConflict},
		{"after what is not there", 99, says(RoleUser, "two"), 0, ErrConflict},
		{"a reduction of what is not on the path", 4, masking(at(9, 0)), 0, ErrNotOnPath},
		{"a lift of what is no reduction", 4, &Restoration{Of: 3}, 0, ErrNotOnPath},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := log.Append(tt.after, time.Time{}, Client, tt.body)
			if r.Seq != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("record %d, %v; want %d, %v", r.Seq, err, tt.want, tt.err)
			}
			if log.Len() != 4 || log.Head() != 4 {
				t.Fatalf("the log has %d records and the head %d, want 4 and 4", log.Len(), log.Head())
			}
		})
	}

	// Words while a call waits are refused, its result is not.
	log = logOf(t, says(RoleUser, "one"), calls("a", "b"), results("", "a"))
	if _, err := log.Append(3, time.Time{}, Client, says(RoleUser, "well?")); !errors.Is(err, ErrOpenCall) {
		t.Errorf("words after an open call: %v, want ErrOpenCall", err)
	}
	if open := fmt.Sprint(log.State().OpenCalls()); open != "[b]" {
		t.Errorf("open calls are %s, want [b]", open)
	}
	if _, err := log.Append(3, time.Time{}, Client, results("well?", "b")); err != nil {
		t.Errorf("the late result: %v", err)
	}
	if n := len(log.State().OpenCalls()); n != 0 {
		t.Errorf("%d calls are open when all are answered", n)
	}
}

// A rewind goes to the record named, or to the step boundary before it.
func TestRewindGoesToAStepBoundary(t *testing.T) {
	thinks := &Message{Role: RoleAssistant, Blocks: []Block{{Kind: KindThinking, Text: "hm"}}}
	for _, tt := range []struct {
		name     string
		path     []Body
		to, want Seq
	}{
		{"the start", []Body{says(RoleUser, "1")}, 0, 0},
		{"words", []Body{says(RoleUser, "1"), says(RoleAssistant, "2"), says(RoleUser, "3")}, 1, 1},
		{"a call", []Body{says(RoleUser, "1"), calls("a"), results("", "a")}, 2, 1},
		{"a result", []Body{says(RoleUser, "1"), calls("a"), results("", "a")}, 3, 3},
		{"between parallel results", []Body{says(RoleUser, "1"), calls("a", "b"), results("", "a"), results("", "b")}, 3, 1},
		{"behind the last of them", []Body{says(RoleUser, "1"), calls("a", "b"), results("", "a"), results("", "b")}, 4, 4},
		{"a result with words behind it", []Body{says(RoleUser, "1"), calls("a"), results("and", "a"), says(RoleAssistant, "4")}, 3, 3},
		{"instructions while a call waits", []Body{says(RoleUser, "1"), calls("a"), says(RoleSystem, "3"), results("", "a")}, 3, 1},
		{"behind the late result", []Body{says(RoleUser, "1"), calls("a"), says(RoleSystem, "3"), results("", "a")}, 4, 4},
		{"a reduction between call and result", []Body{says(RoleUser, "1"), says(RoleAssistant, "2"), says(RoleUser, "3"), calls("a"), hiding(between(2, 2)), results("", "a")}, 5, 3},
		{"the request of a step", []Body{says(RoleUser, "1"), &Exchange{Model: "m"}, calls("a"), results("", "a")}, 3, 2},
		{"thinking that a call follows", []Body{says(RoleUser, "1"), thinks, calls("a"), results("", "a")}, 2, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log := logOf(t, tt.path...)
			before := log.Head()
			if got := log.State().Boundary(tt.to); got != tt.want {
				t.Errorf("of the whole path, the boundary at %d is %d, want %d", tt.to, got, tt.want)
			}
			r, err := log.Rewind(tt.to, time.Time{}, Person)
			if err != nil || r.Parent != tt.want || log.Head() != tt.want {
				t.Fatalf("rewound to %d, head %d, %v; want %d", r.Parent, log.Head(), err, tt.want)
			}
			if h := r.Body.(*Head); h.From != before {
				t.Errorf("the head says it came from %d, want %d", h.From, before)
			}
			if n := len(log.State().OpenCalls()); n != 0 {
				t.Errorf("%d calls are open after the rewind", n)
			}
			// The branch left behind can be gone back to.
			if _, err := log.Rewind(before, time.Time{}, Person); err != nil || log.Head() != before {
				t.Errorf("back to %d: head %d, %v", before, log.Head(), err)
			}
		})
	}
}

// A head refers to the record it continues from.
func TestRewindToAHead(t *testing.T) {
	log := logOf(t, says(RoleUser, "1"), says(RoleAssistant, "2"), says(RoleUser, "3"))
	head, err := log.Rewind(2, time.Time{}, Person)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := log.Rewind(head.Seq, time.Time{}, Person); err != nil || r.Parent != 2 {
		t.Errorf("rewound to %d, %v; want 2", r.Parent, err)
	}
}

func TestWhatIsNotInTheLog(t *testing.T) {
	log := logOf(t, says(RoleUser, "1"))
	for _, seq := range []Seq{2, 99, math.MaxUint64} {
		if _, err := log.Rewind(seq, time.Time{}, Person); !errors.Is(err, ErrNotOnPath) {
			t.Errorf("rewind to %d: %v, want ErrNotOnPath", seq, err)
		}
		if _, err := Fold(log, seq); !errors.Is(err, ErrNotOnPath) {
			t.Errorf("fold to %d: %v, want ErrNotOnPath", seq, err)
		}
		if path := log.Path(seq); path != nil {
			t.Errorf("the path to %d has %d records", seq, len(path))
		}
	}
	if log.Len() != 1 || log.Head() != 1 {
		t.Errorf("the log has %d records and the head %d, want 1 and 1", log.Len(), log.Head())
	}
}

// Load gives back the log that was recorded, and refuses what does not fit.
func TestLogLoad(t *testing.T) {
	log := NewLog()
	at := time.Unix(1, 0)
	for i := range 6 {
		role := RoleUser
		if i%2 == 1 {
			role = RoleAssistant
		}
		if _, err := log.Append(log.Head(), at, Client, TextMessage(role, fmt.Sprint("message ", i))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := log.Rewind(2, at, Person); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(2, at, Client, TextMessage(RoleUser, "another way")); err != nil {
		t.Fatal(err)
	}
	for cut := 0; cut <= log.Len(); cut++ {
		loaded := NewLog()
		if err := loaded.Load(log.Records(0)[:cut]); err != nil {
			t.Fatal(err)
		}
		if err := loaded.Load(log.Records(Seq(cut))); err != nil {
			t.Fatal(err)
		}
		if loaded.Head() != log.Head() || loaded.State().Len() != log.State().Len() {
			t.Errorf("cut at %d: head %d with %d messages, want %d with %d", cut,
				loaded.Head(), loaded.State().Len(), log.Head(), log.State().Len())
		}
		if got, want := loaded.State().Chain(loaded.State().Len()), log.State().Chain(log.State().Len()); got != want {
			t.Errorf("cut at %d: chain %v, want %v", cut, got, want)
		}
	}
	broken := log.Records(0)
	for name, records := range map[string][]Record{
		"a gap":            {broken[0], broken[2]},
		"another's parent": {broken[0], broken[1], {Seq: 3, Parent: 1, Body: broken[2].Body}},
		"a lost reduction": {broken[0], {Seq: 2, Parent: 1, Body: &Restoration{Of: 9}}},
	} {
		l := NewLog()
		if err := l.Load(records); !errors.Is(err, ErrDamaged) || l.Len() != 0 || l.State().Len() != 0 {
			t.Errorf("%s: %v and %d records, want ErrDamaged and none", name, err, l.Len())
		}
	}
}
