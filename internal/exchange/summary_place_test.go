package exchange_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
)

// C10: a summary that waits is recorded where no request comes for it, so that
// the end of the process loses none.
func TestC10SummaryIsPlaced(t *testing.T) {
	wait := func(d time.Duration) func(*testing.T, *session.Session) {
		return func(*testing.T, *session.Session) { time.Sleep(d) }
	}
	for _, tc := range []struct {
		name     string
		before   func(t *testing.T, s *session.Session)
		underWay bool // the answer to another request
		ending   bool
		placed   bool
	}{
		{"the cache still has the prompt", wait(4 * time.Minute), false, false, false},
		{"the cache has nothing of it any more", wait(6 * time.Minute), false, false, true},
		{"the process ends", wait(0), false, true, true},
		{"a reply is under way", wait(6 * time.Minute), true, true, false},
		{"it is of another branch", func(t *testing.T, s *session.Session) {
			if _, err := s.Rewind(t.Context(), 3); err != nil {
				t.Fatal(err)
			}
		}, false, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := session.Options{Policy: "compaction", Window: 4000, Now: time.Now}
				all, store := open(t, o)
				c := newClient(t, all, "a")
				for c.last == nil || c.last.Session.SummaryStage(c.last.Fit) == nil {
					c.step()
				}
				s, fit := c.last.Session, c.last.Fit
				if tc.underWay {
					_, x := c.begin()
					defer x.Drop()
				}
				if ready, err := s.PrepareSummary(t.Context(), fit, &policy.Compact{Summarizer: writer{}}); err != nil || !ready {
					t.Fatalf("no summary is ready: %v", err)
				}
				tc.before(t, s)
				n, err := all.RecordSummaries(t.Context(), tc.ending)
				if err != nil || n == 1 != tc.placed || all.Stats().ReadySummaries == 1 == tc.placed {
					t.Fatalf("%d were recorded, %v", n, err)
				}
				checked(t, s)
				if !tc.placed {
					return
				}
				c.all = reopen(t, store, o)
				x := c.step()
				if !strings.Contains(string(x.Body), "They read files.") || x.Session.ID() != s.ID() {
					t.Errorf("after a restart the summary is not shown: %.500s", x.Body)
				}
				if n := all.Stats().LateSummaries; n != 0 {
					t.Errorf("%d came too late", n)
				}
			})
		})
	}
}

// A session in which a summary waits is not let go of for a while, however
// little room there is.
func TestC10SummaryKeepsItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, _ := open(t, session.Options{Policy: "compaction", Window: 4000, Now: time.Now, Keep: 1})
		c := newClient(t, all, "a")
		for c.last == nil || c.last.Session.SummaryStage(c.last.Fit) == nil {
			c.step()
		}
		s := c.last.Session
		if _, err := s.PrepareSummary(t.Context(), c.last.Fit, &policy.Compact{Summarizer: writer{}}); err != nil {
			t.Fatal(err)
		}
		crowd := func(name string) bool {
			t.Helper()
			other := newClient(t, all, name)
			other.add(furl.RoleUser, text("somebody else "+name))
			other.step()
			again, err := all.Open(t.Context(), s.ID())
			if err != nil {
				t.Fatal(err)
			}
			return again == s
		}
		time.Sleep(30 * time.Minute)
		if !crowd("b") {
			t.Error("the session was let go of with the summary")
		}
		time.Sleep(2 * time.Hour)
		if crowd("c") {
			t.Error("the session stays for ever")
		}
	})
}
