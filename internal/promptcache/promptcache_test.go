package promptcache

import (
	"testing"
	"time"

	"github.com/furlhq/furl"
)

var (
	marks = furl.Caching{Explicit: true, MinPrefix: 100, Lifetime: 5 * time.Minute, Lookback: 20, MaxMarks: 4}
	auto  = furl.Caching{MinPrefix: 100, Granule: 50, Lifetime: 5 * time.Minute}
	start = time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)
)

const (
	short = 5 * time.Minute
	long  = time.Hour
)

// prompt makes pieces of 60 tokens from the letters of a string; a "." after
// one is a breakpoint of five minutes, a ":" one of an hour, a "+" continues
// the previous run.
func prompt(s string) []Piece {
	var out []Piece
	for _, c := range s {
		switch last := len(out) - 1; c {
		case '.':
			out[last].Mark = short
		case ':':
			out[last].Mark = long
		case '+':
			out[last].Positions = 0
		default:
			out = append(out, Piece{ID: uint64(c), Tokens: 60, Positions: 1})
		}
	}
	return out
}

type send struct {
	after  time.Duration // since the start
	prompt string
	want   Split
}

func TestCache(t *testing.T) {
	tests := []struct {
		name  string
		rules furl.Caching
		sends []send
	}{
		{"a breakpoint writes, the next request reads", marks, []send{
			{0, "ab.c", Split{Write: 120, Fresh: 60}},
			{time.Second, "ab.cd.", Split{Read: 120, Write: 120}},
			{2 * time.Second, "abcd.", Split{Read: 240}},
		}},
		{"below the minimum nothing is cached", marks, []send{
			{0, "a.", Split{Fresh: 60}},
			{0, "a.", Split{Fresh: 60}},
		}},
		{"without breakpoints nothing is cached", marks, []send{
			{0, "abcd", Split{Fresh: 240}},
			{0, "abcd", Split{Fresh: 240}},
		}},
		{"an entry lives five minutes after its last use", marks, []send{
			{0, "ab.", Split{Write: 120}},
			{5 * time.Minute, "ab.", Split{Read: 120}},
			{10 * time.Minute, "ab.", Split{Read: 120}},
			{15*time.Minute + time.Second, "ab.", Split{Write: 120}},
		}},
		{"the hour is billed apart and lives longer", marks, []send{
			{0, "ab:cd.e", Split{WriteLong: 120, Write: 120, Fresh: 60}},
			{30 * time.Minute, "ab:cd.e", Split{Read: 120, Write: 120, Fresh: 60}},
			{31 * time.Minute, "ab:cd.e", Split{Read: 240, Fresh: 60}},
		}},
		{"only entries at breakpoints are found", marks, []send{
			{0, "abc.", Split{Write: 180}},
			{0, "ab.", Split{Write: 120}},
		}},
		{"the lookback reaches twenty positions", marks, []send{
			{0, "ab.", Split{Write: 120}},
			{0, "abcdefghijklmnopqrstu.", Split{Read: 120, Write: 19 * 60}},
			{0, "ab", Split{Fresh: 120}},
		}},
		{"and no further", marks, []send{
			{0, "ab.", Split{Write: 120}},
			{0, "abcdefghijklmnopqrstuv.", Split{Write: 22 * 60}},
		}},
		{"a run is one position", marks, []send{
			{0, "ab.", Split{Write: 120}},
			{0, "abcd+e+f+ghijklmnopqrstuv.", Split{Read: 120, Write: 20 * 60}},
		}},
		{"an edit loses what follows", marks, []send{
			{0, "ab.cd.", Split{Write: 240}},
			{0, "abXd.", Split{Read: 120, Write: 120}},
		}},
		{"automatic: whole granules of the shared prefix", auto, []send{
			{0, "abc", Split{Write: 180}},
			{0, "abd", Split{Read: 100, Write: 80}},
			{0, "aXY", Split{Write: 180}},
			{6 * time.Minute, "abc", Split{Write: 180}},
		}},
		{"no lifetime, no cache", furl.Caching{}, []send{{0, "abc.", Split{Fresh: 180}}, {0, "abc.", Split{Fresh: 180}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c Cache
			for i, s := range tt.sends {
				pieces := prompt(s.prompt)
				chain := Chain(nil, 1, pieces)
				got := c.Lookup(tt.rules, chain, pieces, start.Add(s.after))
				if got != s.want {
					t.Errorf("request %d: %s is billed %+v, want %+v", i, s.prompt, got, s.want)
				}
				if got.Prompt() != Sum(pieces) {
					t.Errorf("request %d: %+v is not all of %d tokens", i, got, Sum(pieces))
				}
				c.Store(tt.rules, chain, pieces, start.Add(s.after))
			}
		})
	}
}

func TestLookupStoresNothing(t *testing.T) {
	var c Cache
	pieces := prompt("abc.")
	chain := Chain(nil, 1, pieces)
	for range 2 {
		if got := c.Lookup(marks, chain, pieces, start); got.Read != 0 {
			t.Fatalf("read %d tokens that were not written", got.Read)
		}
	}
}

func TestSaltsShareNothing(t *testing.T) {
	var c Cache
	pieces := prompt("abc.")
	c.Store(marks, Chain(nil, 1, pieces), pieces, start)
	if got := c.Lookup(marks, Chain(nil, 2, pieces), pieces, start); got.Read != 0 {
		t.Errorf("another account reads %d tokens", got.Read)
	}
}

func TestGenerationsForgetTheUnused(t *testing.T) {
	g := Generations[int, string]{Size: 3}
	for i := range 100 {
		g.Put(i, "x")
		if _, ok := g.Get(0); !ok {
			t.Fatalf("what is used was forgotten after %d", i)
		}
		if n := len(g.young) + len(g.old); n > 6 {
			t.Fatalf("%d entries are kept", n)
		}
	}
	if _, ok := g.Get(50); ok {
		t.Error("what was not used is kept")
	}
}
