package keepalive_test

import (
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/keepalive"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/protocol"
)

// Entries of one hour pay if a pause costs more than their higher price.
func TestHourPays(t *testing.T) {
	automatic := marks(0.1, 1.25)
	automatic.Caching.Explicit = false
	unpriced := marks(0.1, 1.25)
	unpriced.Prices.CacheWrite1h = 0
	for _, tt := range []struct {
		name  string
		model furl.Model
		want  bool
	}{
		{"Anthropic's prices", marks(0.1, 1.25), true},
		{"reads at 0.4 of the input price", marks(0.4, 1.25), true},
		{"reads and writes cost nearly the same", marks(0.6, 1.25), false},
		{"all entries live an hour", price.WithLifetime(marks(0.1, 1.25), time.Hour), false},
		{"an automatic cache", automatic, false},
		{"no entries of one hour", unpriced, false},
		{"no cache", furl.Model{Prices: furl.Prices{Input: 3, CacheWrite1h: 6}}, false},
	} {
		if got := keepalive.HourPays(&tt.model, time.Time{}); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

func TestIsPause(t *testing.T) {
	m := marks(0.1, 1.25)
	for d, want := range map[time.Duration]bool{
		-time.Hour: false, 5 * time.Minute: false, 5*time.Minute + 1: true, time.Hour: true, time.Hour + 1: false,
	} {
		if keepalive.IsPause(&m, d) != want {
			t.Errorf("%v: %t", d, !want)
		}
	}
	if keepalive.IsPause(new(furl.Model), 10*time.Minute) {
		t.Error("a model without a cache has pauses")
	}
}

// A request asks for entries of one hour from the first one after a pause on. If the
// policy decides, what is hidden must pay for that request's.
func TestHourWanted(t *testing.T) {
	m := marks(0.1, 1.25) // 10,000 tokens cost 0.75 more each, which 6,000 hidden ones save
	const byPolicy, always, never = protocol.HourByPolicy, protocol.HourAlways, protocol.HourNever
	for _, tt := range []struct {
		name   string
		when   protocol.HourCache
		policy bool
		since  time.Duration
		had    bool
		hidden int
		want   bool
	}{
		{"no pause", always, true, 5 * time.Minute, false, 50_000, false},
		{"a pause", always, false, 6 * time.Minute, false, 0, true},
		{"a pause, never", never, true, 6 * time.Minute, false, 50_000, false},
		{"after that, never", never, true, time.Minute, true, 50_000, false},
		{"a pause, another policy", byPolicy, false, 6 * time.Minute, false, 50_000, false},
		{"a pause, enough is hidden", byPolicy, true, 6 * time.Minute, false, 6000, true},
		{"a pause, too little is hidden", byPolicy, true, 6 * time.Minute, false, 5999, false},
		{"a long pause", byPolicy, true, 2 * time.Hour, false, 50_000, false},
		{"after that", byPolicy, true, time.Minute, true, 0, true},
		{"the next pause", byPolicy, true, time.Hour, true, 0, true},
		{"the entries have expired, enough is hidden", byPolicy, true, 2 * time.Hour, true, 6000, true},
		{"the entries have expired, too little is hidden", byPolicy, true, 2 * time.Hour, true, 5999, false},
		{"the entries have expired", always, true, 2 * time.Hour, true, 0, true},
	} {
		if enough := (&keepalive.Hour{Policy: func() bool { return true }, Since: 6 * time.Minute, Idle: 6 * time.Minute, Fixed: 10_000, Uncached: true, Hidden: func() int { return tt.hidden }}).Wanted(&m); enough != (tt.hidden >= 7500) {
			t.Errorf("%d hidden tokens of messages that are not cached: %t", tt.hidden, enough)
		}
		h := keepalive.Hour{When: tt.when, Policy: func() bool { return tt.policy }, Since: tt.since, Idle: tt.since, Had: tt.had, Fixed: 10_000, Hidden: func() int { return tt.hidden }}
		if got := h.Wanted(&m); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
		h.Had, h.Idle = false, time.Minute // pings have kept the cache over a pause
		if got := h.Wanted(&m); got != (tt.when == always && keepalive.IsPause(&m, tt.since)) {
			t.Errorf("%s, with pings: %t", tt.name, got)
		}
	}
}
