package session_test

import (
	"fmt"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// Two processes send the requests of a session in turns. Each updates its sizes by what the
// other has recorded, and gets the same sizes as a new process that reads the whole log.
func TestSizesOfRequestsOfAnotherProcess(t *testing.T) {
	const model = "claude-sonnet-4-5"
	o := session.Options{Window: 4_000}
	first, store := inMemory(t, o)
	processes := []*session.Sessions{first, reopen(t, store, o)}
	s := first.CreateAs("s", storage.Meta{})
	request := func(s *session.Session, n int) *policy.Fit {
		t.Helper()
		msgs := steps(t, n+1, 1_200)
		appendAll(t, s, msgs[2*n:]) // a call and its result are new
		fit, err := s.Fit(t.Context(), model)
		if err != nil {
			t.Fatal(err)
		}
		return fit
	}
	reduced := false
	for n := range 12 {
		if n > 0 {
			var err error
			if s, err = processes[n%2].Open(t.Context(), "s"); err != nil {
				t.Fatal(err)
			}
		}
		fit := request(s, n)
		reduced = reduced || len(fit.Plan.Reductions) > 0
		if n > 0 {
			other, err := reopen(t, store, o).Open(t.Context(), "s")
			if err != nil {
				t.Fatal(err)
			}
			want, err := other.Fit(t.Context(), model)
			if err != nil {
				t.Fatal(err)
			}
			again, err := s.Fit(t.Context(), model)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := again.Budget, want.Budget; got.Size != want.Size || got.Scale != want.Scale || got.PerItem != want.PerItem || got.Fixed != want.Fixed || !got.LastUse.Equal(want.LastUse) {
				t.Errorf("request %d: size %d, scale %g, per item %g, fixed %d; a new process has %d, %g, %g, %d", n, got.Size, got.Scale, got.PerItem, got.Fixed, want.Size, want.Scale, want.PerItem, want.Fixed)
			}
			fit = again
		}
		reply := &protocol.Reply{ID: fmt.Sprint("reply ", n), Usage: furl.Usage{Input: 300 + 5*fit.Budget.Size/4, Output: 10}}
		if err := s.Observe(t.Context(), fit, reply); err != nil {
			t.Fatal(err)
		}
	}
	if !reduced {
		t.Error("no request was reduced")
	}
}
