package session_test

import (
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// A client's cache entries of one hour are planned and billed as such: half an hour
// later the cache has not expired, and a write costs twice the input price.
func TestHourCache(t *testing.T) {
	const model = "claude-opus-4-6"
	start := time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name     string
		usage    furl.Usage    // reported for the first request
		lifetime time.Duration // that both requests asked for, 0: unknown
		hour     bool
	}{
		{"five minutes, reported", furl.Usage{CacheWrite: 20_000}, 0, false},
		{"an hour, reported", furl.Usage{CacheWrite1h: 20_000}, 0, true},
		{"the instructions an hour, the rest five minutes", furl.Usage{CacheWrite: 5000, CacheWrite1h: 15_000}, 0, false},
		{"an hour, requested", furl.Usage{CacheWrite: 20_000}, time.Hour, true},
		{"five minutes, requested", furl.Usage{CacheWrite1h: 20_000}, 5 * time.Minute, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := start
			all, err := session.New(inmem.New(), &session.Options{Policy: "none", Now: func() time.Time { return now }})
			if err != nil {
				t.Fatal(err)
			}
			s := all.Create(storage.Meta{})
			request := func(u furl.Usage) *policy.Fit {
				t.Helper()
				var fit *policy.Fit
				d, err := s.Internal().Prepare(t.Context(), open.Preparation{
					Prompt: func(*open.Change) open.Prompt {
						return open.Prompt{Model: model, Cache: protocol.CacheRequest{Lifetime: tt.lifetime, HourTail: -1}}
					},
					Encode: func(_ *open.Change, f *policy.Fit) error { fit = f; return nil },
				})
				if err == nil {
					err = d.Commit(t.Context(), open.Committed)
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Observe(t.Context(), fit, &protocol.Reply{Format: furl.FormatAnthropic, Usage: u}); err != nil {
					t.Fatal(err)
				}
				return fit
			}
			msgs := steps(t, 6, 4000)
			appendAll(t, s, msgs[:7])
			request(tt.usage)
			appendAll(t, s, msgs[7:])
			now = start.Add(30 * time.Minute)
			fit := request(furl.Usage{CacheRead: 20_000, CacheWrite: 1000})
			life, want := fit.Budget.Model.Caching.Lifetime, 5*time.Minute
			m := s.Model(model)
			write, read := m.Prices.CacheWrite, m.Prices.CacheRead
			if tt.hour {
				want, write = time.Hour, 2*m.Prices.Input
			}
			if life != want {
				t.Errorf("entries live %v, want %v", life, want)
			}
			if got, want := fit.Account.Cost, (20_000*read+1000*write)/1e6; !price.Known(m.Prices) || got < 0.999*want || got > 1.001*want {
				t.Errorf("cost $%.5f, want $%.5f", got, want)
			}
		})
	}
}

// A client's breakpoints say which messages have entries, and for how long.
func TestCachedMessages(t *testing.T) {
	all, err := session.New(inmem.New(), &session.Options{Policy: "none"})
	if err != nil {
		t.Fatal(err)
	}
	s := all.Create(storage.Meta{})
	appendAll(t, s, steps(t, 3, 400))
	budget := func(c protocol.CacheRequest) (b furl.Budget) {
		t.Helper()
		_, err := s.Internal().Prepare(t.Context(), open.Preparation{
			Prompt: func(*open.Change) open.Prompt {
				return open.Prompt{Model: "claude-opus-4-6", Cache: c}
			},
			Encode: func(_ *open.Change, f *policy.Fit) error { b = f.Budget; return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	five := 5 * time.Minute
	st := s.View("claude-opus-4-6").State
	third, _ := st.Message(2)
	n := st.Len()
	for _, tt := range []struct {
		name     string
		cache    protocol.CacheRequest
		longTo   furl.Seq
		uncached bool
	}{
		{"unknown", protocol.CacheRequest{}, 0, false},
		{"five minutes", protocol.CacheRequest{Lifetime: five, HourTail: -1}, 0, false},
		{"an hour", protocol.CacheRequest{Lifetime: time.Hour, HourTail: -1}, 0, false},
		{"an hour up to the third message", protocol.CacheRequest{Lifetime: five, HourTail: n - 3}, third, false},
		{"no breakpoint", protocol.CacheRequest{HourTail: -1, Uncached: true}, 0, true},
	} {
		if b := budget(tt.cache); b.LongTo != tt.longTo || b.Uncached != tt.uncached {
			t.Errorf("%s: an hour up to record %d, uncached %v; want %d and %v", tt.name, b.LongTo, b.Uncached, tt.longTo, tt.uncached)
		}
	}
}
