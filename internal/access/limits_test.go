package access_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/access"
)

// In any minute a tenant gets at most twice its rate, and over many minutes at most the
// rate and one burst. Retrying after the time in the error succeeds. Tenants do not
// affect each other.
func TestRequestsPerMinute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var u access.Usage
		most := rapid.IntRange(1, 50).Draw(t, "most")
		l := access.Limits{RequestsPerMinute: most}
		begin := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
		now, accepted := begin, 0
		for range 200 {
			now = now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond)
			end, err := u.Begin(now, "a", l)
			if err == nil {
				accepted++
				end()
				end() // has no effect
			} else if e := (*access.LimitError)(nil); !errors.As(err, &e) || e.Retry < time.Second || e.Retry > time.Minute+time.Second {
				t.Fatal(err)
			} else if end, err := u.Begin(now.Add(e.Retry), "a", l); err != nil {
				t.Fatalf("after %s: %v", e.Retry, err)
			} else {
				now = now.Add(e.Retry)
				accepted++
				end()
			}
			if allowed := float64(most)*(1+now.Sub(begin).Minutes()) + 1e-6; float64(accepted) > allowed {
				t.Fatalf("%d accepted in %s, at most %.1f", accepted, now.Sub(begin), allowed)
			}
		}
		if _, err := u.Begin(now, "b", l); err != nil {
			t.Fatalf("another tenant: %v", err)
		}
	})
}

func TestOtherLimits(t *testing.T) {
	var u access.Usage
	now := time.Date(2026, 11, 25, 23, 0, 0, 0, time.UTC)
	set := &access.LimitSet{Default: access.Limits{Concurrent: 1, BytesPerDay: 100}, Tenants: map[furl.Tenant]access.Limits{"big": {Concurrent: 2}}}
	limit := func(err error) string {
		if e := (*access.LimitError)(nil); errors.As(err, &e) {
			return e.Limit + " " + e.Retry.String()
		}
		return ""
	}
	end, err := u.Begin(now, "a", set.Of("a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Begin(now, "a", set.Of("a")); limit(err) != "concurrent 1s" {
		t.Errorf("a second request: %v", err)
	}
	end()
	u.Add(now, "a", 100)
	if _, err := u.Begin(now, "a", set.Of("a")); limit(err) != "bytes_per_day 1h0m0s" {
		t.Errorf("after 100 bytes: %v", err)
	}
	if _, err := u.Begin(now.Add(time.Hour), "a", set.Of("a")); err != nil {
		t.Errorf("the next day: %v", err)
	}
	if got := set.Of("big"); got != (access.Limits{Concurrent: 2, BytesPerDay: 100}) {
		t.Errorf("the limits of a tenant are %+v", got)
	}
	stored, counts := 1, 0
	begin := func(at time.Time) error {
		return u.NewSession(at, "a", access.Limits{Sessions: 3}, func(most int) (int, error) { counts++; return min(stored, most), nil })
	}
	for range 2 {
		if err := begin(now); err != nil {
			t.Error(err)
		}
	}
	if counts != 1 {
		t.Errorf("two sessions beside one, counted %d times", counts)
	}
	stored = 3
	if err := begin(now); limit(err) != "sessions 1m0s" {
		t.Errorf("a fourth session: %v", err)
	}
	for range 100 {
		if err := begin(now.Add(time.Second / 2)); limit(err) != "sessions 1m0s" || counts != 1 {
			t.Fatalf("refused at the limit: %v, counted %d times", err, counts)
		}
	}
	stored = 2 // one was deleted
	if err := begin(now.Add(time.Second)); err != nil {
		t.Errorf("after a deletion: %v", err)
	}
	broken := errors.New("broken")
	if err := new(access.Usage).NewSession(now, "a", access.Limits{Sessions: 1}, func(int) (int, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("a store that fails: %v", err)
	}
}
