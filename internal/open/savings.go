package open

import (
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/storage"
)

// savingsOf is the entry of a request in its session's ledger.
func savingsOf(a *price.Account) storage.Savings {
	s := storage.Savings{
		Requests: 1, Tokens: a.Prompt, TokensWithout: a.PromptWithout, SummaryTokens: a.OwnTokens,
		Cost: a.Cost, CostWithout: a.Without, SummaryCost: a.Own,
		TokensSpread: a.PromptMost - a.PromptWithout, CostSpread: a.WithoutMost - a.Without,
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
// this process. It reports whether the commit has added a request.
func (a *shared) addSavings(key furl.SessionKey, was, is *storage.Ledger) bool {
	now, before := is.Total(), was.Total()
	if now.Requests <= before.Requests && now.Pings <= before.Pings {
		return false
	}
	delta := now
	delta.Add(storage.Savings{
		Requests: -before.Requests, Tokens: -before.Tokens, TokensWithout: -before.TokensWithout, SummaryTokens: -before.SummaryTokens,
		Pings: -before.Pings, PingTokens: -before.PingTokens, PingCost: -before.PingCost,
		OverWindow: -before.OverWindow, Unpriced: -before.Unpriced, Cost: -before.Cost, CostWithout: -before.CostWithout, SummaryCost: -before.SummaryCost,
		Repairs: -before.Repairs, RepairTokens: -before.RepairTokens,
		TokensSpread: -before.TokensSpread, CostSpread: -before.CostSpread,
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.recorded == nil {
		a.recorded = make(map[furl.SessionKey]storage.Savings)
	}
	s, ok := a.recorded[key]
	if ok || len(a.recorded) < maxRecorded {
		s.Add(delta)
		a.recorded[key] = s
	}
	return now.Requests > before.Requests
}

// maxLedgerModel is the longest name of a model in a ledger, in bytes. Clients choose
// the names.
const maxLedgerModel = 100

// addToLedger adds a request to the ledger of a session's new metadata.
func (c *Change) addToLedger(m *storage.Meta, sent *policy.Fit, hidden int) {
	if m.Ledger == nil {
		m.Ledger = &storage.Ledger{}
	}
	m.Ledger.Size, m.Ledger.Hidden = c.sizes.Estimate(), hidden
	m.Ledger.UnknownTypes = sent.UnknownTypes
	c.all.countUnknownTypes(sent.UnknownTypes)
	one := savingsOf(sent.Account)
	if r := sent.Repair; r != nil {
		one.Repairs, one.RepairTokens = 1, r.After-r.Before
	}
	one.Add(c.s.unused)
	m.Ledger.Add(sent.At.Format(time.DateOnly), LedgerModel(sent.Model), one)
}

// LedgerModel returns a model's name for a ledger.
func LedgerModel(model string) string {
	if len(model) > maxLedgerModel {
		return strings.ToValidUTF8(model[:maxLedgerModel], "")
	}
	return model
}

// lastPing returns the time of the newest ping, zero if there was none.
func (c *Change) lastPing() time.Time {
	if c.Meta().Ledger == nil {
		return time.Time{}
	}
	return c.Meta().Ledger.LastPing
}
