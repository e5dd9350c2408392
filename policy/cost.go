package policy

import (
	"cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/price"
)

// costOf is the effect of a reduction on the bill: everything after the first edit
// is written to the cache again, once, and hidden tokens are no longer read from
// it, on each request from now on. If no price is known, all is zero.
func costOf(before, after *furl.View, b, left furl.Budget, red *furl.Reduction) furl.Cost {
	prices := price.For(&b.Model, b.Size)
	if !price.Known(prices) {
		return furl.Cost{Own: red.Cost.Own}
	}
	prices = price.Complete(prices)
	cost := furl.Cost{PerRequest: float64(b.Size-left.Size) * prices.Input / 1e6}
	if red.Summary != nil {
		cost.Own = cmp.Or(red.Cost.Own, price.OfRequest(&b.Model, red.Summary.Usage))
	}
	cache := b.Model.Caching
	if cache.Lifetime == 0 || b.Size < cache.MinPrefix {
		return cost // nothing is cached
	}
	cost.PerRequest = float64(b.Size-left.Size) * prices.CacheRead / 1e6
	if b.Cold || !b.Now.IsZero() && !b.LastUse.IsZero() && b.Now.Sub(b.LastUse) > cache.Lifetime {
		return cost // the cache has expired, so everything is written anyway
	}
	cost.Rewrite = float64(b.Of(behindEdit(before, after))) * (prices.CacheWrite - prices.CacheRead) / 1e6
	return cost
}

// afterEdit counts the tokens, and the tool calls and results, of a view from the
// first message on in which it differs from the view before.
func behindEdit(before, after *furl.View) (tokens, items int) {
	tokens, items = after.Tokens, after.Items
	for i := range min(len(before.Messages), len(after.Messages)) {
		a, b := &before.Messages[i], &after.Messages[i]
		if !same(a, b) {
			break
		}
		for j := range b.Blocks {
			tokens -= b.Blocks[j].Tokens
			if k := b.Blocks[j].Block.Kind; k == furl.KindCall || k == furl.KindResult {
				items--
			}
		}
	}
	return tokens, items
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
