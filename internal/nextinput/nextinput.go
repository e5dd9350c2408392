// Package nextinput computes what the input of a session's next message costs while the
// prompt cache lives and after, and says it in words.
package nextinput

import (
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/storage"
)

// Prompt is what the cost of the next prompt follows from. Sizes are in the provider's tokens.
type Prompt struct {
	// Model has the prices and the lifetime of the cache entries that the last request
	// asked for (price.WithLifetime), and Terms are that request's.
	Model *furl.Model
	Terms furl.Terms
	// Now is the time whose prices apply, and Used when the cache was last used.
	Now, Used time.Time
	// Size is the prompt. Cached is the part of it that has cache entries, and Fixed the
	// instructions and tools, which have entries of an hour if HourFixed is set.
	Size, Cached, Fixed int
	HourFixed           bool
	// Hidden is how much the policy hides once the cache has expired.
	Hidden int
	// HourNext is set if the request after that asks for entries of an hour for
	// instructions and tools.
	HourNext bool
}

// Of returns what the next input costs, or nil if no price is known.
func Of(p *Prompt) *storage.NextInput {
	m := price.Under(p.Model, &p.Terms)
	if !price.Known(price.For(m, p.Size, p.Now)) || p.Size <= 0 {
		return nil
	}
	read := min(p.Cached, p.Size)
	if g := m.Caching.Granule; g > 1 {
		read -= read % g
	}
	out := &storage.NextInput{Used: p.Used, Tokens: p.Size, Warm: cost(m, furl.Usage{CacheRead: read, CacheWrite: p.Size - read}, p.Now)}
	if lifetimeKnown(&m.Caching) {
		out.Expires = p.Used.Add(m.Caching.Lifetime)
	}
	fixed := 0
	if p.HourFixed && m.Caching.Lifetime < time.Hour {
		fixed = min(p.Fixed, p.Size)
	}
	written := func(size int) float64 { return cost(m, furl.Usage{CacheWrite: size}, p.Now) }
	hourly := func(size int) float64 {
		hour := min(p.Fixed, size)
		return cost(m, furl.Usage{CacheWrite1h: hour, CacheWrite: size - hour}, p.Now)
	}
	switch {
	case fixed > 0:
		out.Cold = cold(p, func(size int) float64 {
			return cost(m, furl.Usage{CacheRead: min(fixed, size), CacheWrite: size - min(fixed, size)}, p.Now)
		})
		later := cold(p, hourly)
		out.Later = &later
	case p.HourNext && p.Hidden == 0:
		out.Cold = cold(p, hourly)
	default:
		out.Cold = cold(p, written)
		if p.HourNext && out.Cold.Hidden > 0 {
			out.Cold.Reduced = hourly(p.Size - p.Hidden)
		}
	}
	return out
}

// Left returns how long the cache entries of the messages live, 0 if they have expired or
// that is unknown.
func Left(n *storage.NextInput, now time.Time) time.Duration {
	if n == nil || n.Expires.IsZero() || Expired(n, now) {
		return 0
	}
	return n.Expires.Sub(now)
}

// lifetimeKnown reports whether entries live a documented time. Automatic caches drop them
// earlier or later, unless the request has asked for the long retention.
func lifetimeKnown(c *furl.Caching) bool {
	return c.Explicit || c.Extended > 0 && c.Lifetime >= c.Extended
}

func cold(p *Prompt, of func(size int) float64) storage.ColdInput {
	out := storage.ColdInput{Full: of(p.Size)}
	if p.Hidden > 0 && p.Hidden < p.Size {
		out.Hidden, out.Reduced = p.Hidden, of(p.Size-p.Hidden)
	}
	return out
}

// cost prices a usage. Prompts that are long pay the long-prompt prices for all of it.
func cost(m *furl.Model, u furl.Usage, at time.Time) float64 {
	return price.Of(price.Complete(price.For(m, u.Prompt(), at)), u)
}

// forgotten is the time after which automatic caches have dropped their entries for certain.
const forgotten = time.Hour

// Expired reports whether the cache entries of the messages have expired.
func Expired(n *storage.NextInput, now time.Time) bool {
	if n.Expires.IsZero() {
		return now.Sub(n.Used) > forgotten
	}
	return now.After(n.Expires)
}

// Cold returns the cost without those entries, now or, as long as they live, once they expire.
func Cold(n *storage.NextInput, now time.Time) storage.ColdInput {
	if n.Later != nil && now.Sub(n.Used) > time.Hour {
		return *n.Later
	}
	return n.Cold
}

// Words says in a line how long the prompt cache lives and what the next input costs:
// "cache expires in 2:10 · next input $0.09, after that $1.71, reduced $0.22". It is "" for nil.
func Words(n *storage.NextInput, now time.Time) string {
	if n == nil {
		return ""
	}
	cold := Cold(n, now)
	text, last := "", money(cold.Full)
	switch {
	case Expired(n, now):
		text = "cache expired · next input " + last
	case n.Expires.IsZero():
		text = fmt.Sprintf("next input %s, without the cache %s", money(n.Warm), last)
	default:
		text = fmt.Sprintf("cache expires in %s · next input %s, after that %s", clock(n.Expires.Sub(now)), money(n.Warm), last)
	}
	if reduced := money(cold.Reduced); cold.Hidden > 0 && reduced != last {
		text += ", reduced " + reduced
	}
	return text
}

// Short is Words where there is little room, with what is spent now: "cache 2:10 · next $0.09".
func Short(n *storage.NextInput, now time.Time) string {
	cold := Cold(n, now)
	switch {
	case !Expired(n, now) && n.Expires.IsZero():
		return "next " + money(n.Warm)
	case !Expired(n, now):
		return fmt.Sprintf("cache %s · next %s", clock(n.Expires.Sub(now)), money(n.Warm))
	case cold.Hidden > 0:
		return "cache expired · next " + money(cold.Reduced)
	}
	return "cache expired · next " + money(cold.Full)
}

// Explain says what the policy hides because the cache has expired; "" if it has not, or the
// policy hides nothing.
func Explain(n *storage.NextInput, now time.Time) string {
	if n == nil || !Expired(n, now) || n.Cold.Hidden == 0 {
		return ""
	}
	return fmt.Sprintf("The prompt cache has expired, so hiding has no extra cost: with the next message %s hides about %s.", n.Policy, numbers.Count(n.Cold.Hidden, "token"))
}

// money formats dollars to the cent.
func money(x float64) string {
	if x < 0.005 {
		return "under $0.01"
	}
	return fmt.Sprintf("$%.2f", x)
}

// clock formats a time as minutes and seconds, or with hours: 2:10, 1:02:10.
func clock(d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
