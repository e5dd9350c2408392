package keepalive_test

import (
	"math"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/keepalive"
	"github.com/furlhq/furl/price"
)

// marks returns a model with cache breakpoints whose prices are multiples of the
// input price.
func marks(read, write float64) furl.Model {
	return furl.Model{
		Caching: furl.Caching{Explicit: true, MinPrefix: 1024, Lifetime: 5 * time.Minute},
		Prices:  furl.Prices{Input: 3, CacheRead: 3 * read, CacheWrite: 3 * write, CacheWrite1h: 6},
	}
}

// The number of pings that pay in a pause follows from the prices and the lifetime.
func TestPays(t *testing.T) {
	automatic := marks(0.1, 1.25)
	automatic.Caching.Explicit = false
	unpriced := marks(0.1, 1.25)
	unpriced.Prices = furl.Prices{}
	tests := []struct {
		name   string
		model  furl.Model
		tokens int
		want   int
	}{
		{"reads at a tenth", marks(0.1, 1.25), 50_000, 2},
		{"reads at a twentieth", marks(0.05, 1.25), 50_000, 6},
		{"reads at a quarter, writes at the input price", marks(0.25, 1), 50_000, 0},
		{"entries of one hour", price.WithLifetime(marks(0.1, 1.25), time.Hour), 50_000, 0},
		{"entries of one hour, reads at a twentieth", price.WithLifetime(marks(0.05, 1.25), time.Hour), 50_000, 1},
		{"a small prompt", marks(0.1, 1.25), keepalive.MinTokens - 1, 0},
		{"an automatic cache", automatic, 50_000, 0},
		{"no price", unpriced, 50_000, 0},
		{"no cache", furl.Model{Prices: furl.Prices{Input: 3}}, 50_000, 0},
	}
	for _, tt := range tests {
		got := 0
		for idle := keepalive.Interval(&tt.model); got < 100 && keepalive.Pays(&tt.model, tt.tokens, 0, idle, time.Time{}); idle += keepalive.Interval(&tt.model) {
			got++
		}
		if got != tt.want {
			t.Errorf("%s: %d pings pay, want %d", tt.name, got, tt.want)
		}
	}
}

// Chances are those that docs/internals/cost-model.md lists: of pauses that last some
// minutes, a third end before twice that time; of those that last an hour, one in
// fifteen does.
func TestChance(t *testing.T) {
	for _, tt := range []struct {
		idle, from, to time.Duration
		want           float64
	}{
		{5 * time.Minute, 0, 5 * time.Minute, 0.34},
		{20 * time.Minute, 0, 20 * time.Minute, 0.34},
		{time.Hour, 0, time.Hour, 0.067},
		{270 * time.Second, 30 * time.Second, 5 * time.Minute, 0.30},
		{540 * time.Second, 30 * time.Second, 5 * time.Minute, 0.20},
		{810 * time.Second, 30 * time.Second, 5 * time.Minute, 0.15},
		{0, 0, time.Hour, 0},
	} {
		if got := keepalive.Chance(tt.idle, tt.from, tt.to); math.Abs(got-tt.want) > 0.006 {
			t.Errorf("a session that has paused for %v continues within %v to %v with probability %.3f, want %.3f", tt.idle, tt.from, tt.to, got, tt.want)
		}
	}
}
