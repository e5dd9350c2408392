package encrypted

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Check implements storage.Checker. After the check of the store below, which
// needs no key, it decrypts the records, contents and metadata of every session
// whose tenant has keys.
func (s *Store) Check(ctx context.Context, mend bool) iter.Seq2[storage.Problem, error] {
	return func(yield func(storage.Problem, error) bool) {
		for p, err := range s.inner.Check(ctx, mend) {
			if !yield(p, err) || err != nil {
				return
			}
		}
		tenants, err := s.inner.Tenants(ctx)
		if err != nil {
			yield(storage.Problem{}, fmt.Errorf("check: %w", err))
			return
		}
		for _, tenant := range tenants {
			if !s.checkTenant(ctx, tenant, yield) {
				return
			}
		}
	}
}

// checkTenant reports whether to go on.
func (s *Store) checkTenant(ctx context.Context, tenant furl.Tenant, yield func(storage.Problem, error) bool) bool {
	k, err := s.keysOf(ctx, tenant)
	var missing *KeyError
	if errors.As(err, &missing) {
		return yield(storage.Problem{Session: furl.SessionKey{Tenant: tenant}, Text: missing.Error()}, nil)
	}
	if err != nil {
		yield(storage.Problem{}, fmt.Errorf("check: %w", err))
		return false
	}
	if k != nil && !k.destroyed.IsZero() {
		return true
	}
	for info, err := range s.inner.Sessions(ctx, tenant, storage.SessionQuery{}) {
		if err != nil {
			yield(storage.Problem{}, err)
			return false
		}
		for _, p := range s.checkSession(ctx, k, info) {
			if !yield(p, nil) {
				return false
			}
		}
		if err := ctx.Err(); err != nil {
			yield(storage.Problem{}, err)
			return false
		}
	}
	return true
}

func (s *Store) checkSession(ctx context.Context, k *keys, info storage.SessionInfo) (problems []storage.Problem) {
	found := func(seq furl.Seq, err error) {
		problems = append(problems, storage.Problem{Session: info.SessionKey, Seq: seq, Text: err.Error()})
	}
	key := info.SessionKey
	if err := k.openInfo(&info); err != nil {
		found(0, err)
	}
	if k == nil && info.Sealed == nil {
		return problems // what is plain was checked below
	}
	for r, err := range s.inner.Read(ctx, key, 0) {
		if err != nil {
			return problems // reported by the store below, or deleted meanwhile
		}
		if _, err := k.record(key, r); err != nil {
			found(r.Seq, err)
			if k == nil {
				return problems
			}
		}
	}
	if k == nil {
		return problems
	}
	ids, err := s.inner.ContentIDs(ctx, key)
	if err != nil {
		return problems
	}
	for _, id := range ids {
		data, err := s.inner.Content(ctx, key, id)
		if err != nil || k.plain && furl.DigestOf(data) == id {
			continue
		}
		if _, err := k.open(nil, contentPlace(id), data); err != nil {
			found(0, fmt.Errorf("content %v: %w", id, err))
		}
	}
	return problems
}
