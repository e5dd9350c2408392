package sessiontest

import (
	"context"
	"errors"
	"iter"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Broken is a store that can be down.
type Broken struct {
	storage.Store
	Down bool
}

// ErrDown is what it says then.
var ErrDown = errors.New("the store is down")

// Append implements storage.Store.
func (b *Broken) Append(ctx context.Context, key furl.SessionKey, batch storage.Batch) error {
	if b.Down {
		return ErrDown
	}
	return b.Store.Append(ctx, key, batch)
}

// Match implements storage.Store.
func (b *Broken) Match(ctx context.Context, tenant furl.Tenant, chains []furl.Digest, limit int) ([]storage.Matched, error) {
	if b.Down {
		return nil, ErrDown
	}
	return b.Store.Match(ctx, tenant, chains, limit)
}

// Read implements storage.Store.
func (b *Broken) Read(ctx context.Context, key furl.SessionKey, after furl.Seq) iter.Seq2[furl.Record, error] {
	if b.Down {
		return func(yield func(furl.Record, error) bool) { yield(furl.Record{}, ErrDown) }
	}
	return b.Store.Read(ctx, key, after)
}
