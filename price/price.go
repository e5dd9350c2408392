// Package price computes what requests cost, in US dollars, from a model's
// prices and the usage that a provider reported.
package price

import (
	"time"

	"github.com/furlhq/furl"
)

// Known reports whether there is a price at all.
func Known(p furl.Prices) bool { return p.Input > 0 }

// Of returns what a usage costs at these prices. Unknown prices cost nothing;
// ask Known first where that makes a difference.
func Of(p furl.Prices, u furl.Usage) float64 {
	return (float64(u.Input)*p.Input +
		float64(u.CacheRead)*p.CacheRead +
		float64(u.CacheWrite)*p.CacheWrite +
		float64(u.CacheWrite1h)*p.CacheWrite1h +
		float64(u.Output)*p.Output) / 1e6
}

// Complete fills in missing cache prices, so that cached tokens are not taken
// to be free: reads and writes then cost what fresh input costs, and one-hour
// writes what other writes cost.
func Complete(p furl.Prices) furl.Prices {
	if p.CacheRead == 0 {
		p.CacheRead = p.Input
	}
	if p.CacheWrite == 0 {
		p.CacheWrite = p.Input
	}
	if p.CacheWrite1h == 0 {
		p.CacheWrite1h = p.CacheWrite
	}
	return p
}

// For returns the prices of a request to m whose prompt has that many of the
// provider's tokens: some providers charge more for the whole request if its
// prompt is long.
func For(m *furl.Model, prompt int) furl.Prices {
	if m.LongAbove > 0 && prompt > m.LongAbove {
		return m.LongPrices
	}
	return m.Prices
}

// OfRequest returns what a request to m with this usage costs.
func OfRequest(m *furl.Model, u furl.Usage) float64 { return Of(For(m, u.Prompt()), u) }

// WithLifetime returns a model as a client has it that requests cache entries of a
// lifetime; 0: the provider's default. Models with explicit cache breakpoints have
// entries of one hour, which have their own write price. Other models have an extended
// retention, at the same price, or a shorter lifetime than the default.
func WithLifetime(m furl.Model, requested time.Duration) furl.Model {
	switch c := &m.Caching; {
	case c.Lifetime == 0 || requested == 0:
	case !c.Explicit && requested > c.Lifetime:
		c.Lifetime = max(c.Lifetime, min(requested, c.Extended))
	case !c.Explicit:
		c.Lifetime = requested
	case requested >= time.Hour:
		c.Lifetime = max(c.Lifetime, time.Hour)
		for _, p := range []*furl.Prices{&m.Prices, &m.LongPrices} {
			if p.CacheWrite1h > 0 {
				p.CacheWrite = p.CacheWrite1h
			}
		}
	}
	return m
}
