// Package keepalive decides when it pays to keep a prompt cache alive over a
// pause of a session. There are two ways: a ping, which is a request that repeats
// the last prompt, generates nothing, and so renews the entries of the provider's
// cache for the price of a cache read; and entries of one hour for instructions and
// tools, which cost more to write.
//
// docs/internals/cost-model.md has the rule and its measurements.
package keepalive

import (
	"math"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/price"
)

// MinTokens is the size of the smallest prompt that is kept alive, in tokens. The
// cache write of a smaller one costs a few cents at most, and each ping is also a
// request that counts toward rate limits.
const MinTokens = 10_000

// leastReturn is how many times its cost a ping must be expected to save. It is not
// 1, because an expired cache is worth something too: it lets a policy hide blocks
// without an extra cost, so that the next request writes less than the last prompt.
const leastReturn = 2

// Interval returns the time between the last use of a prompt's cache entries and
// the ping that renews them: nine tenths of their lifetime. It is 0 if the model
// does not cache prompts.
func Interval(m *furl.Model) time.Duration { return m.Caching.Lifetime * 9 / 10 }

// Pays reports whether the next ping of a pause pays. m is the model with the
// lifetime and the write price of the prompt's cache entries (price.WithHour),
// tokens the size of the prompt, kept how much of it has entries that live an hour
// anyway, and idle how long the session will have paused at, when the ping is sent.
//
// A ping costs a cache read of the prompt. It saves the cache write of what is not kept
// if the session continues after the entries would have expired and before they expire
// again.
// Later pings of a pause pay less and less, because a session that has paused for
// long is likely to pause on.
// Only caches with breakpoints of the client are kept alive: the others have no
// documented way to renew an entry without a reply.
func Pays(m *furl.Model, tokens, kept int, idle time.Duration, at time.Time) bool {
	if !m.Caching.Explicit || m.Caching.Lifetime == 0 || tokens < max(MinTokens, m.Caching.MinPrefix) {
		return false
	}
	p := price.For(m, tokens, at)
	if !price.Known(p) {
		return false
	}
	p = price.Complete(p)
	saves := Chance(idle, m.Caching.Lifetime-Interval(m), m.Caching.Lifetime) * (p.CacheWrite - p.CacheRead)
	return saves*float64(tokens-kept) > leastReturn*p.CacheRead*float64(tokens)
}

// Chance estimates the probability that a session that has paused for a time
// continues later than from and not later than to after that.
func Chance(idle, from, to time.Duration) float64 {
	if idle <= 0 {
		return 0
	}
	return (lasting(idle+from) - lasting(idle+to)) / lasting(idle)
}

// The shares of pauses that are known to be longer are fitted to the recordings:
// of the pauses that last a time of minutes, a third end before twice that time;
// of those that last an hour, one in fifteen does.
const (
	exponent     = 0.6
	longExponent = 0.1
	long         = time.Hour
)

// lasting returns the share of pauses that last longer than a time, up to a constant
// factor.
func lasting(d time.Duration) float64 {
	if d <= long {
		return math.Pow(float64(d)/float64(long), -exponent)
	}
	return math.Pow(float64(d)/float64(long), -longExponent)
}
