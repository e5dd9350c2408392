package spending_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/spending"
	"github.com/furlhq/furl/storage"
)

// known is a session as a test knows it.
type known struct {
	meta     storage.Meta
	requests int
}

// Whatever is told or read, in any order and more than once, the sums are those of the
// ledgers.
func TestSumsAreThoseOfTheLedgers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := inmem.New()
		defer store.Close()
		now := time.Now().UTC()
		limits := access.Limits{DollarsPerDay: 1, DollarsPerProjectDay: 1, DollarsPerSession: 1, TokensPerSession: 1}
		var b spending.Book
		reads := 0 // the store has the real clock, and readings overlap by a minute
		sessions := make([]known, rapid.IntRange(1, 5).Draw(t, "sessions"))
		key := func(i int) furl.SessionKey { return furl.SessionKey{Session: furl.SessionID(fmt.Sprint("s", i))} }
		for i := range sessions {
			m := &sessions[i].meta
			m.Hint, m.Project = fmt.Sprint("h", i), rapid.SampledFrom([]string{"", "/a", "/b"}).Draw(t, "project")
			if i > 0 && rapid.Bool().Draw(t, "sub-agent") {
				m.Parent = "h0"
			}
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			i := rapid.IntRange(0, len(sessions)-1).Draw(t, "session")
			s := &sessions[i]
			old := s.meta.Clone()
			is := s.meta.Clone()
			if is.Ledger == nil {
				is.Ledger = &storage.Ledger{}
			}
			at := now.AddDate(0, 0, -rapid.IntRange(0, 1).Draw(t, "days"))
			is.Ledger.Add(at.Format(time.DateOnly), "m", storage.Savings{Requests: 1, Tokens: rapid.IntRange(0, 9).Draw(t, "tokens"), Cost: rapid.Float64Range(0, 1).Draw(t, "cost")})
			batch := storage.Batch{Meta: &is, MetaWas: &old}
			if s.requests == 0 {
				batch = storage.Batch{Meta: &is, Records: []furl.Record{{Seq: 1, By: furl.Client, Body: &furl.Head{}}}}
			}
			if err := store.Append(t.Context(), key(i), batch); err != nil {
				t.Fatal(err)
			}
			s.meta = is
			s.requests++
			switch rapid.IntRange(0, 2).Draw(t, "told") {
			case 0:
				b.Note(key(i), &is, now)
			case 1:
				b.Note(key(i), &is, now)
				b.Note(key(i), &old, now) // late
			}
			if reads < 4 && rapid.Bool().Draw(t, "read") {
				reads++
				now = now.Add(10 * time.Second)
				if err := b.Read(t.Context(), store, "", now); err != nil {
					t.Fatal(err)
				}
			}
		}
		now = now.Add(10 * time.Second)
		if err := b.Read(t.Context(), store, "", now); err != nil {
			t.Fatal(err)
		}
		for i := range sessions {
			var day, project, dollars, tokens float64
			of := sessions[i].meta
			for _, s := range sessions {
				if s.meta.Ledger == nil {
					continue
				}
				for _, d := range s.meta.Ledger.Days {
					if d.Day == now.Format(time.DateOnly) {
						day += d.Cost
						if s.meta.Project == of.Project {
							project += d.Cost
						}
					}
				}
				root := func(m storage.Meta) string {
					if m.Parent != "" {
						return m.Parent
					}
					return m.Hint
				}
				if root(s.meta) == root(of) {
					dollars += s.meta.Ledger.Total().Cost
					tokens += float64(s.meta.Ledger.Total().Tokens)
				}
			}
			want := map[string]float64{spending.DollarsPerDay: day, spending.DollarsPerSession: dollars, spending.TokensPerSession: tokens}
			if of.Project != "" {
				want[spending.DollarsPerProjectDay] = project
			}
			uses := b.Uses(&limits, key(i), &of, now)
			if len(uses) != len(want) {
				t.Fatalf("%d uses, want %d", len(uses), len(want))
			}
			for _, u := range uses {
				if math.Abs(u.Used-want[u.Limit]) > 1e-9 {
					t.Errorf("%s of session %d is %v, want %v", u.Limit, i, u.Used, want[u.Limit])
				}
			}
		}
	})
}

func TestWords(t *testing.T) {
	now := time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC)
	u := spending.Use{Limit: spending.DollarsPerProjectDay, Most: 5, Used: 4.99, Project: "/srv/boats"}
	if got, want := u.String(), "$4.99 of $5.00 used today in /srv/boats (dollars_per_project_day)"; got != want || u.Reached() || !u.Near() {
		t.Errorf("%q, reached %v", got, u.Reached())
	}
	if got := u.Refusal(now); !strings.Contains(got, "Continue after 2027-01-01 00:00 UTC") {
		t.Error(got)
	}
	u = spending.Use{Limit: spending.TokensPerSession, Most: 2e6, Used: 2e6, Session: "s"}
	if got, want := u.Refusal(now), "furl: spending limit reached: 2,000,000 used in this session, the limit is 2,000,000 tokens. The request was not sent. Start a new session, or raise gateway.limits.tokens_per_session in furl's configuration."; got != want {
		t.Error(got)
	}
}

// A warning is given once a day for each limit and subject.
func TestWarn(t *testing.T) {
	var b spending.Book
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	u := spending.Use{Limit: spending.DollarsPerDay, Most: 10, Used: 7.9}
	for _, step := range []struct {
		used float64
		at   time.Time
		want bool
	}{{7.9, now, false}, {8, now, true}, {9, now, false}, {8.5, now.AddDate(0, 0, 1), true}} {
		if u.Used = step.used; b.Warn(u, step.at) != step.want {
			t.Errorf("%+v", step)
		}
	}
}
