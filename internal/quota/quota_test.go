package quota_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/quota"
)

func header(lines string) http.Header {
	h := make(http.Header)
	for line := range strings.Lines(lines) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			h.Add(name, value)
		}
	}
	return h
}

var now = time.Unix(1764580000, 0).UTC()

// The headers of Anthropic are those in anthropics/claude-code#12829 and #41506, the names
// of Codex's those that codex 0.171 reads.
func TestRead(t *testing.T) {
	for name, tt := range map[string]struct{ header, want string }{
		"Claude subscription": {`
			anthropic-ratelimit-unified-status: allowed_warning
			anthropic-ratelimit-unified-5h-status: allowed
			anthropic-ratelimit-unified-5h-reset: 1764590400
			anthropic-ratelimit-unified-5h-utilization: 0.02
			anthropic-ratelimit-unified-7d-status: allowed_warning
			anthropic-ratelimit-unified-7d-reset: 1764752400
			anthropic-ratelimit-unified-7d-utilization: 0.737
			anthropic-ratelimit-unified-7d-surpassed-threshold: 0.7
			anthropic-ratelimit-unified-representative-claim: five_hour
			anthropic-ratelimit-unified-fallback: available
			anthropic-ratelimit-unified-fallback-percentage: 0.5
			anthropic-ratelimit-unified-overage-status: rejected
			anthropic-ratelimit-unified-overage-disabled-reason: org_level_disabled
			anthropic-ratelimit-unified-reset: 1764590400`,
			`allowed_warning five_hour true rejected org_level_disabled 5h/300 0.02~0.01 allowed 1764590400; 7d/10080 0.737~0.001 allowed_warning 1764752400; `},
		"beyond the plan": {`
			anthropic-ratelimit-unified-status: rejected
			anthropic-ratelimit-unified-5h-utilization: 0
			anthropic-ratelimit-unified-7d_oi-status: rejected
			anthropic-ratelimit-unified-7d_oi-utilization: 1.02`,
			`rejected  false   5h/300 0~0.01  0; 7d_oi/10080 1.02~0.01 rejected 0; `},
		"ChatGPT": {`
			x-codex-primary-used-percent: 61
			x-codex-primary-window-minutes: 300
			x-codex-primary-reset-at: 1764590400
			x-codex-secondary-used-percent: 12.5
			x-codex-secondary-window-minutes: 10080
			x-codex-secondary-reset-after-seconds: 100
			x-codex-bengalfox-primary-used-percent: 97
			x-codex-bengalfox-primary-window-minutes: 90
			x-codex-credits-balance: 3`,
			`  false   bengalfox 90m/90 0.97~0.01  0; 5h/300 0.61~0.01  1764590400; 7d/10080 0.125~0.001  1764580100; `},
		"OpenAI key": {`
			x-ratelimit-limit-requests: 5000
			x-ratelimit-remaining-requests: 4999
			x-ratelimit-reset-requests: 12ms
			x-ratelimit-limit-tokens: 1000000
			x-ratelimit-remaining-tokens: 750000
			x-ratelimit-reset-tokens: 6m0s`,
			`  false   requests/0 0.0002~0.0002  1764580000; tokens/0 0.25~1e-06  1764580360; `},
		"Anthropic key": {`
			anthropic-ratelimit-tokens-limit: 40000
			anthropic-ratelimit-tokens-remaining: 10000
			anthropic-ratelimit-tokens-reset: 2025-12-01T09:07:40Z`,
			`  false   tokens/0 0.75~2.5e-05  1764580060; `},
		"nothing": {"content-type: text/plain", ""},
		"hostile": {`
			anthropic-ratelimit-unified-5h-utilization: NaN
			anthropic-ratelimit-unified-7d-utilization: -1
			x-codex-primary-used-percent: 1e300
			x-codex-../-primary-used-percent: 5
			x-ratelimit-limit-tokens: 0
			x-ratelimit-remaining-tokens: 0`, ""},
	} {
		s := quota.Read(header(tt.header), now)
		got := ""
		if s != nil {
			got = fmt.Sprintf("%s %s %v %s %s ", s.Status, s.Claim, s.Fallback, s.Overage, s.OverageReason)
			for _, w := range s.Windows {
				reset := w.Resets.Unix()
				if w.Resets.IsZero() {
					reset = 0
				}
				got += fmt.Sprintf("%s/%d %.4g~%.2g %s %d; ", w.Name, w.Minutes, w.Used, w.Step, w.Status, reset)
			}
		}
		if got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tt.want)
		}
	}
}

