package account

import (
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/price"
)

// An agent without furl does not send prompts that its provider refuses: it compacts. Two
// such agents bound what a session would have cost. One compacts as Claude Code does, which
// in 14 compactions of recorded sessions did so at a median of 155,000 tokens of 200,000,
// and whose next prompts had a median of 52,000. The other loses nothing and pays for no
// summary, but its prompts end at the window.
const (
	compactsAt    = 0.78   // of the window
	compactedTo   = 0.26   // of the window
	compactedMost = 52_000 // tokens, in larger windows too
	summaryShare  = 0.02   // of the window, for a summary
	summaryMost   = 4_000  // tokens of a summary
)

// compacting returns the size of a prompt of an agent that compacts, if it would be w tokens
// with everything, and how often the agent has compacted until then. It depends on nothing
// else, so that it is the same for a log that is read again. A window of 0 is unknown.
func compacting(w, window int) (prompt, times int) {
	limit := int(compactsAt * float64(window))
	if window <= 0 || w <= limit {
		return w, 0
	}
	span := max(1, limit-compacted(window))
	times = (w - limit + span - 1) / span
	return w - times*span, times
}

// compacted is the size of the first prompt after a compaction, without its new messages.
func compacted(window int) int { return min(int(compactedTo*float64(window)), compactedMost) }

// summarySize is the size of a summary in tokens.
func summarySize(window int) int { return min(int(summaryShare*float64(window)), summaryMost) }

// WithoutSizes returns the sizes that a prompt of so many tokens would have had without what
// furl hides: that of an agent that compacts, and the largest that the window allows. No
// provider with this window refuses either, unless it would refuse the prompt.
func WithoutSizes(prompt, hidden, window int) (compacts, most int) {
	if hidden == 0 {
		return prompt, prompt
	}
	compacts, _ = compacting(prompt+hidden, window)
	most = prompt + hidden
	if window > 0 {
		most = min(most, max(prompt, window))
	}
	return compacts, most
}

// alternative prices a request as an agent without furl would have made it.
type alternative struct {
	*Sent
	billed price.Request
	passes []furl.Pass
	edited bool // furl changed the prompt, or kept the cache alive
	still  bool // the cache had the previous prompt
	fresh  int  // tokens of new messages
}

// cost returns what the request costs with so many tokens more, or less, in its prompt.
// fresh is how many of them the cache does not have, if edited is set.
func (a *alternative) cost(more int, edited bool, fresh int) float64 {
	without, first, compacted := slices.Clone(a.passes), true, false
	for i := range without {
		p := &without[i]
		if a.Hour { // without furl, these entries live as long as the others
			p.Usage.CacheWrite, p.Usage.CacheWrite1h = p.Usage.CacheWrite+p.Usage.CacheWrite1h, 0
		}
		switch {
		case !p.OnConversation():
		case first:
			p.Usage = usageWithout(p.Usage, more, edited, a.still, fresh)
			first = false
		case compacted: // what furl has hidden is in the provider's summary
		default:
			p.Usage = usageWithout(p.Usage, more, false, false, 0)
		}
		compacted = compacted || p.Kind == furl.PassCompaction
	}
	a.billed.Passes = without
	c, _ := sum(&a.billed)
	return c
}

// compactingCost returns the cost of the request for an agent that compacts, with that of
// the compaction if there was one since the previous request. The summary is asked for
// with the prompt before it. After it, the cache has the instructions and tools only.
func (a *alternative) compactingCost(prompt, hidden int) float64 {
	now, times := compacting(prompt+hidden, a.Window)
	before, earlier := compacting(prompt+hidden-min(a.fresh, prompt+hidden), a.Window)
	if times <= earlier {
		return a.cost(now-prompt, a.edited, a.fresh)
	}
	cost := a.cost(now-prompt, true, now-(compacted(a.Window)-summarySize(a.Window)))
	ask := a.billed
	ask.Passes, ask.Usage = nil, furl.Usage{Input: before, Output: summarySize(a.Window)}
	if a.still {
		ask.Usage.Input, ask.Usage.CacheRead = 0, before
	}
	asked, _ := sum(&ask)
	return cost + asked
}

// takeFrom removes tokens from a usage, first those read from the cache.
func takeFrom(u *furl.Usage, n int) {
	for _, class := range []*int{&u.CacheRead, &u.Input, &u.CacheWrite, &u.CacheWrite1h} {
		taken := min(*class, n)
		*class, n = *class-taken, n-taken
	}
}
