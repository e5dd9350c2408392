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
	t.Fresh.add(q.Usage.Input, q.Prices.Input)
	t.Read.add(q.Usage.CacheRead, q.Prices.CacheRead)
	t.Write.add(q.Usage.CacheWrite, q.Prices.CacheWrite)
	t.WriteHour.add(q.Usage.CacheWrite1h, q.Prices.CacheWrite1h)
	t.Output.add(q.Usage.Output, q.Prices.Output)
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
