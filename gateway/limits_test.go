package gateway_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/storage"
)

// A tenant beyond a limit gets 429 in the provider's shape, with the time to wait, and
// nothing of its request is sent or recorded. Other tenants are not affected.
func TestLimitsPerTenant(t *testing.T) {
	ann, annKey := key(t, "ann", "", access.Client, time.Time{})
	bob, bobKey := key(t, "bob", "", access.Client, time.Time{})
	var mu sync.Mutex
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	ann.Created, bob.Created = now, now
	fixture := func(l access.Limits) *accessed {
		set := &gateway.LimitSet{Default: l, Tenants: map[furl.Tenant]access.Limits{"bob": {RequestsPerMinute: 1000, BytesPerDay: 1 << 40, Sessions: 1000}}}
		return newAccessed(t, &gateway.Options{Keys: access.NewKeys([]access.Key{ann, bob}), TenantSecret: []byte("0123456789abcdef"), Limits: set, Now: func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		}})
	}
	question := func(n int) string { return strings.Replace(question, "sails", "sails "+strconv.Itoa(n), 1) }
	for name, l := range map[string]access.Limits{
		"requests_per_minute": {RequestsPerMinute: 2}, "bytes_per_day": {BytesPerDay: 200}, "sessions": {Sessions: 2},
	} {
		a := fixture(l)
		code, text, n := 200, "", 0
		for ; n < 5 && code == 200; n++ {
			code, text = a.do(t, "POST", "/v1/messages", question(n), "X-Furl-Key", annKey)
		}
		if code != 429 || !strings.Contains(text, name) || !strings.Contains(text, `"rate_limit_error"`) {
			t.Errorf("%s: %d %s after %d requests", name, code, text, n)
		}
		if len(a.seen) != n-1 {
			t.Errorf("%s: the provider got %d of %d requests", name, len(a.seen), n)
		}
		stored, id := 0, ""
		for info, err := range a.sessions.For("ann").List(t.Context(), storage.SessionQuery{}) {
			if err != nil {
				t.Fatal(err)
			}
			stored++
			id = string(info.Session)
		}
		if stored != n-1 {
			t.Errorf("%s: %d sessions after %d requests", name, stored, n)
		}
		if code, text := a.do(t, "POST", "/v1/messages", question(0), "X-Furl-Key", bobKey); code != 200 {
			t.Errorf("%s: another tenant gets %d %s", name, code, text)
		}
		if _, text := a.do(t, "GET", "/furl/v1/status", "", "X-Furl-Key", annKey); !strings.Contains(text, `"limits":{"`+name) {
			t.Errorf("%s: the status is %s", name, text)
		}
		mu.Lock()
		now = now.Add(24 * time.Hour)
		mu.Unlock()
		if code, _ := a.do(t, "POST", "/v1/messages", question(9), "X-Furl-Key", annKey); (code == 200) == (name == "sessions") {
			t.Errorf("%s: the next day: %d", name, code)
		}
		if name == "sessions" { // those that exist continue
			if code, text := a.do(t, "POST", "/v1/messages", question(0), "X-Furl-Key", annKey, "X-Furl-Session", id); code != 200 {
				t.Errorf("a session that exists: %d %s", code, text)
			}
		}
	}
}
