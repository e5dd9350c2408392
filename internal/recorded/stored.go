package recorded

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rebuild"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/transcript"
)

// Stored reads the sessions without a tenant of another store as recordings, the oldest
// first, so that a fork comes after the session that it is of. file is the store's. An
// error is about one session.
func Stored(ctx context.Context, file string, from storage.Store) iter.Seq2[*transcript.Recording, error] {
	return func(yield func(*transcript.Recording, error) bool) {
		var list []storage.SessionInfo
		var none furl.Tenant
		for info, err := range from.Sessions(ctx, none, storage.SessionQuery{}) {
			if err != nil {
				yield(nil, fmt.Errorf("read the store %s: %w", file, err))
				return
			}
			list = append(list, info)
		}
		for i := len(list) - 1; i >= 0; i-- {
			s, err := stored(ctx, from, &list[i])
			if err != nil {
				if !yield(nil, fmt.Errorf("%s: session %s: %w", file, list[i].Session, err)) {
					return
				}
				continue
			}
			if !yield(&transcript.Recording{File: file, Format: "furl", Agent: list[i].Client, Sessions: []*transcript.Session{s}}, nil) {
				return
			}
		}
	}
}

// stored reads a session of a store with all that its records refer to.
func stored(ctx context.Context, from storage.Store, info *storage.SessionInfo) (*transcript.Session, error) {
	var records []furl.Record
	for r, err := range from.Read(ctx, info.SessionKey, 0) {
		if err != nil {
			return nil, err
		}
		if _, sealed := r.Body.(*furl.Sealed); sealed {
			return nil, errors.New("it is encrypted; export it with furl export on the machine that has the key, and import the file")
		}
		records = append(records, r)
	}
	s := &transcript.Session{ID: string(info.Session), Title: info.Title, Model: info.Model, Wire: info.Format, Meta: info.Meta, Windows: info.Windows, Log: furl.NewLog()}
	contents, err := rebuild.ContentsOf(records, func(d furl.Digest) ([]byte, error) {
		store, ok := from.(storage.ContentStore)
		if !ok {
			return nil, storage.ErrNoContent
		}
		return store.Content(ctx, info.SessionKey, d)
	})
	if err != nil {
		return nil, err
	}
	s.Contents = contents
	return s, s.Log.Load(records)
}
