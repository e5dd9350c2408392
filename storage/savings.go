package storage

import (
	"slices"
	"time"
)

// Savings compares requests with the same requests without reductions. Tokens are
// those of prompts, in the provider's tokens. Costs are list prices in US dollars;
// a subscription does not pay them. docs/internals/cost-model.md has the rule.
type Savings struct {
	Requests int `json:"requests"`
	// Tokens is what was sent, TokensWithout what would have been sent.
	Tokens        int `json:"tokens"`
	TokensWithout int `json:"tokens_without"`
	// SummaryTokens is what requests for summaries sent and received.
	SummaryTokens int `json:"summary_tokens,omitempty"`
	// Pings is the number of requests that kept the prompt cache alive over pauses,
	// PingTokens the sum of their prompts.
	Pings      int `json:"pings,omitempty"`
	PingTokens int `json:"ping_tokens,omitempty"`
	// TokensWithout and CostWithout are those of an agent that compacts before its window
	// is full. An agent that loses nothing, with prompts up to the window, would have sent
	// TokensSpread more and paid CostSpread more, or less if it is negative.
	TokensSpread int     `json:"tokens_spread,omitempty"`
	CostSpread   float64 `json:"cost_spread,omitempty"`
	// OverWindow is the number of requests that would not have fit the model's
	// context window.
	OverWindow int `json:"over_window,omitempty"`
	// Repairs is the number of requests that showed text of files again because an edit had
	// failed for it, RepairTokens what that added to their prompts.
	Repairs      int `json:"repairs,omitempty"`
	RepairTokens int `json:"repair_tokens,omitempty"`
	// Unpriced is the number of requests whose model has no known price. They are
	// not part of the costs.
	Unpriced int `json:"unpriced,omitempty"`
	// Cost is the cost of the requests, CostWithout what they would have cost, and
	// SummaryCost and PingCost the costs of summaries and pings, which Cost does not
	// include.
	Cost        float64 `json:"cost"`
	CostWithout float64 `json:"cost_without"`
	SummaryCost float64 `json:"summary_cost,omitempty"`
	PingCost    float64 `json:"ping_cost,omitempty"`
}

// Add adds the figures of other requests.
func (s *Savings) Add(o Savings) {
	s.Requests += o.Requests
	s.Tokens += o.Tokens
	s.TokensWithout += o.TokensWithout
	s.SummaryTokens += o.SummaryTokens
	s.Pings += o.Pings
	s.PingTokens += o.PingTokens
	s.TokensSpread += o.TokensSpread
	s.CostSpread += o.CostSpread
	s.OverWindow += o.OverWindow
	s.Repairs += o.Repairs
	s.RepairTokens += o.RepairTokens
	s.Unpriced += o.Unpriced
	s.Cost += o.Cost
	s.CostWithout += o.CostWithout
	s.SummaryCost += o.SummaryCost
	s.PingCost += o.PingCost
}

// TokensSent is how many tokens were sent, including those of summaries and pings.
func (s Savings) TokensSent() int { return s.Tokens + s.SummaryTokens + s.PingTokens }

// Spent is the cost of the requests, summaries and pings.
func (s Savings) Spent() float64 { return s.Cost + s.SummaryCost + s.PingCost }

// SavedTokens is how many tokens less were sent, negative if more were.
func (s Savings) SavedTokens() int { return s.TokensWithout - s.TokensSent() }

// Saved is how much less the requests have cost, negative if they cost more.
func (s Savings) Saved() float64 { return s.CostWithout - s.Spent() }

// DaySavings are the savings of one day with one model.
type DaySavings struct {
	// Day is a date such as 2026-11-23, in the time zone of the process that
	// recorded the requests.
	Day   string `json:"day"`
	Model string `json:"model"`
	Savings
}

// Ledger has the savings of a session's recorded requests. It is updated with each
// of them, so that nobody has to read the session.
type Ledger struct {
	// Size is the estimated size of the context after the newest request, Hidden
	// the original size of what is hidden in it.
	Size   int `json:"context_tokens"`
	Hidden int `json:"hidden_tokens"`
	// UnknownTypes are types of blocks and items in the newest request that furl does
	// not know, at most 9.
	UnknownTypes []string `json:"unknown_types,omitempty"`
	// LastPing is the time of the newest request that kept the prompt cache alive,
	// zero if there was none.
	LastPing time.Time `json:"last_ping,omitzero"`
	// Next is what the next input costs after the newest request, nil if that is unknown.
	Next *NextInput `json:"next_input,omitempty"`
	// Days has the savings by day and model, in the order of their first request.
	Days []DaySavings `json:"days"`
}

// maxDays is the largest length of Ledger.Days. Beyond it, the oldest entries become
// one, so that the ledger of a session that is used for years stays small.
const maxDays = 200

// Add adds the savings of one request.
func (l *Ledger) Add(day, model string, s Savings) {
	for i := len(l.Days) - 1; i >= 0; i-- {
		if d := &l.Days[i]; d.Day == day && d.Model == model {
			d.Savings.Add(s)
			return
		}
	}
	if len(l.Days) >= maxDays {
		l.Days[1].Savings.Add(l.Days[0].Savings)
		l.Days = slices.Delete(l.Days, 0, 1)
	}
	l.Days = append(l.Days, DaySavings{day, model, s})
}

// Sum is the sum of all days as a line.
func (l *Ledger) Sum() *SavingsLine {
	t := l.Total()
	return &SavingsLine{Savings: t, TokensSaved: t.SavedTokens(), Saved: t.Saved()}
}

// Total is the sum of all days.
func (l *Ledger) Total() (t Savings) {
	if l == nil {
		return t
	}
	for i := range l.Days {
		t.Add(l.Days[i].Savings)
	}
	return t
}
