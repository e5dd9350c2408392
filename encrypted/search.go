package encrypted

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

func pagePlace(session furl.SessionID, p *storage.IndexPage) place {
	return place{kind: pageKind, session: session, a: uint64(p.Bucket), b: p.Segment}
}

// Pages implements storage.Searchable.
func (s *Store) Pages(ctx context.Context, key furl.SessionKey, bucket uint32) iter.Seq2[storage.IndexPage, error] {
	return func(yield func(storage.IndexPage, error) bool) {
		k, err := s.keysOf(ctx, key.Tenant)
		if err != nil {
			yield(storage.IndexPage{}, fmt.Errorf("read index pages: %w", err))
			return
		}
		var memory []byte
		for p, err := range s.inner.Pages(ctx, key, bucket) {
			if err == nil && (k != nil || sealedForm(p.Data)) {
				if memory, err = k.derived(memory, key.Tenant, pagePlace(p.Session, &p), p.Data); err != nil {
					p, err = storage.IndexPage{}, fmt.Errorf("read index pages of session %s: %w", p.Session, err)
				} else {
					p.Data = memory
				}
			}
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// derived opens data that can be made again, which may be in plain form.
func (k *keys) derived(dst []byte, tenant furl.Tenant, p place, data []byte) ([]byte, error) {
	switch {
	case k == nil:
		return dst, &KeyError{Tenant: tenant}
	case k.plain && !sealedForm(data):
		return append(dst[:0], data...), nil
	}
	return k.open(dst, p, data)
}

// WriteIndex implements storage.Searchable.
func (s *Store) WriteIndex(ctx context.Context, key furl.SessionKey, w storage.IndexWrite) error {
	k, err := s.keysOf(ctx, key.Tenant)
	if err == nil && k != nil && !k.destroyed.IsZero() {
		err = &KeyError{Tenant: key.Tenant, Destroyed: k.destroyed}
	}
	if err != nil {
		return fmt.Errorf("write the search index of session %.140q: %w", key.Session, err)
	}
	if k != nil {
		w.Put = slices.Clone(w.Put)
		for i := range w.Put {
			w.Put[i].Data = k.seal(pagePlace(key.Session, &w.Put[i]), w.Put[i].Data)
		}
	}
	return s.inner.WriteIndex(ctx, key, w)
}

// A vector contains the digest of its content, and its data.
func vectorPlace(model string, id furl.Digest) place {
	return place{kind: vectorKind, name: string(id[:]) + model}
}

func (k *keys) openVector(model string, v storage.Vector) (storage.Vector, error) {
	if k.plain && !sealedForm(v.Data) {
		return storage.Vector{Content: v.Content, Data: bytes.Clone(v.Data)}, nil
	}
	data, err := k.open(nil, vectorPlace(model, v.Content), v.Data)
	if err == nil && len(data) < len(v.Content) {
		err = fmt.Errorf("cut off: %w", furl.ErrDamaged)
	}
	if err != nil {
		return v, fmt.Errorf("read vectors: %w", err)
	}
	n := copy(v.Content[:], data)
	v.Data = data[n:]
	return v, nil
}

// PutVectors implements storage.VectorStore.
func (s *Store) PutVectors(ctx context.Context, key furl.SessionKey, model string, v []storage.Vector) error {
	k, err := s.keysOf(ctx, key.Tenant)
	if err == nil && k != nil && !k.destroyed.IsZero() {
		err = &KeyError{Tenant: key.Tenant, Destroyed: k.destroyed}
	}
	if err != nil {
		return fmt.Errorf("put vectors of session %.140q: %w", key.Session, err)
	}
	if k != nil {
		v = slices.Clone(v)
		for i := range v {
			id := k.contents.of(v[i].Content[:])
			v[i].Data = k.seal(vectorPlace(model, id), append(v[i].Content[:], v[i].Data...))
			v[i].Content = id
		}
	}
	return s.inner.PutVectors(ctx, key, model, v)
}

// Vectors implements storage.VectorStore. It reads all of them before the first,
// because their order is that of the digests that are encrypted.
func (s *Store) Vectors(ctx context.Context, key furl.SessionKey, model string) iter.Seq2[storage.Vector, error] {
	return func(yield func(storage.Vector, error) bool) {
		k, err := s.keysOf(ctx, key.Tenant)
		if err != nil {
			yield(storage.Vector{}, fmt.Errorf("read vectors: %w", err))
			return
		}
		var all []storage.Vector
		for v, err := range s.inner.Vectors(ctx, key, model) {
			if k != nil && err == nil {
				v, err = k.openVector(model, v)
			}
			if err != nil {
				yield(storage.Vector{}, err)
				return
			}
			if k == nil {
				if !yield(v, nil) {
					return
				}
				continue
			}
			all = append(all, v)
		}
		slices.SortFunc(all, func(a, b storage.Vector) int { return bytes.Compare(a.Content[:], b.Content[:]) })
		for _, v := range slices.CompactFunc(all, func(a, b storage.Vector) bool { return a.Content == b.Content }) {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// FindVectors implements storage.VectorStore.
func (s *Store) FindVectors(ctx context.Context, tenant furl.Tenant, model string, contents []furl.Digest) ([]storage.Vector, error) {
	k, err := s.keysOf(ctx, tenant)
	if err != nil {
		return nil, fmt.Errorf("find vectors: %w", err)
	}
	if k == nil {
		return s.inner.FindVectors(ctx, tenant, model, contents)
	}
	if !k.destroyed.IsZero() {
		return nil, nil
	}
	ids := make([]furl.Digest, 0, len(contents))
	for _, c := range contents {
		if ids = append(ids, k.contents.of(c[:])); k.plain {
			ids = append(ids, c)
		}
	}
	found, err := s.inner.FindVectors(ctx, tenant, model, ids)
	if err != nil {
		return nil, err
	}
	for i := range found {
		if found[i], err = k.openVector(model, found[i]); err != nil {
			return nil, err
		}
	}
	return found, nil
}
