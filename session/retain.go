package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/furlhq/furl"
)

// Retention says which sessions a store may lose by themselves: whole ones,
// those without a new record for so long, and then the oldest until the store
// is small enough. The zero value keeps everything.
type Retention struct {
	Age  time.Duration // since the newest record; 0: no limit
	Size int64         // of the store, in bytes; 0: no limit
}

// spared is how young a session is that size does not delete: somebody may be
// at work in it.
const spared = time.Hour

// Retain deletes what a retention gives up, and tells what that was. A store
// that cannot delete, or cannot tell its size, is an error if that is asked
// for.
func (a *Sessions) Retain(ctx context.Context, r Retention) ([]furl.SessionInfo, error) {
	if r == (Retention{}) {
		return nil, nil
	}
	if _, ok := a.store.(furl.Deleter); !ok {
		return nil, errors.New("retention: this store cannot delete")
	}
	var infos []furl.SessionInfo
	for info, err := range a.store.Sessions(ctx, a.tenant, furl.SessionQuery{}) {
		if err != nil {
			return nil, fmt.Errorf("retention: %w", err)
		}
		infos = append(infos, info)
	}
	slices.Reverse(infos) // oldest first
	now := a.o.Now()
	var gone []furl.SessionInfo
	if r.Age > 0 {
		for len(infos) > 0 && now.Sub(infos[0].Updated) > r.Age {
			if err := a.Delete(ctx, infos[0].Session); err != nil && !errors.Is(err, furl.ErrNoSession) {
				return gone, fmt.Errorf("retention: %w", err)
			}
			gone, infos = append(gone, infos[0]), infos[1:]
		}
	}
	if r.Size <= 0 {
		return gone, nil
	}
	more, err := a.shrink(ctx, infos, r.Size, now)
	return append(gone, more...), err
}

// shrink deletes the oldest of these sessions until the store has at most so
// many bytes. How many bytes a session takes up is not known beforehand, so
// it looks again after each.
func (a *Sessions) shrink(ctx context.Context, infos []furl.SessionInfo, size int64, now time.Time) ([]furl.SessionInfo, error) {
	checker, ok := a.store.(furl.Checker)
	if !ok {
		return nil, errors.New("retention: this store cannot tell its size")
	}
	var gone []furl.SessionInfo
	for _, info := range infos {
		stats, err := checker.Stats(ctx)
		if err != nil {
			return gone, fmt.Errorf("retention: %w", err)
		}
		if stats.Total <= size || now.Sub(info.Updated) < spared {
			return gone, nil
		}
		if err := a.Delete(ctx, info.Session); err != nil && !errors.Is(err, furl.ErrNoSession) {
			return gone, fmt.Errorf("retention: %w", err)
		}
		gone = append(gone, info)
	}
	return gone, nil
}
