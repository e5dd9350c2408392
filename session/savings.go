package session

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/storage"
)

// savings is the entry of a request in its session's ledger.
func (a *Account) savings() storage.Savings {
	s := storage.Savings{
		Requests: 1, Tokens: a.Prompt, TokensWithout: a.PromptWithout, SummaryTokens: a.OwnTokens,
		Cost: a.Cost, CostWithout: a.Without, SummaryCost: a.Own,
	}
	if a.Over {
		s.OverWindow = 1
	}
	if !a.Priced {
		s.Unpriced = 1
	}
	return s
}

// maxRecorded is the largest number of sessions whose savings are kept in memory.
const maxRecorded = 1000

// addSavings adds what a commit has added to a session's ledger to the savings of
// this process.
func (a *shared) addSavings(key furl.SessionKey, was, is *storage.Ledger) {
	now, before := is.Total(), was.Total()
	if now.Requests <= before.Requests {
		return
	}
	delta := now
	delta.Add(storage.Savings{
		Requests: -before.Requests, Tokens: -before.Tokens, TokensWithout: -before.TokensWithout, SummaryTokens: -before.SummaryTokens,
		OverWindow: -before.OverWindow, Unpriced: -before.Unpriced, Cost: -before.Cost, CostWithout: -before.CostWithout, SummaryCost: -before.SummaryCost,
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.recorded == nil {
		a.recorded = make(map[furl.SessionKey]storage.Savings)
	}
	s, ok := a.recorded[key]
	if !ok && len(a.recorded) >= maxRecorded {
		return
	}
	s.Add(delta)
	a.recorded[key] = s
}

// Savings returns the savings of the requests that this process has recorded, by
// session, of all tenants. It has at most 1,000 sessions.
func (a *shared) Savings() map[furl.SessionKey]storage.Savings {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.recorded)
}

// SavingsReport sums up the ledgers of a tenant's sessions.
type SavingsReport struct {
	// Since is the first day, "" for all.
	Since string      `json:"since,omitempty"`
	Total SavingsLine `json:"total"`
	// Lines has the savings by day, agent and model, the newest day first.
	Lines []SavingsLine `json:"days"`
	// Unknown is the number of sessions that were recorded without a ledger.
	Unknown int `json:"sessions_unknown"`
}

// SavingsLine is a line of a report. Day, Agent and Model are "" in a total.
type SavingsLine struct {
	Day   string `json:"day,omitempty"`
	Agent string `json:"agent,omitempty"`
	Model string `json:"model,omitempty"`
	storage.Savings
	// TokensSaved and Saved are what was saved, in tokens and in US dollars.
	TokensSaved int     `json:"tokens_saved"`
	Saved       float64 `json:"saved"`
}

// ReportSavings sums up the ledgers of a tenant's sessions from a day on, such as
// 2026-11-23, or of all days if it is "". It reads no records.
func ReportSavings(ctx context.Context, store storage.Store, tenant furl.Tenant, since string) (*SavingsReport, error) {
	q := storage.SessionQuery{}
	if day, err := time.Parse(time.DateOnly, since); err == nil {
		q.Since = day.AddDate(0, 0, -1) // time zones differ by up to a day
	}
	type of struct{ day, agent, model string }
	sums := make(map[of]*storage.Savings)
	rep := &SavingsReport{Since: since, Lines: []SavingsLine{}}
	for info, err := range store.Sessions(ctx, tenant, q) {
		if err != nil {
			return nil, fmt.Errorf("report savings: %w", err)
		}
		if info.Ledger == nil {
			if info.Records > info.Imported && info.ForkOf == "" {
				rep.Unknown++
			}
			continue
		}
		for _, d := range info.Ledger.Days {
			if d.Day < since {
				continue
			}
			key := of{d.Day, agents.Name(info.Client), d.Model}
			if sums[key] == nil {
				sums[key] = new(storage.Savings)
			}
			sums[key].Add(d.Savings)
			rep.Total.Add(d.Savings)
		}
	}
	for key, s := range sums {
		rep.Lines = append(rep.Lines, SavingsLine{key.day, key.agent, key.model, *s, s.SavedTokens(), s.Saved()})
	}
	slices.SortFunc(rep.Lines, func(a, b SavingsLine) int {
		return cmp.Or(cmp.Compare(b.Day, a.Day), cmp.Compare(b.TokensSaved, a.TokensSaved), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Model, b.Model))
	})
	rep.Total.TokensSaved, rep.Total.Saved = rep.Total.SavedTokens(), rep.Total.Savings.Saved()
	return rep, nil
}
