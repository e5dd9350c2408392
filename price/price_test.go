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
	at := price.OfRequest(&m, furl.Usage{Input: 100_000, CacheRead: 100_000}, time.Time{})
	if want := 0.11; math.Abs(at-want) > 1e-12 {
		t.Errorf("at the limit: got $%v, want $%v", at, want)
	}
	above := price.OfRequest(&m, furl.Usage{Input: 100_001, CacheRead: 100_000}, time.Time{})
	if want := 0.220002; math.Abs(above-want) > 1e-12 {
		t.Errorf("above the limit: got $%v, want $%v", above, want)
	}
	m.LongAbove = 0
	if got := price.For(&m, 1<<40, time.Time{}); got != m.Prices {
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
		{"automatic, extended", automatic, 24 * time.Hour, 24 * time.Hour, 8},
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

// Some prices hold for some hours, or from a day on. Without a time, the usual ones do.
func TestTimedPrices(t *testing.T) {
	usual, peak, rise := furl.Prices{Input: 1, Output: 10}, furl.Prices{Input: 2, Output: 20}, furl.Prices{Input: 3, Output: 30}
	long := furl.Prices{Input: 4, Output: 40}
	m := furl.Model{
		Prices: usual, LongPrices: long, LongAbove: 1000,
		TimedPrices: []furl.TimedPrices{
			{Weekdays: true, Hours: []furl.Hours{{From: time.Hour, To: 4 * time.Hour}, {From: 6 * time.Hour, To: 10 * time.Hour}}, Prices: peak, LongPrices: long},
			{From: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), Until: time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC), Prices: rise, LongPrices: peak},
		},
	}
	beijing := time.FixedZone("", 8*60*60)
	for _, tt := range []struct {
		name   string
		at     time.Time
		prompt int
		want   furl.Prices
	}{
		{"no time", time.Time{}, 0, usual},
		{"a Friday, before the hours", time.Date(2026, 11, 27, 0, 59, 59, 0, time.UTC), 0, usual},
		{"a Friday, from the first minute on", time.Date(2026, 11, 27, 1, 0, 0, 0, time.UTC), 0, peak},
		{"a Friday, at the end of the hours", time.Date(2026, 11, 27, 4, 0, 0, 0, time.UTC), 0, usual},
		{"a Friday, in the second part", time.Date(2026, 11, 27, 9, 59, 0, 0, time.UTC), 0, peak},
		{"the same, in another time zone", time.Date(2026, 11, 27, 17, 59, 0, 0, beijing), 0, peak},
		{"a Saturday", time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC), 0, usual},
		{"the day before the change", time.Date(2026, 12, 31, 23, 59, 0, 0, time.UTC), 0, usual},
		{"from the change on", time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), 0, rise},
		{"of two that apply, the last", time.Date(2027, 1, 4, 2, 0, 0, 0, time.UTC), 0, rise},
		{"of long prompts too", time.Date(2027, 1, 4, 2, 0, 0, 0, time.UTC), 1001, peak},
		{"after the end", time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC), 0, usual},
	} {
		if got := price.For(&m, tt.prompt, tt.at); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
	one := m
	price.Each(&one, func(p *furl.Prices) { p.Input *= 2 })
	if m.TimedPrices[0].Prices.Input != 2 || one.TimedPrices[0].Prices.Input != 4 || one.LongPrices.Input != 8 {
		t.Errorf("doubled: got %+v from %+v", one, m)
	}
}

// OpenAI reports all cache writes as one count. Those of a request that asked for 12 hours
// are counted and priced as such.
func TestBilled(t *testing.T) {
	m := furl.Model{
		Prices:  furl.Prices{Input: 2, CacheRead: 0.1, CacheWrite: 2.5, CacheWrite1h: 5, Output: 10},
		Caching: furl.Caching{Lifetime: 30 * time.Minute, Extended: 12 * time.Hour},
	}
	reported := furl.Usage{Input: 10, CacheWrite: 1e6}
	for _, tt := range []struct {
		requested time.Duration
		want      furl.Usage
		cost      float64
	}{
		{0, reported, 2.50002},
		{30 * time.Minute, reported, 2.50002},
		{12 * time.Hour, furl.Usage{Input: 10, CacheWrite1h: 1e6}, 5.00002},
	} {
		of := price.WithLifetime(m, tt.requested)
		got := price.Billed(&of, reported)
		if cost := price.OfRequest(&of, got, time.Time{}); got != tt.want || math.Abs(cost-tt.cost) > 1e-9 {
			t.Errorf("requested %v: got %+v for $%v, want %+v for $%v", tt.requested, got, cost, tt.want, tt.cost)
		}
	}
	if d := price.LongLifetime(&m); d != 12*time.Hour {
		t.Errorf("the longer lifetime is %v, want 12 hours", d)
	}
	claude := furl.Model{Caching: furl.Caching{Explicit: true, Lifetime: time.Hour}}
	if got := price.Billed(&claude, reported); got != reported || price.LongLifetime(&claude) != time.Hour {
		t.Errorf("explicit entries: got %+v", got)
	}
}
