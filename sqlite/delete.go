package sqlite

import (
	"context"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/record"
)

// Delete implements storage.Deleter. It overwrites the deleted bytes, frees the
// pages and truncates the write-ahead log: immediately, or as soon as no
// reader uses an older state of the store. This takes as long as reading the
// whole file once; appends continue meanwhile. If an error occurs after the
// session was deleted, its text says so.
func (s *Store) Delete(ctx context.Context, key furl.SessionKey) error {
	j := &job{
		do:   func(w *writer) error { return w.delete(key) },
		then: (*writer).shrink,
	}
	if err := s.do(ctx, j); err != nil {
		return s.failed(fmt.Sprintf("delete session %.140q", key.Session), err)
	}
	s.watchers.notify(key)
	err := s.sweep(ctx)
	if err == nil {
		err = s.do(ctx, &job{do: func(*writer) error { return nil }, then: (*writer).truncate})
	}
	if err != nil {
		return s.failed(fmt.Sprintf("session %.140q was deleted; overwrite its remaining bytes", key.Session), err)
	}
	return nil
}

func (w *writer) delete(key furl.SessionKey) error {
	ses, err := w.existing(key)
	if err != nil {
		return err
	}
	first, last := recordID(ses.id, 0), recordID(ses.id, maxSeq)
	if err := w.unchain(ses, first, last); err != nil {
		return err
	}
	for _, step := range []struct {
		query string
		args  []any
	}{
		{`DELETE FROM bodies WHERE id IN (SELECT big FROM records WHERE id BETWEEN ?1 AND ?2 AND big IS NOT NULL UNION SELECT body FROM contents WHERE session = ?3)
			AND NOT EXISTS (SELECT 1 FROM records r WHERE r.big = bodies.id AND r.id NOT BETWEEN ?1 AND ?2)
			AND NOT EXISTS (SELECT 1 FROM contents c WHERE c.body = bodies.id AND c.session <> ?3)`, []any{first, last, ses.id}},
		{"DELETE FROM contents WHERE session = ?", []any{ses.id}},
		{"DELETE FROM records WHERE id BETWEEN ? AND ?", []any{first, last}},
		{"DELETE FROM pages WHERE session = ?", []any{ses.id}},
		{`DELETE FROM vectors WHERE id IN (SELECT vector FROM session_vectors WHERE session = ?1)
			AND NOT EXISTS (SELECT 1 FROM session_vectors x WHERE x.vector = vectors.id AND x.session <> ?1)`, []any{ses.id}},
		{"DELETE FROM session_vectors WHERE session = ?", []any{ses.id}},
		{"DELETE FROM sessions WHERE id = ?", []any{ses.id}},
		{"DELETE FROM tenants WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM sessions WHERE tenant = ?1)", []any{ses.tenant}},
	} {
		if err := w.exec(step.query, step.args...); err != nil {
			return err
		}
	}
	delete(w.sessions, key)
	return nil
}

// unchain removes the records of a session from the chain index. The chain of
// each is in its head.
func (w *writer) unchain(ses *session, first, last int64) error {
	stmt, err := w.stmt("SELECT id, head FROM records WHERE id > ? AND id <= ? ORDER BY id LIMIT 1000")
	if err != nil {
		return err
	}
	for at := first; ; {
		chains := make(map[int64]int64)
		rows, err := stmt.Query(at, last)
		if err != nil {
			return err
		}
		n := 0
		for rows.Next() {
			var head []byte
			if err := rows.Scan(&at, &head); err != nil {
				rows.Close()
				return err
			}
			n++
			if chain, ok := record.Chain(head); ok && !chain.IsZero() {
				chains[at] = chainKey(chain)
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
		for id, key := range chains {
			if err := w.exec("DELETE FROM chains WHERE tenant = ? AND chain = ? AND record = ?", ses.tenant, key, id); err != nil {
				return err
			}
		}
		if n == 0 {
			return nil
		}
	}
}

// shrink frees pages after a delete. A failure does no harm, because they are
// already zeroed.
func (w *writer) shrink() {
	// Each step removes one page, so all rows must be read.
	rows, err := w.conn.QueryContext(context.Background(), "PRAGMA incremental_vacuum")
	if err != nil {
		return
	}
	for rows.Next() {
		continue
	}
	rows.Close()
}

// truncate truncates the write-ahead log unless a reader uses it. In that
// case the next tick tries again: writers do not wait for readers.
func (w *writer) truncate() {
	ctx := context.Background()
	if _, err := w.conn.ExecContext(ctx, "PRAGMA busy_timeout = 100"); err != nil {
		return
	}
	var busy, log, moved int
	err := w.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved)
	w.leftover = err != nil || busy != 0
	// It cannot fail: it sets a number.
	_, _ = w.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", w.s.o.LockTimeout.Milliseconds()))
}
