package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/furlhq/furl"
)

// SavingsReport sums up the ledgers of a tenant's sessions.
type SavingsReport struct {
	// Since is the first day, "" for all.
	Since string      `json:"since,omitempty"`
	Total SavingsLine `json:"total"`
	// Lines has the savings by day, agent and model, the newest day first.
	Lines []SavingsLine `json:"days"`
	// Unknown is the number of sessions with requests that were recorded without a ledger.
	Unknown int `json:"sessions_unknown"`
}

// SavingsLine is a line of a report. Day, Agent and Model are "" in a total.
type SavingsLine struct {
	Day   string `json:"day,omitempty"`
	Agent string `json:"agent,omitempty"`
	Model string `json:"model,omitempty"`
	Savings
	// TokensSaved and Saved are what was saved, in tokens and in US dollars.
	TokensSaved int     `json:"tokens_saved"`
	Saved       float64 `json:"saved"`
}

// ReportSavings sums up the ledgers of a tenant's sessions from a day on, such as
// 2026-11-23, or of all days if it is "". It reads no records of sessions with a ledger. name gives the agent of a
// Meta.Client.
func ReportSavings(ctx context.Context, store Store, tenant furl.Tenant, since string, name func(client string) string) (*SavingsReport, error) {
	q := SessionQuery{}
	if day, err := time.Parse(time.DateOnly, since); err == nil {
		q.Since = day.AddDate(0, 0, -1) // time zones differ by up to a day
	}
	type of struct{ day, agent, model string }
	sums := make(map[of]*Savings)
	rep := &SavingsReport{Since: since, Lines: []SavingsLine{}}
	for info, err := range store.Sessions(ctx, tenant, q) {
		if err != nil {
			return nil, fmt.Errorf("report savings: %w", err)
		}
		if info.Ledger == nil {
			if info.Imported == 0 && info.ForkOf == "" { // changes of an imported session are not requests
				counted, err := HasRequests(ctx, store, info.SessionKey)
				if err != nil {
					return nil, fmt.Errorf("report savings: %w", err)
				}
				if counted {
					rep.Unknown++
				}
			}
			continue
		}
		for _, d := range info.Ledger.Days {
			if d.Day < since {
				continue
			}
			key := of{d.Day, name(info.Client), d.Model}
			if sums[key] == nil {
				sums[key] = new(Savings)
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

// HasRequests reports whether a request of a session was answered and recorded. It reads
// records up to the first one. A session whose keys were destroyed has none that can be
// counted.
func HasRequests(ctx context.Context, store Store, key furl.SessionKey) (bool, error) {
	for r, err := range store.Read(ctx, key, 0) {
		if errors.Is(err, ErrDestroyed) || errors.Is(err, ErrNoSession) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if _, ok := r.Body.(*furl.Exchange); ok {
			return true, nil
		}
	}
	return false, nil
}
