package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/internal/rebuild"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
)

// Fork creates a session as a copy of another one up to a record, or up to the last
// record before it that ends a step. The copies have the same record numbers, so
// handles are valid in both. Other branches up to there are copied too. The fork has
// no hint, so the client continues in the original.
func (a *Sessions) Fork(ctx context.Context, of *Session, at furl.Seq) (*Session, error) {
	var records []furl.Record
	var meta storage.Meta
	of.Internal().Read(func(c *open.Change) { records, meta = slices.Clone(c.Log().Records(0)), c.Meta().Clone() })
	if at > furl.Seq(len(records)) {
		return nil, fmt.Errorf("fork session %s at record %d: %w", of.ID(), at, furl.ErrNotOnPath)
	}
	records = records[:at]
	contents, err := of.Contents(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("fork session %s: %w", of.ID(), err)
	}

	meta.ForkOf, meta.ForkAt, meta.Hint = of.ID(), at, ""
	meta.Imported, meta.Recorded, meta.Ledger, meta.Waiting, meta.Awaited = 0, time.Time{}, nil, nil, nil
	s := a.Create(meta)
	err = s.Internal().Update(ctx, open.OnDisk, func(c *open.Change) error {
		if c.Log().Len() > 0 {
			return fmt.Errorf("fork session %s as %s: %w", of.ID(), s.ID(), furl.ErrConflict)
		}
		if err := c.Load(records, contents); err != nil {
			return err
		}
		if c.Log().Head() == at {
			if st := c.Log().State(); st.Boundary(at) == at {
				return nil
			}
		}
		_, err := c.Rewind(at, furl.Person)
		return err
	})
	if err != nil {
		a.open.Evict(s.Internal())
		return nil, fmt.Errorf("fork session %s: %w", of.ID(), err)
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
		id = a.Options().NewID()
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
	var counter furl.Counter
	s.Internal().Read(func(c *open.Change) { counter = c.SessionCounter() })
	records := slices.Clone(log.Records(0))
	if contents, err = rebuild.ContentsOf(records, rebuild.ByDigest(contents)); err != nil {
		return nil, fmt.Errorf("import session %s: %w", id, err)
	}
	for _, r := range records {
		if m, ok := r.Body.(*furl.Message); ok {
			m.Measure(counter)
		}
	}
	meta.Imported = furl.Seq(len(records))
	if at := newestOf(records); !at.IsZero() {
		meta.Recorded = at
	}
	err = s.Internal().Update(ctx, open.OnDisk, func(c *open.Change) error {
		had := c.Log().Len()
		if had > len(records) || had > 0 && !sameRecords(c.Log().Records(0), records[:had]) {
			return fmt.Errorf("import session %s: a different session has that id: %w", id, furl.ErrConflict)
		}
		if had < len(records) {
			m := c.Meta().Clone()
			m.Imported, m.Recorded = meta.Imported, meta.Recorded
			c.SetMeta(m)
			return c.Load(records[had:], contents)
		}
		return nil
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
