package gateway

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
)

func TestRest(t *testing.T) {
	s := newSummaries(SummaryOptions{})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	key := furl.SessionKey{Session: "s"}
	for i, want := range []time.Duration{2, 4, 8, 16, 32, 60, 60} {
		s.backOff(key, now)
		if got := s.backoffs[key].until.Sub(now); got != want*time.Minute {
			t.Errorf("after %d failures it rests for %v", i+1, got)
		}
	}
	for i := range 3 * maxBackoffs {
		s.backOff(furl.SessionKey{Session: furl.SessionID(strings.Repeat("x", i))}, now)
	}
	if len(s.backoffs) > maxBackoffs {
		t.Errorf("%d sessions are remembered", len(s.backoffs))
	}
	for _, tc := range []struct {
		status int
		after  string
		want   time.Duration
	}{
		{200, "9", 0}, {400, "9", 0}, {429, "", 2 * time.Minute}, {429, "5", 2 * time.Minute}, {529, "600", 10 * time.Minute},
		{503, "1000000", time.Hour}, {429, "-1", 2 * time.Minute}, {429, "Wed, 21 Oct 2026 07:28:00 GMT", 2 * time.Minute},
	} {
		resp := &http.Response{StatusCode: tc.status, Header: http.Header{"Retry-After": {tc.after}}}
		if got := retryAfter(resp); got != tc.want {
			t.Errorf("%d %q: %v", tc.status, tc.after, got)
		}
	}
}
