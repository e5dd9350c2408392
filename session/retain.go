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
// those in which nothing happened for so long, and then the oldest until the
// store is small enough. A session that was taken in from elsewhere is as old
// as its recording (SessionInfo.Newest). The zero value keeps everything.
type Retention struct {
	Age  time.Duration // since something last happened; 0: no limit
	Size int64         // of the store, in bytes; 0: no limit
}

// spared is how long a session stays that was just written to, whatever its
// age and the store's size: somebody may be at work in it.
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
	slices.SortStableFunc(infos, func(x, y furl.SessionInfo) int { return x.Newest().Compare(y.Newest()) }) // oldest first
	now := a.o.Now()
	var gone []furl.SessionInfo
	if r.Age > 0 {
		young := infos[:0:0]
		for _, info := range infos {
			if now.Sub(info.Newest()) <= r.Age || now.Sub(info.Updated) < min(spared, r.Age) {
				young = append(young, info)
				continue
			}
			if err := a.Delete(ctx, info.Session); err != nil && !errors.Is(err, furl.ErrNoSession) {
				return gone, fmt.Errorf("retention: %w", err)
			}
			gone = append(gone, info)
		}
		infos = young
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
		if stats.Total <= size {
			return gone, nil
		}
		if now.Sub(info.Updated) < spared {
			continue
		}
		if err := a.Delete(ctx, info.Session); err != nil && !errors.Is(err, furl.ErrNoSession) {
			return gone, fmt.Errorf("retention: %w", err)
		}
		gone = append(gone, info)
	}
	return gone, nil
}
