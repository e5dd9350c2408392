package session

import (
	"context"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/storage"
)

// Ping is a request that furl has sent to keep the prompt cache of a session alive
// over a pause. It repeats the session's last request and generates nothing.
type Ping struct {
	// Model is the name of the model in requests, Of its description, with the
	// prices and the lifetime of the request's cache entries.
	Model string
	Of    *furl.Model
	// At is when the request was sent, Usage what the provider has reported.
	At    time.Time
	Usage furl.Usage
}

// RecordPing adds a ping to the session's ledger as a cost of furl. The next plan takes
// the prompt cache as used at that time. Nothing is added to the transcript. It returns
// the cost in US dollars, 0 if no price is known, also with an error.
func (s *Session) RecordPing(ctx context.Context, p Ping) (float64, error) {
	cost := 0.0
	if price.Known(p.Of.Prices) {
		cost = price.OfRequest(p.Of, p.Usage, p.At)
	}
	one := storage.Savings{Pings: 1, PingTokens: p.Usage.Prompt() + p.Usage.Output, PingCost: cost}
	err := s.Internal().Update(ctx, open.OnDisk, func(c *open.Change) error {
		m := c.Meta().Clone()
		if m.Ledger == nil {
			m.Ledger = &storage.Ledger{}
		}
		m.Ledger.Add(p.At.Format(time.DateOnly), open.LedgerModel(p.Model), one)
		if p.Usage.CacheRead > 0 && p.At.After(m.Ledger.LastPing) {
			m.Ledger.LastPing = p.At.UTC().Round(0)
			m.Ledger.Next = m.Ledger.Next.UsedAt(m.Ledger.LastPing)
		}
		c.SetMeta(m)
		return nil
	})
	if err != nil {
		return cost, fmt.Errorf("record ping of session %s: %w", s.ID(), err)
	}
	return cost, nil
}
