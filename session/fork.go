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

// Fork creates a session as a copy of another one up to a record, or up to the last
// record before it that ends a step. The copies have the same record numbers, so
// handles are valid in both. Other branches up to there are copied too. The fork has
// no hint, so the client continues in the original.
func (a *Sessions) Fork(ctx context.Context, of *Session, at furl.Seq) (*Session, error) {
	of.mu.Lock()
	if at > furl.Seq(of.log.Len()) {
		of.mu.Unlock()
		return nil, fmt.Errorf("fork session %s at record %d: %w", of.key.Session, at, furl.ErrNotOnPath)
	}
	records := slices.Clone(of.log.Records(0)[:at])
	meta := of.meta.Clone()
	of.mu.Unlock()
	contents, err := of.Contents(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("fork session %s: %w", of.key.Session, err)
	}

	meta.ForkOf, meta.ForkAt, meta.Hint = of.key.Session, at, ""
	meta.Imported, meta.Recorded, meta.Ledger, meta.Waiting, meta.Awaited = 0, time.Time{}, nil, nil, nil
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

// Import creates a session from a log such as a recording (package transcript),
// with the given id or, if that is empty, a new one. If a session of that id exists
// and the log starts with all its records, the remaining records are appended.
// Otherwise the error wraps furl.ErrConflict. The contents are those that the
// records refer to (Session.Contents).
func (a *Sessions) Import(ctx context.Context, id furl.SessionID, log *furl.Log, meta storage.Meta, contents ...[]byte) (*Session, error) {
	if id == "" {
		id = a.o.NewID()
	}
	if !storage.ValidID(id) {
		return nil, fmt.Errorf("import session: invalid id %q", id)
	}
	meta.Ledger = nil // its requests were counted where they were recorded
	s, err := a.Open(ctx, id)
	if errors.Is(err, storage.ErrNoSession) {
		s, err = a.CreateAs(id, meta), nil
	}
	if err != nil {
		return nil, err
	}
	c := s.sessionCounter()
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
			return fmt.Errorf("import session %s: a different session has that id: %w", id, furl.ErrConflict)
		}
		if had < len(records) {
			m := s.meta.Clone()
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

// newestOf returns the time of the newest of these records, zero if none has a
// time.
func newestOf(records []furl.Record) (newest time.Time) {
	for _, r := range records {
		if r.At.After(newest) {
			newest = r.At
		}
	}
	return newest
}

// sameRecords reports whether records are equal as stored.
func sameRecords(a, b []furl.Record) bool {
	return slices.EqualFunc(a, b, func(x, y furl.Record) bool {
		h1, b1, err1 := record.Encode(x)
		h2, b2, err2 := record.Encode(y)
		return err1 == nil && err2 == nil && string(h1) == string(h2) && string(b1) == string(b2)
	})
}
