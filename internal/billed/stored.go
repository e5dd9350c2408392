package billed

import (
	"context"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Known returns the cost in US dollars, nil if no request has a known price.
func (b *Bill) Known() *float64 {
	if b.Requests <= b.Unpriced {
		return nil
	}
	return &b.Cost
}

// Stored returns what a session of a store was billed in US dollars, nil if no usage with a
// known price is recorded. It reads the records.
func Stored(ctx context.Context, store storage.Store, info *storage.SessionInfo, models Models) (*float64, error) {
	var records []furl.Record
	for r, err := range store.Read(ctx, info.SessionKey, 0) {
		if err != nil {
			return nil, fmt.Errorf("read session %s: %w", info.Session, err)
		}
		if m, ok := r.Body.(*furl.Message); ok { // its content is not needed
			r.Body = &furl.Message{Role: m.Role}
		}
		records = append(records, r)
	}
	b := Sum(OfStored(info.Session, &info.Meta, records, models))
	return b.Known(), nil
}
