package session

import "github.com/furlhq/furl"

// Totals are the sums of requests. Costs are in US dollars, at the prices of each
// request's model.
type Totals struct {
	// Requests is the number of requests. Estimated counts those without a reported
	// size, and Unpriced those without a cost: the model's prices or the usage are
	// unknown.
	Requests, Estimated, Unpriced int
	// Fresh is input that is neither read from nor written to the prompt cache.
	// Write are cache entries of the default lifetime, WriteHour those of one hour.
	Fresh, Read, Write, WriteHour, Output Class
	// Own are the summaries, KeepAlive the requests that keep the prompt cache
	// alive. Without counts neither.
	Own, KeepAlive Class
	// Cost is the cost of the requests without Own and KeepAlive, Without the
	// estimated cost without reductions.
	Cost, Without float64
	// Tokens is the size of the prompts, TokensWithout their estimated size without
	// reductions.
	Tokens, TokensWithout int
	// Over counts the requests that would have exceeded the model's context window
	// without reductions.
	Over int
	// Refetched counts the repeated calls, Breaks the cache breaks by their reason.
	Refetched int
	Breaks    map[string]int
}

// Class is a price class: its tokens, and their cost as far as prices are known.
type Class struct {
	Tokens int
	Cost   float64
}

func (c *Class) add(tokens int, perMillion float64) {
	c.Tokens += tokens
	c.Cost += float64(tokens) * perMillion / 1e6
}

// TotalsOf sums up requests.
func TotalsOf(requests []Request) Totals {
	t := Totals{Breaks: make(map[string]int)}
	for i := range requests {
		t.add(&requests[i])
	}
	return t
}

func (t *Totals) add(q *Request) {
	t.Requests++
	if q.Estimated {
		t.Estimated++
	}
	if !q.Priced {
		t.Unpriced++
	}
	if len(q.Passes) == 0 {
		t.addUsage(&q.Usage, &q.Prices)
	}
	for i := range q.Passes {
		t.addUsage(&q.Passes[i].Usage, &q.Passes[i].Prices)
	}
	t.Own.Tokens += q.OwnTokens
	t.Own.Cost += q.Own
	t.Cost += q.Cost
	t.Without += q.Without
	t.Tokens += q.Size
	t.TokensWithout += q.SizeWithout
	if q.Over {
		t.Over++
	}
	t.Refetched += q.Refetched
	if q.Break != "" {
		t.Breaks[q.Break]++
	}
}

func (t *Totals) addUsage(u *furl.Usage, p *furl.Prices) {
	t.Fresh.add(u.Input, p.Input)
	t.Read.add(u.CacheRead, p.CacheRead)
	t.Write.add(u.CacheWrite, p.CacheWrite)
	t.WriteHour.add(u.CacheWrite1h, p.CacheWrite1h)
	t.Output.add(u.Output, p.Output)
}
