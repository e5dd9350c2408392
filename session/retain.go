package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Retention says which sessions are deleted automatically: those without activity
// for Age, and then the oldest until the store is at most Size. The age of an
// imported session is that of its recording (SessionInfo.Newest). The zero value
// deletes nothing.
type Retention struct {
	Age  time.Duration // since the last activity; 0: no limit
	Size int64         // of the store, in bytes; 0: no limit
	// Tenants has other ages for some tenants; 0: no limit.
	Tenants map[furl.Tenant]time.Duration
}

// ageOf returns the age of a tenant's sessions.
func (r *Retention) ageOf(t furl.Tenant) time.Duration {
	if age, ok := r.Tenants[t]; ok {
		return age
	}
	return r.Age
}

// Shortest returns the shortest age of any tenant, 0 if there is none.
func (r *Retention) Shortest() time.Duration {
	shortest := r.Age
	for _, age := range r.Tenants {
		if age > 0 && (shortest == 0 || age < shortest) {
			shortest = age
		}
	}
	return shortest
}

// minIdle is how long a session is kept after a write in any case, because it may be
// in use.
const minIdle = time.Hour

// Retain deletes sessions by a retention and returns them. It deletes none under legal
// hold. It covers the sessions of
// all tenants, or of this tenant if the store cannot list tenants
// (storage.TenantLister). It returns an error if the store cannot delete, or if Size
// is set and the store cannot report its size.
func (a *Sessions) Retain(ctx context.Context, r Retention) ([]storage.SessionInfo, error) {
	if r.Shortest() == 0 && r.Size <= 0 {
		return nil, nil
	}
	if _, ok := a.Store().(storage.Deleter); !ok {
		return nil, errors.New("retention: the store does not support deleting sessions")
	}
	infos, err := a.listAll(ctx)
	if err != nil {
		return nil, fmt.Errorf("retention: %w", err)
	}
	holds, err := storage.Holds(ctx, a.Store())
	if err != nil {
		return nil, fmt.Errorf("retention: %w", err)
	}
	infos = slices.DeleteFunc(infos, func(info storage.SessionInfo) bool { return storage.HoldOf(holds, info.SessionKey) != nil })
	slices.SortStableFunc(infos, func(x, y storage.SessionInfo) int { return x.Newest().Compare(y.Newest()) }) // oldest first
	now := a.Options().Now().Round(0)
	var gone []storage.SessionInfo
	if r.Shortest() > 0 {
		var old, young []storage.SessionInfo
		for _, info := range infos {
			age := r.ageOf(info.Tenant)
			if age == 0 || now.Sub(info.Newest()) <= age || now.Sub(info.Updated) < min(minIdle, age) {
				young = append(young, info)
				continue
			}
			old = append(old, info)
		}
		if gone, err = a.deleteAll(ctx, old); err != nil {
			return gone, fmt.Errorf("retention: %w", err)
		}
		infos = young
	}
	if r.Size <= 0 {
		return gone, nil
	}
	more, err := a.shrink(ctx, infos, r.Size, now)
	return append(gone, more...), err
}

// Tenants returns the tenants that have sessions, or only this one if the store
// cannot list them.
func (a *Sessions) Tenants(ctx context.Context) ([]furl.Tenant, error) {
	if lister, ok := a.Store().(storage.TenantLister); ok {
		list, err := lister.Tenants(ctx)
		return slices.DeleteFunc(list, func(t furl.Tenant) bool { return t == storage.HoldTenant }), err
	}
	return []furl.Tenant{a.Tenant()}, nil
}

// listAll lists the sessions of all tenants.
func (a *Sessions) listAll(ctx context.Context) ([]storage.SessionInfo, error) {
	tenants, err := a.Tenants(ctx)
	if err != nil {
		return nil, err
	}
	var infos []storage.SessionInfo
	for _, tenant := range tenants {
		for info, err := range a.Store().Sessions(ctx, tenant, storage.SessionQuery{}) {
			if err != nil {
				return nil, err
			}
			infos = append(infos, info)
		}
	}
	return infos, nil
}

// shrink deletes the oldest of these sessions until the store has at most size
// bytes. The disk space of a session is not known in advance, and both deleting and
// measuring take time proportional to the store. So shrink deletes about half of the
// excess at once and measures again.
func (a *Sessions) shrink(ctx context.Context, infos []storage.SessionInfo, size int64, now time.Time) ([]storage.SessionInfo, error) {
	checker, ok := a.Store().(storage.Checker)
	if !ok {
		return nil, errors.New("retention: the store does not report its size")
	}
	infos = slices.DeleteFunc(infos, func(info storage.SessionInfo) bool { return now.Sub(info.Updated) < minIdle })
	var gone []storage.SessionInfo
	for len(infos) > 0 {
		stats, err := checker.Stats(ctx)
		if err != nil {
			return gone, fmt.Errorf("retention: %w", err)
		}
		if stats.Total <= size {
			break
		}
		n := oldestWithin(infos, float64(stats.Total-size)/2*float64(stats.MessageBytes)/float64(stats.Total))
		deleted, err := a.deleteAll(ctx, infos[:n])
		if gone = append(gone, deleted...); err != nil {
			return gone, fmt.Errorf("retention: %w", err)
		}
		infos = infos[n:]
	}
	return gone, nil
}

// oldestWithin returns how many of the oldest sessions have at most so many bytes of
// messages together, at least 1.
func oldestWithin(infos []storage.SessionInfo, bytes float64) int {
	sum := float64(infos[0].Bytes)
	for n := 1; n < len(infos); n++ {
		if sum += float64(infos[n].Bytes); sum > bytes {
			return n
		}
	}
	return len(infos)
}

// deleteAll deletes sessions, in one operation if the store supports it, and returns
// the deleted ones.
func (a *Sessions) deleteAll(ctx context.Context, infos []storage.SessionInfo) (gone []storage.SessionInfo, err error) {
	if many, ok := a.Store().(storage.ManyDeleter); ok && len(infos) > 1 {
		keys := make([]furl.SessionKey, len(infos))
		for i := range infos {
			keys[i] = infos[i].SessionKey
		}
		err := many.DeleteMany(ctx, keys)
		if err != nil {
			for _, info := range infos {
				a.open.For(info.Tenant).Deleted(info.Session) // if it still exists, it is read again
			}
			return nil, err
		}
		for _, info := range infos {
			err = errors.Join(err, a.deleted(info.SessionKey))
		}
		return infos, err
	}
	for _, info := range infos {
		if err := a.For(info.Tenant).Delete(ctx, info.Session); err != nil && !errors.Is(err, storage.ErrNoSession) {
			return gone, err
		}
		gone = append(gone, info)
	}
	return gone, nil
}
