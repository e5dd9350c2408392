package session

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
	// Tools is the cost of the provider's own tools.
	Tools float64
	// Own are the summaries, KeepAlive the requests that keep the prompt cache
	// alive. Without counts neither.
	Own, KeepAlive Class
	// Cost is the cost of the requests without Own and KeepAlive, Without and WithoutMost
	// the estimated cost without reductions (price.Account).
	Cost, Without, WithoutMost float64
	// Tokens is the size of the prompts, TokensWithout and TokensMost their estimated size
	// without reductions.
	Tokens, TokensWithout, TokensMost int
	// Over counts the requests that would have exceeded the model's context window
	// without reductions.
	Over int
	// Repairs counts the requests that showed text of files again because an edit had failed
	// for it, RepairTokens what that added to their prompts.
	Repairs, RepairTokens int
	// Refetched counts the repeated calls, Breaks the cache breaks by their reason.
	Refetched int
	Breaks    map[string]int
}

// Class is a price class: its tokens, and their cost as far as prices are known.
type Class struct {
	Tokens int
	Cost   float64
}

func (c *Class) add(tokens int, cost float64) {
	c.Tokens += tokens
	c.Cost += cost
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
	u, c := q.Passes.Sum(q.Usage), &q.Split
	t.Fresh.add(u.Input, c.Fresh)
	t.Read.add(u.CacheRead, c.CacheRead)
	t.Write.add(u.CacheWrite, c.CacheWrite)
	t.WriteHour.add(u.CacheWrite1h, c.CacheWrite1h)
	t.Output.add(u.Output, c.Output)
	t.Tools += c.Tools
	t.Own.Tokens += q.OwnTokens
	t.Own.Cost += q.Own
	t.Cost += q.Cost
	t.Without += q.Without
	t.WithoutMost += q.WithoutMost
	t.Tokens += q.Size
	t.TokensWithout += q.SizeWithout
	t.TokensMost += q.PromptMost
	if q.Over {
		t.Over++
	}
	if q.Repaired != "" {
		t.Repairs++
		t.RepairTokens += q.RepairTokens
	}
	t.Refetched += q.Refetched
	if q.Break != "" {
		t.Breaks[q.Break]++
	}
}
