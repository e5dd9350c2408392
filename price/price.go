// Package price computes what requests cost, in US dollars, from a model's
// prices and the usage that a provider reported.
package price

import (
	"slices"
	"time"

	"github.com/furlhq/furl"
)

// Known reports whether there is a price at all.
func Known(p furl.Prices) bool { return p.Input > 0 }

// Of returns what a usage costs at these prices. Unknown prices cost nothing;
// ask Known first where that makes a difference.
func Of(p furl.Prices, u furl.Usage) float64 {
	c := Split(p, u)
	return c.Sum()
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
// prompt is long. at is the time of the request, because some charge more at some
// hours, or from a day on. If it is zero, the prices are those without times.
func For(m *furl.Model, prompt int, at time.Time) furl.Prices {
	usual, long := m.Prices, m.LongPrices
	for i := len(m.TimedPrices) - 1; i >= 0; i-- {
		if t := &m.TimedPrices[i]; applies(t, at) {
			usual, long = t.Prices, t.LongPrices
			break
		}
	}
	if m.LongAbove > 0 && prompt > m.LongAbove {
		return long
	}
	return usual
}

// applies reports whether prices apply at a time.
func applies(t *furl.TimedPrices, at time.Time) bool {
	at = at.UTC()
	switch {
	case at.IsZero(), !t.From.IsZero() && at.Before(t.From), !t.Until.IsZero() && !at.Before(t.Until):
		return false
	case t.Weekdays && (at.Weekday() == time.Saturday || at.Weekday() == time.Sunday):
		return false
	}
	since := at.Sub(at.Truncate(24 * time.Hour))
	return len(t.Hours) == 0 || slices.ContainsFunc(t.Hours, func(h furl.Hours) bool { return h.From <= since && since < h.To })
}

// OfRequest returns what a request of one pass costs at a time, under the usual terms. See
// Request for recorded ones.
func OfRequest(m *furl.Model, u furl.Usage, at time.Time) float64 {
	return Of(For(m, u.Prompt(), at), u)
}

// Each calls change for each set of prices of m: usual ones, those of long prompts, and
// those of certain times. Copies of m keep theirs.
func Each(m *furl.Model, change func(*furl.Prices)) {
	change(&m.Prices)
	change(&m.LongPrices)
	m.TimedPrices = slices.Clone(m.TimedPrices)
	for i := range m.TimedPrices {
		change(&m.TimedPrices[i].Prices)
		change(&m.TimedPrices[i].LongPrices)
	}
}

// LongLifetime returns the longer lifetime of cache entries that a request to m can ask
// for, at the price CacheWrite1h.
func LongLifetime(m *furl.Model) time.Duration {
	if !m.Caching.Explicit && m.Caching.Extended > 0 {
		return m.Caching.Extended
	}
	return time.Hour
}

// WithLifetime returns a model as a client has it that requests cache entries of a
// lifetime; 0: the provider's default. Models with explicit cache breakpoints have
// entries of one hour, which have their own write price. Other models have an extended
// retention, some at a price of its own, or a shorter lifetime than the default.
func WithLifetime(m furl.Model, requested time.Duration) furl.Model {
	switch c := &m.Caching; {
	case c.Lifetime == 0 || requested == 0:
	case !c.Explicit && requested > c.Lifetime:
		c.Lifetime = max(c.Lifetime, min(requested, c.Extended))
		if c.Lifetime == c.Extended {
			Each(&m, writeLong)
		}
	case !c.Explicit:
		c.Lifetime = requested
	case requested >= time.Hour:
		c.Lifetime = max(c.Lifetime, time.Hour)
		Each(&m, writeLong)
	}
	return m
}

func writeLong(p *furl.Prices) {
	if p.CacheWrite1h > 0 {
		p.CacheWrite = p.CacheWrite1h
	}
}

// Billed returns a usage as the provider bills it. m is the model with the lifetime that
// the request asked for (WithLifetime). Providers with automatic caches report all that
// was written as one count, whatever its lifetime.
func Billed(m *furl.Model, u furl.Usage) furl.Usage {
	if c := &m.Caching; !c.Explicit && c.Extended > 0 && c.Lifetime >= c.Extended {
		u.CacheWrite, u.CacheWrite1h = 0, u.CacheWrite+u.CacheWrite1h
	}
	return u
}
