package furl

import (
	"slices"
	"testing"
	"time"
)

func (s *stack[T]) all() []T {
	var list []T
	for i := range s.len() {
		list = append(list, *s.at(i))
	}
	return list
}

// Forks share what they began with and nothing else.
func TestStack(t *testing.T) {
	var s stack[int]
	s.push(1, 2)
	a := s.fork()
	a.push(3)
	b := a.fork()
	b.push(4)
	c := a.fork()
	c.push(5, 6)
	s.push(7)
	d := c.fork()
	d.own()
	*d.at(0) = 8
	d.push(9)
	for name, tt := range map[string]struct{ got, want []int }{
		"trunk":         {s.all(), []int{1, 2, 7}},
		"fork":          {a.all(), []int{1, 2, 3}},
		"fork of fork":  {b.all(), []int{1, 2, 3, 4}},
		"another":       {c.all(), []int{1, 2, 3, 5, 6}},
		"on its own":    {d.all(), []int{8, 2, 3, 5, 6, 9}},
		"a new trunk's": {new(stack[int]).all(), nil},
	} {
		if !slices.Equal(tt.got, tt.want) {
			t.Errorf("%s: %v, want %v", name, tt.got, tt.want)
		}
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
