package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rebuild"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
)

// Fork begins a new session as a copy of this one up to a record, or to the
// last one before it that ends a step. The copies have the same numbers, so
// that handles mean the same in both; other branches up to there come along.
// The fork has no hint: the client goes on in the original.
func (a *Sessions) Fork(ctx context.Context, of *Session, at furl.Seq) (*Session, error) {
	of.mu.Lock()
	if at > furl.Seq(of.log.Len()) {
		of.mu.Unlock()
		return nil, fmt.Errorf("fork session %s at record %d: %w", of.key.Session, at, furl.ErrNotOnPath)
	}
	records := slices.Clone(of.log.Records(0)[:at])
	meta := cloneMeta(of.meta)
	of.mu.Unlock()
	contents, err := of.Contents(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("fork session %s: %w", of.key.Session, err)
	}

	meta.ForkOf, meta.ForkAt, meta.Hint = of.key.Session, at, ""
	meta.Imported, meta.Recorded = 0, time.Time{}
	s := a.Create(meta)
	err = s.update(ctx, onDisk, func() error {
		if s.log.Len() > 0 {
			return fmt.Errorf("fork session %s as %s: %w", of.key.Session, s.key.Session, furl.ErrConflict)
		}
		if err := s.log.Load(records); err != nil {
			return err
		}
		s.newContents = contents
		if s.log.Head() == at {
			if st := s.log.State(); st.Boundary(at) == at {
				return nil
			}
		}
		_, err := s.log.Rewind(at, a.o.Now(), furl.Person)
		return err
	})
	if err != nil {
		a.forget(s)
		return nil, fmt.Errorf("fork session %s: %w", of.key.Session, err)
	}
	return s, nil
}

// Import makes a session of a log that was read from elsewhere, such as a
// recording (package transcript), under an id of its own or the one given. If
// there is a session of that id, all of whose records the log begins with, what
// it has more is added; any other is an error wrapping furl.ErrConflict.
// The contents are those that its records refer to (Session.Contents).
func (a *Sessions) Import(ctx context.Context, id furl.SessionID, log *furl.Log, meta storage.Meta, contents ...[]byte) (*Session, error) {
	if id == "" {
		id = a.o.NewID()
	}
	if !storage.ValidID(id) {
		return nil, fmt.Errorf("import session %q: not a valid id", id)
	}
	s, err := a.Open(ctx, id)
	if errors.Is(err, storage.ErrNoSession) {
		s, err = a.CreateAs(id, meta), nil
	}
	if err != nil {
		return nil, err
	}
	c := s.counterOf()
	records := slices.Clone(log.Records(0))
	if contents, err = rebuild.ContentsOf(records, rebuild.ByDigest(contents)); err != nil {
		return nil, fmt.Errorf("import session %s: %w", id, err)
	}
	for _, r := range records {
		if m, ok := r.Body.(*furl.Message); ok {
			m.Measure(c)
		}
	}
	meta.Imported = furl.Seq(len(records))
	if at := newestOf(records); !at.IsZero() {
		meta.Recorded = at
	}
	err = s.update(ctx, onDisk, func() error {
		had := s.log.Len()
		if had > len(records) || had > 0 && !sameRecords(s.log.Records(0), records[:had]) {
			return fmt.Errorf("import session %s: another one has that id: %w", id, furl.ErrConflict)
		}
		if had < len(records) {
			m := cloneMeta(s.meta)
			m.Imported, m.Recorded = meta.Imported, meta.Recorded
			s.newMeta = &m
			s.newContents = contents
		}
		return s.log.Load(records[had:])
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// newestOf is when the newest of these records was recorded, zero if none of
// them says when.
func newestOf(records []furl.Record) (newest time.Time) {
	for _, r := range records {
		if r.At.After(newest) {
			newest = r.At
		}
	}
	return newest
}

// sameRecords reports whether stored records are the same.
func sameRecords(a, b []furl.Record) bool {
	return slices.EqualFunc(a, b, func(x, y furl.Record) bool {
		h1, b1, err1 := record.Encode(x)
		h2, b2, err2 := record.Encode(y)
		return err1 == nil && err2 == nil && string(h1) == string(h2) && string(b1) == string(b2)
	})
}
