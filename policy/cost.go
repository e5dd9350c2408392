package policy

import (
	"cmp"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/price"
)

// Price is what a change of the view does to the price of the requests that follow.
type Price struct {
	// Before and After are the sizes of the context, in the provider's tokens.
	Before, After int
	// Rewrite is how many tokens the next request writes to the prompt cache again
	// because of the change, or would have to if the cache had not expired.
	Rewrite int
	// Cached reports whether the provider caches a prompt of this size. Expired
	// reports that the cache has expired, so that everything is written anyway.
	Cached, Expired bool
	// Priced reports whether prices are known. Otherwise Once and PerRequest are 0.
	Priced bool
	// Once is what Rewrite costs, in US dollars. PerRequest is what is saved on each
	// later request; it is negative if they cost more.
	Once, PerRequest float64
}

// PriceOf returns the price of a change of the view. b is the budget before it.
// Everything after the first edit is written to the cache again, once, and hidden
// tokens are no longer read from it, on each request from now on.
func PriceOf(before, after *furl.View, b furl.Budget) Price {
	left := b.After(before, after)
	out := Price{Before: b.Size, After: left.Size, Cached: cached(&b)}
	prices := price.For(&b.Model, b.Size, b.Now)
	out.Priced = price.Known(prices)
	prices = price.Complete(prices)
	if !out.Cached {
		out.PerRequest = float64(b.Size-left.Size) * prices.Input / 1e6
		return out
	}
	out.PerRequest = float64(b.Size-left.Size) * prices.CacheRead / 1e6
	all, long := behindEdit(before, after, b.LongTo)
	out.Rewrite = b.Of(all.tokens, all.items)
	hour := b.Of(long.tokens, long.items)
	short, old := expired(&b)
	out.Expired = short && (old || hour == 0)
	if !short {
		out.Once = float64(out.Rewrite-hour) * (prices.CacheWrite - prices.CacheRead) / 1e6
	}
	if !old {
		out.Once += float64(hour) * (prices.CacheWrite1h - prices.CacheRead) / 1e6
	}
	return out
}

// costOf returns the cost that is recorded with a reduction. If no price is known, all
// is zero.
func costOf(before, after *furl.View, b furl.Budget, red *furl.Reduction) furl.Cost {
	p := PriceOf(before, after, b)
	if !p.Priced {
		return furl.Cost{Own: red.Cost.Own}
	}
	cost := furl.Cost{Rewrite: p.Once, PerRequest: p.PerRequest}
	if red.Summary != nil {
		cost.Own = cmp.Or(red.Cost.Own, price.OfRequest(&b.Model, red.Summary.Usage, b.Now))
	}
	return cost
}

// cached reports whether the provider caches the messages of a prompt.
func cached(b *furl.Budget) bool {
	cache := b.Model.Caching
	return cache.Lifetime > 0 && b.Size >= cache.MinPrefix && !b.Uncached
}

// expired reports whether the cache entries of the last request have expired: those of
// the model's lifetime, and those of one hour that precede them (Budget.LongTo).
func expired(b *furl.Budget) (short, long bool) {
	if b.Cold {
		return true, true
	}
	if b.Now.IsZero() || b.LastUse.IsZero() {
		return false, false
	}
	life, idle := b.Model.Caching.Lifetime, b.Now.Sub(b.LastUse)
	return idle > life, idle > max(life, time.Hour)
}

// extent is a part of a view: its counted tokens, and its tool calls and results.
type extent struct{ tokens, items int }

// behindEdit measures a view from the first message on in which it differs from the view
// before, and the part of that up to the message longTo.
func behindEdit(before, after *furl.View, longTo furl.Seq) (all, long extent) {
	first := 0
	for first < min(len(before.Messages), len(after.Messages)) && same(&before.Messages[first], &after.Messages[first]) {
		first++
	}
	all = extent{after.Tokens, after.Items}
	all.subtract(after.Messages[:first])
	if longTo > 0 && first < len(after.Messages) && after.Messages[first].Seq <= longTo {
		long = all
		long.subtract(after.Messages[min(first+upTo(after.Messages[first:], longTo), len(after.Messages)):])
	}
	return all, long
}

// upTo counts the messages of a list up to a record.
func upTo(list []furl.Shown, seq furl.Seq) int {
	n := len(list)
	for n > 0 && list[n-1].Seq > seq {
		n--
	}
	return n
}

func (e *extent) subtract(list []furl.Shown) {
	for i := range list {
		for j := range list[i].Blocks {
			sb := &list[i].Blocks[j]
			e.tokens -= sb.Tokens
			if k := sb.Block.Kind; k == furl.KindCall || k == furl.KindResult {
				e.items--
			}
		}
	}
}

// same reports whether two views of one path show the same of a message.
func same(a, b *furl.Shown) bool {
	if a.Seq != b.Seq || a.By != b.By || len(a.Blocks) != len(b.Blocks) {
		return false
	}
	for i := range a.Blocks {
		if a.Blocks[i].Pos != b.Blocks[i].Pos || a.Blocks[i].By != b.Blocks[i].By {
			return false
		}
	}
	return true
}
