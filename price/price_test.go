package price_test

import (
	"math"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/price"
)

func TestPricesCost(t *testing.T) {
	p := furl.Prices{Input: 4, CacheRead: 0.2, CacheWrite: 5, CacheWrite1h: 8, Output: 20}
	for _, tt := range []struct {
		name string
		u    furl.Usage
		want float64
	}{
		{"nothing", furl.Usage{}, 0},
		{"each class at its own price", furl.Usage{Input: 1e6, CacheRead: 1e6, CacheWrite: 1e6, CacheWrite1h: 1e6, Output: 1e6}, 37.2},
		{"reasoning is part of the output", furl.Usage{Output: 1000, Reasoning: 900}, 0.02},
		{"an agent's request", furl.Usage{Input: 3, CacheRead: 100_000, CacheWrite: 2_000, Output: 500}, 0.040012},
	} {
		if got := price.Of(p, tt.u); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%s: got $%v, want $%v", tt.name, got, tt.want)
		}
	}
	if got := price.Of(furl.Prices{}, furl.Usage{Input: 1e6}); got != 0 {
		t.Errorf("unknown prices: got $%v, want $0", got)
	}
}

func TestPricesComplete(t *testing.T) {
	for _, tt := range []struct{ in, want furl.Prices }{
		{furl.Prices{Input: 3, Output: 15}, furl.Prices{Input: 3, CacheRead: 3, CacheWrite: 3, CacheWrite1h: 3, Output: 15}},
		{furl.Prices{Input: 4, CacheRead: 0.2, CacheWrite: 5, Output: 20}, furl.Prices{Input: 4, CacheRead: 0.2, CacheWrite: 5, CacheWrite1h: 5, Output: 20}},
		{furl.Prices{}, furl.Prices{}},
	} {
		if got := price.Complete(tt.in); got != tt.want {
			t.Errorf("%+v completed: got %+v, want %+v", tt.in, got, tt.want)
		}
	}
}

// Long prompts pay the long price for the whole request, from the first token
// above the limit on.
func TestModelCostOfLongPrompts(t *testing.T) {
	m := furl.Model{
		Prices:     furl.Prices{Input: 1, CacheRead: 0.1, Output: 10},
		LongPrices: furl.Prices{Input: 2, CacheRead: 0.2, Output: 15},
		LongAbove:  200_000,
	}
	at := price.OfRequest(&m, furl.Usage{Input: 100_000, CacheRead: 100_000})
	if want := 0.11; math.Abs(at-want) > 1e-12 {
		t.Errorf("at the limit: got $%v, want $%v", at, want)
	}
	above := price.OfRequest(&m, furl.Usage{Input: 100_001, CacheRead: 100_000})
	if want := 0.220002; math.Abs(above-want) > 1e-12 {
		t.Errorf("above the limit: got $%v, want $%v", above, want)
	}
	m.LongAbove = 0
	if got := price.For(&m, 1<<40); got != m.Prices {
		t.Errorf("no limit: got %+v, want %+v", got, m.Prices)
	}
}

// A client's cache lifetime changes the lifetime and the write price of entries.
func TestWithLifetime(t *testing.T) {
	prices := furl.Prices{Input: 4, CacheRead: 0.4, CacheWrite: 5, CacheWrite1h: 8, Output: 20}
	explicit := furl.Model{Prices: prices, Caching: furl.Caching{Explicit: true, Lifetime: 5 * time.Minute}}
	automatic := furl.Model{Prices: prices, Caching: furl.Caching{Lifetime: 10 * time.Minute, Extended: 24 * time.Hour}}
	fixed := furl.Model{Prices: prices, Caching: furl.Caching{Lifetime: 30 * time.Minute}}
	for _, tt := range []struct {
		name      string
		model     furl.Model
		requested time.Duration
		lifetime  time.Duration
		write     float64
	}{
		{"explicit, default", explicit, 0, 5 * time.Minute, 5},
		{"explicit, five minutes", explicit, 5 * time.Minute, 5 * time.Minute, 5},
		{"explicit, an hour", explicit, time.Hour, time.Hour, 8},
		{"automatic, default", automatic, 0, 10 * time.Minute, 5},
		{"automatic, extended", automatic, 24 * time.Hour, 24 * time.Hour, 5},
		{"automatic, longer than there is", fixed, 24 * time.Hour, 30 * time.Minute, 5},
		{"automatic, shorter", fixed, 10 * time.Minute, 10 * time.Minute, 5},
		{"no cache", furl.Model{Prices: prices}, time.Hour, 0, 5},
	} {
		m := price.WithLifetime(tt.model, tt.requested)
		if m.Caching.Lifetime != tt.lifetime || m.Prices.CacheWrite != tt.write {
			t.Errorf("%s: entries live %v and cost %v; want %v and %v", tt.name, m.Caching.Lifetime, m.Prices.CacheWrite, tt.lifetime, tt.write)
		}
	}
}
