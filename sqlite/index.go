package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Indexed implements storage.Searchable.
func (s *Store) Indexed(ctx context.Context, key furl.SessionKey) (furl.Seq, error) {
	err := s.ready(ctx)
	var cursor int64
	if err == nil {
		err = s.row(ctx, "SELECT s.indexed FROM tenants t JOIN sessions s ON s.tenant = t.id WHERE t.name = ? AND s.name = ?",
			[]byte(key.Tenant), string(key.Session)).Scan(&cursor)
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = noSession(key.Session)
	}
	if err != nil {
		return 0, s.failed("read the index cursor", err)
	}
	return furl.Seq(cursor), nil
}

// Pages implements storage.Searchable.
func (s *Store) Pages(ctx context.Context, key furl.SessionKey, bucket uint32) iter.Seq2[storage.IndexPage, error] {
	const columns = "SELECT s.name, p.segment, p.data FROM tenants t "
	query := columns + `CROSS JOIN pages p ON p.tenant = t.id CROSS JOIN sessions s ON s.id = p.session
		WHERE t.name = ? AND p.bucket = ? ORDER BY p.session, p.segment`
	args := []any{[]byte(key.Tenant), bucket}
	if key.Session != "" {
		query = columns + `CROSS JOIN sessions s ON s.tenant = t.id CROSS JOIN pages p ON p.tenant = t.id AND p.session = s.id
			WHERE t.name = ? AND p.bucket = ? AND s.name = ? ORDER BY p.segment`
		args = append(args, string(key.Session))
	}
	return func(yield func(storage.IndexPage, error) bool) {
		fail := func(err error) { yield(storage.IndexPage{}, s.failed("read index pages", err)) }
		rows, err := s.stream(ctx, query, args)
		if err != nil {
			fail(err)
			return
		}
		defer rows.Close()
		var name sql.RawBytes
		for rows.Next() {
			p := storage.IndexPage{Bucket: bucket}
			var segment int64
			var data sql.RawBytes
			if err := rows.Scan(&name, &segment, &data); err != nil {
				fail(err)
				return
			}
			p.Session, p.Segment, p.Data = furl.SessionID(name), uint64(segment), data
			if !yield(p, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			fail(err)
		}
	}
}

// stream starts a query whose rows are read as they arrive.
func (s *Store) stream(ctx context.Context, query string, args []any) (*sql.Rows, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	return s.rows(ctx, query, args...)
}

// WriteIndex implements storage.Searchable.
func (s *Store) WriteIndex(ctx context.Context, key furl.SessionKey, x storage.IndexWrite) error {
	if err := s.do(ctx, &job{do: func(w *writer) error { return w.writeIndex(key, &x) }, derived: true}); err != nil {
		return s.failed(fmt.Sprintf("write the index of session %.140q", key.Session), err)
	}
	return nil
}

func (w *writer) writeIndex(key furl.SessionKey, x *storage.IndexWrite) error {
	ses, err := w.existing(key)
	switch {
	case err != nil:
		return err
	case !x.DropAll && furl.Seq(ses.indexed) != x.After:
		return refuse("pages after record %d: the cursor is at %d: %w", x.After, ses.indexed, furl.ErrConflict)
	case x.To > furl.Seq(ses.records):
		return refuse("pages up to record %d: the session has %d", x.To, ses.records)
	}
	if x.DropAll {
		if err := w.exec("DELETE FROM pages WHERE session = ?", ses.id); err != nil {
			return err
		}
	}
	for _, segment := range x.Drop {
		if err := w.exec("DELETE FROM pages WHERE session = ? AND segment = ?", ses.id, int64(segment)); err != nil {
			return err
		}
	}
	for _, p := range x.Put {
		data := p.Data
		if data == nil {
			data = []byte{}
		}
		err := w.exec(`INSERT INTO pages (tenant, bucket, session, segment, data) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (tenant, bucket, session, segment) DO UPDATE SET data = excluded.data`,
			ses.tenant, p.Bucket, ses.id, int64(p.Segment), data)
		if err != nil {
			return err
		}
	}
	ses.indexed = int64(x.To)
	w.touch(ses)
	return nil
}
