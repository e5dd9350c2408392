package inmem

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

type pageKey struct {
	bucket  uint32
	segment uint64
}

type vectorKey struct {
	model   string
	content furl.Digest
}

// vector is an embedding with the number of sessions that use it.
type vector struct {
	data     []byte
	sessions int
}

// Indexed implements storage.Searchable.
func (s *Store) Indexed(ctx context.Context, key furl.SessionKey) (furl.Seq, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.ready(ctx); err != nil {
		return 0, fmt.Errorf("index cursor: %w", err)
	}
	ses, err := s.session(key)
	if err != nil {
		return 0, fmt.Errorf("index cursor: %w", err)
	}
	return ses.indexed, nil
}

// Unindexed implements storage.Searchable.
func (s *Store) Unindexed(ctx context.Context, tenant furl.Tenant) iter.Seq2[storage.SessionInfo, error] {
	return s.infos(ctx, "list sessions to index", tenant, 0, func(ses *session, info *storage.SessionInfo) bool {
		return ses.indexed < info.Records
	})
}

// Pages implements storage.Searchable.
func (s *Store) Pages(ctx context.Context, key furl.SessionKey, bucket uint32) iter.Seq2[storage.IndexPage, error] {
	return func(yield func(storage.IndexPage, error) bool) {
		pages, err := s.pagesOf(ctx, key, bucket)
		if err != nil {
			yield(storage.IndexPage{}, fmt.Errorf("read index pages: %w", err))
			return
		}
		for _, p := range pages {
			if err := ctx.Err(); err != nil {
				yield(storage.IndexPage{}, err)
				return
			}
			if !yield(p, nil) {
				return
			}
		}
	}
}

func (s *Store) pagesOf(ctx context.Context, key furl.SessionKey, bucket uint32) ([]storage.IndexPage, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	var pages []storage.IndexPage
	for _, ses := range s.scope(key) {
		for k, data := range ses.pages {
			if k.bucket == bucket {
				pages = append(pages, storage.IndexPage{Session: ses.key.Session, Bucket: bucket, Segment: k.segment, Data: data})
			}
		}
	}
	slices.SortFunc(pages, func(a, b storage.IndexPage) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Segment, b.Segment))
	})
	return pages, nil
}

// scope returns the session of the key, or all of the tenant's if it names
// none.
func (s *Store) scope(key furl.SessionKey) []*session {
	t := s.tenants[key.Tenant]
	switch {
	case t == nil:
		return nil
	case key.Session == "":
		return slices.Collect(maps.Values(t.sessions))
	case t.sessions[key.Session] == nil:
		return nil
	default:
		return []*session{t.sessions[key.Session]}
	}
}

// WriteIndex implements storage.Searchable.
func (s *Store) WriteIndex(ctx context.Context, key furl.SessionKey, w storage.IndexWrite) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	ses, err := s.session(key)
	switch {
	case err != nil:
		return fmt.Errorf("write index: %w", err)
	case !w.DropAll && ses.indexed != w.After:
		return fmt.Errorf("write index of session %s after record %d: the cursor is at %d: %w", key.Session, w.After, ses.indexed, furl.ErrConflict)
	case w.To > furl.Seq(len(ses.records)):
		return fmt.Errorf("write index of session %s up to record %d: the session has %d records", key.Session, w.To, len(ses.records))
	}
	if w.DropAll {
		clear(ses.pages)
	}
	maps.DeleteFunc(ses.pages, func(k pageKey, _ []byte) bool { return slices.Contains(w.Drop, k.segment) })
	for _, p := range w.Put {
		ses.pages[pageKey{p.Bucket, p.Segment}] = bytes.Clone(p.Data)
	}
	ses.indexed = w.To
	return nil
}

// PutVectors implements storage.VectorStore.
func (s *Store) PutVectors(ctx context.Context, key furl.SessionKey, model string, vectors []storage.Vector) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return fmt.Errorf("put vectors: %w", err)
	}
	ses, err := s.session(key)
	if err != nil {
		return fmt.Errorf("put vectors: %w", err)
	}
	t := s.tenants[key.Tenant]
	for _, v := range vectors {
		k := vectorKey{model, v.Content}
		if _, has := ses.vectors[k]; has {
			continue
		}
		ses.vectors[k] = struct{}{}
		if t.vectors[k] == nil {
			t.vectors[k] = &vector{data: bytes.Clone(v.Data)}
		}
		t.vectors[k].sessions++
	}
	return nil
}

// Vectors implements storage.VectorStore.
func (s *Store) Vectors(ctx context.Context, key furl.SessionKey, model string) iter.Seq2[storage.Vector, error] {
	return func(yield func(storage.Vector, error) bool) {
		vectors, err := s.vectorsOf(ctx, key, model)
		if err != nil {
			yield(storage.Vector{}, fmt.Errorf("read vectors: %w", err))
			return
		}
		for _, v := range vectors {
			if err := ctx.Err(); err != nil {
				yield(storage.Vector{}, err)
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

func (s *Store) vectorsOf(ctx context.Context, key furl.SessionKey, model string) ([]storage.Vector, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	seen := make(map[furl.Digest]bool)
	var vectors []storage.Vector
	for _, ses := range s.scope(key) {
		for k := range ses.vectors {
			if k.model == model && !seen[k.content] {
				seen[k.content] = true
				vectors = append(vectors, storage.Vector{Content: k.content, Data: s.tenants[key.Tenant].vectors[k].data})
			}
		}
	}
	slices.SortFunc(vectors, func(a, b storage.Vector) int { return bytes.Compare(a.Content[:], b.Content[:]) })
	return vectors, nil
}

// FindVectors implements storage.VectorStore.
func (s *Store) FindVectors(ctx context.Context, tenant furl.Tenant, model string, contents []furl.Digest) ([]storage.Vector, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.ready(ctx); err != nil {
		return nil, fmt.Errorf("find vectors: %w", err)
	}
	t := s.tenants[tenant]
	if t == nil {
		return nil, nil
	}
	var found []storage.Vector
	seen := make(map[furl.Digest]bool)
	for _, c := range contents {
		if v := t.vectors[vectorKey{model, c}]; v != nil && !seen[c] {
			seen[c] = true
			found = append(found, storage.Vector{Content: c, Data: bytes.Clone(v.data)})
		}
	}
	return found, nil
}
