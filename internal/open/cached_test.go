package open

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
)

// The open sessions stay in the order of their use, their memory is the sum of their sizes,
// and the least recently used ones are evicted first, except those in use.
func TestOpenSessionsAreCounted(t *testing.T) {
	const keep, keepBytes = 12, 1000
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		a := New(inmem.New(), "", &Options{Keep: keep, KeepBytes: keepBytes, MaxMemory: 4 * keepBytes})
		var order []furl.SessionID // least recently used first
		var sessions []*Session    // also those that were evicted
		held := make(map[*Session]func())
		for step := range 400 {
			s := a.get(furl.SessionKey{Session: furl.SessionID(fmt.Sprint("s", r.IntN(20)))})
			order = append(slices.DeleteFunc(order, func(id furl.SessionID) bool { return id == s.ID() }), s.ID())
			sessions = append(sessions, s)
			some := sessions[r.IntN(len(sessions))]
			switch r.IntN(6) {
			case 0, 1:
				_ = a.reserve(some, r.Int64N(keepBytes/2))
			case 2:
				some.resize(r.Int64N(keepBytes / 4))
			case 3:
				a.Evict(some)
			case 4:
				if release := held[s]; release != nil {
					release()
					delete(held, s)
				} else if len(held) < 3 {
					held[s] = s.Acquire()
				}
			case 5:
				if r.IntN(50) == 0 {
					a.Drop()
				}
			}
			maps.DeleteFunc(held, func(s *Session, _ func()) bool { return !a.isOpen(s) }) // by Evict or Drop
			a.Trim()
			for s := range held {
				if !a.isOpen(s) {
					t.Errorf("session %s is in use and was evicted", s.ID())
				}
			}
			if checkOpen(t, a, order); t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
			if len(a.open) > keep || a.memory > keepBytes && len(a.open) > len(held) {
				t.Fatalf("seed %d, step %d: %d sessions of %d bytes, want at most %d and %d", seed, step, len(a.open), a.memory, keep, keepBytes)
			}
		}
	}
}

// checkOpen compares the open sessions with the order of all uses.
func checkOpen(t *testing.T, a *Sessions, order []furl.SessionID) {
	t.Helper()
	var sum int64
	var got []furl.SessionID
	for c := a.uses.newer; c != &a.uses; c = c.newer {
		got, sum = append(got, c.s.ID()), sum+c.s.size.Load()
		if a.open[c.s.key] != c || c.newer.older != c {
			t.Errorf("session %s is not linked", c.s.ID())
		}
	}
	want := slices.DeleteFunc(slices.Clone(order), func(id furl.SessionID) bool { return a.open[furl.SessionKey{Session: id}] == nil })
	if !slices.Equal(got, want) || len(got) != len(a.open) {
		t.Errorf("open sessions by use %v, want %v", got, want)
	}
	if _, _, _, counted := a.Count(); counted != sum {
		t.Errorf("memory %d, want %d", counted, sum)
	}
}