// The change between two responses belongs to the requests between them, by their weights.
func TestShares(t *testing.T) {
	now := now // tests run in any order
	var b quota.Book
	k := quota.Key{Provider: "anthropic", Account: "a"}
	one, two := furl.SessionKey{Session: "one"}, furl.SessionKey{Session: "two"}
	seen := func(used float64, resets time.Time) {
		now = now.Add(time.Minute)
		b.Seen(k, &quota.Snapshot{At: now, Windows: []quota.Window{{Name: "5h", Minutes: 300, Used: used, Step: 0.01, Resets: resets}}})
	}
	share := func(of furl.SessionKey) (float64, string) {
		p := b.Session(of)
		if p == nil {
			return -1, ""
		}
		if r := p.Windows[0].Request; r != nil {
			return p.Windows[0].Share, fmt.Sprintf("%.2f", *r)
		}
		return p.Windows[0].Share, "-"
	}
	is := func(of furl.SessionKey, want float64, request string) {
		t.Helper()
		if got, r := share(of); math.Abs(got-want) > 1e-9 || r != request {
			t.Errorf("%s has used %v, its request %s; want %v and %s", of.Session, got, r, want, request)
		}
	}
	reset := now.Add(3 * time.Hour)
	is(one, -1, "")
	seen(0.10, reset)
	b.Sent(k, one, 1)
	seen(0.13, reset)
	is(one, 0.03, "0.03")
	b.Sent(k, one, 1)
	seen(0.13, reset)
	is(one, 0.03, "0.00") // less than a step
	b.Sent(k, one, 1)
	b.Sent(k, two, 3)
	seen(0.17, reset.Add(time.Second))
	is(one, 0.04, "-")
	is(two, 0.03, "-")
	seen(0.30, reset) // used elsewhere
	is(one, 0.04, "-")
	b.Sent(k, one, 1)
	seen(0.01, reset.Add(5*time.Hour)) // a new window
	is(one, 0, "-")
	if list := b.Accounts(nil, now); len(list) != 1 || list[0].Windows[0].Used != 0.01 {
		t.Errorf("%+v", list)
	}
}

func TestForecast(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	for want, w := range map[string]quota.Window{
		"5h limit 50% used, resets 15:00, at this rate reached at 14:00":               {Name: "5h", Minutes: 300, Used: 0.5, Resets: now.Add(3 * time.Hour)},
		"5h limit 20% used, resets 15:00, at this rate not reached before":             {Name: "5h", Minutes: 300, Used: 0.2, Resets: now.Add(3 * time.Hour)},
		"5h limit 20% used (5% by this session), resets 16:59":                         {Name: "5h", Minutes: 300, Used: 0.2, Share: 0.05, Resets: now.Add(4*time.Hour + 59*time.Minute)},
		"7d limit 90% used, resets Nov 27 12:00, at this rate reached at Nov 26 01:20": {Name: "7d", Minutes: 10080, Used: 0.9, Resets: now.Add(48 * time.Hour)},
		"5h limit 100% used, resets 15:00, reached":                                    {Name: "5h", Minutes: 300, Used: 1, Resets: now.Add(3 * time.Hour)},
		"primary limit 40% used":                                                       {Name: "primary", Used: 0.4},
	} {
		if got := quota.Words(&w, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
