package inmem

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

var (
	_ storage.Rewriter = (*Store)(nil)
	_ storage.KeyStore = (*Store)(nil)
)

// Rewrite implements storage.Rewriter.
func (s *Store) Rewrite(ctx context.Context, key furl.SessionKey, w storage.Rewrite) error {
	if err := s.rewrite(ctx, key, &w); err != nil {
		return fmt.Errorf("rewrite session %.140q: %w", key.Session, err)
	}
	return nil
}

func (s *Store) rewrite(ctx context.Context, key furl.SessionKey, w *storage.Rewrite) error {
	records, err := encode(w.Put)
	if err != nil {
		return err
	}
	b := w.Batch()
	var meta []byte
	if w.Meta != nil {
		if meta, err = json.Marshal(w.Meta); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return err
	}
	ses, err := s.session(key)
	switch {
	case err != nil:
		return err
	case furl.Seq(len(ses.records)) != w.Records:
		return fmt.Errorf("the session has %d records, not %d: %w", len(ses.records), w.Records, furl.ErrConflict)
	case !b.MetaMatches(ses.meta):
		return errMeta
	}
	for i := range w.Put {
		if n := w.Put[i].Seq; n == 0 || n > w.Records || ses.records[n-1].message != records[i].message {
			return fmt.Errorf("record %d is of another kind, or does not exist", n)
		}
	}
	t := s.tenants[key.Tenant]
	ses.records = slices.Clone(ses.records) // readers go on with what they have
	for i, r := range records {
		seq := w.Put[i].Seq
		was := ses.records[seq-1]
		ses.records[seq-1] = r
		ses.bytes += int64(r.size - was.size)
		if was.chain == r.chain {
			continue
		}
		at := ses.created
		places := slices.DeleteFunc(t.chains[was.chain], func(p place) bool {
			here := p.session == key.Session && p.seq == seq
			if here {
				at = p.at
			}
			return here
		})
		if t.chains[was.chain] = places; len(places) == 0 {
			delete(t.chains, was.chain)
		}
		if !r.chain.IsZero() {
			t.chains[r.chain] = append(t.chains[r.chain], place{key.Session, seq, at})
		}
	}
	ses.contents = maps.Clone(ses.contents)
	for _, d := range w.DropContents {
		delete(ses.contents, d)
	}
	for i, c := range w.Contents {
		ses.contents[b.ContentID(i)] = append([]byte{}, c...)
	}
	clear(ses.pages)
	for k := range ses.vectors {
		if t.vectors[k].sessions--; t.vectors[k].sessions == 0 {
			delete(t.vectors, k)
		}
	}
	clear(ses.vectors)
	ses.indexed = 0
	ses.setMeta(meta)
	s.notify(key)
	return nil
}

// ContentIDs implements storage.Rewriter.
func (s *Store) ContentIDs(ctx context.Context, key furl.SessionKey) ([]furl.Digest, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	err := s.ready(ctx)
	var ses *session
	if err == nil {
		ses, err = s.session(key)
	}
	if err != nil {
		return nil, fmt.Errorf("list contents: %w", err)
	}
	return slices.SortedFunc(maps.Keys(ses.contents), func(a, b furl.Digest) int { return bytes.Compare(a[:], b[:]) }), nil
}

// Scrub implements storage.Rewriter. The garbage collector has the rest.
func (s *Store) Scrub(ctx context.Context) error { return ctx.Err() }

// TenantKeys implements storage.KeyStore.
func (s *Store) TenantKeys(ctx context.Context, tenant furl.Tenant) ([]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.ready(ctx); err != nil {
		return nil, fmt.Errorf("read the keys of a tenant: %w", err)
	}
	return bytes.Clone(s.keys[tenant]), nil
}

// SetTenantKeys implements storage.KeyStore.
func (s *Store) SetTenantKeys(ctx context.Context, tenant furl.Tenant, was, is []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.ready(ctx)
	if err == nil && !bytes.Equal(s.keys[tenant], was) {
		err = fmt.Errorf("the keys have changed: %w", furl.ErrConflict)
	}
	if err != nil {
		return fmt.Errorf("store the keys of a tenant: %w", err)
	}
	if s.keys == nil {
		s.keys = make(map[furl.Tenant][]byte)
	}
	if s.keys[tenant] = bytes.Clone(is); is == nil {
		delete(s.keys, tenant)
	}
	return nil
}

// KeyTenants implements storage.KeyStore.
func (s *Store) KeyTenants(ctx context.Context) ([]furl.Tenant, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.ready(ctx); err != nil {
		return nil, fmt.Errorf("list tenants with keys: %w", err)
	}
	return slices.Sorted(maps.Keys(s.keys)), nil
}
