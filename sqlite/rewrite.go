package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
)

var (
	_ storage.Rewriter = (*Store)(nil)
	_ storage.KeyStore = (*Store)(nil)
)

// Rewrite implements storage.Rewriter.
func (s *Store) Rewrite(ctx context.Context, key furl.SessionKey, x storage.Rewrite) error {
	rows, err := rowsOf(x.Put)
	b := x.Batch()
	var meta *storedMeta
	if err == nil && x.Meta != nil {
		meta, err = metaOf(x.Meta)
	}
	if err == nil {
		contents := packContents(b)
		err = s.do(ctx, &job{do: func(w *writer) error { return w.rewrite(key, &x, b, rows, contents, meta) }})
	}
	if err != nil {
		return s.failed(fmt.Sprintf("rewrite session %.140q", key.Session), err)
	}
	s.watchers.notify(key)
	return nil
}

func (w *writer) rewrite(key furl.SessionKey, x *storage.Rewrite, b *storage.Batch, rows, contents []row, meta *storedMeta) error {
	ses, err := w.existing(key)
	if err != nil {
		return err
	}
	if furl.Seq(ses.records) != x.Records {
		return refuse("the session has %d records, not %d: %w", ses.records, x.Records, furl.ErrConflict)
	}
	if err := w.checkMeta(ses, b); err != nil {
		return err
	}
	// A refusal does not undo what was written before it.
	was := make([]replaced, len(rows))
	for i := range rows {
		if was[i], err = w.replaceable(ses, &rows[i]); err != nil {
			return err
		}
	}
	for i := range rows {
		if err := w.replace(ses, &rows[i], &was[i]); err != nil {
			return err
		}
	}
	for i := range x.DropContents {
		if err := w.dropContent(ses, x.DropContents[i]); err != nil {
			return err
		}
	}
	for i := range contents {
		if err := w.refreshBody(ses.tenant, &contents[i]); err != nil {
			return err
		}
	}
	if err := w.addContents(ses, contents); err != nil {
		return err
	}
	for _, query := range []string{
		"DELETE FROM pages WHERE session = ?1",
		`DELETE FROM vectors WHERE id IN (SELECT vector FROM session_vectors WHERE session = ?1)
			AND NOT EXISTS (SELECT 1 FROM session_vectors x WHERE x.vector = vectors.id AND x.session <> ?1)`,
		"DELETE FROM session_vectors WHERE session = ?1",
	} {
		if err := w.exec(query, ses.id); err != nil {
			return err
		}
	}
	ses.indexed = 0
	w.touch(ses)
	return w.setMeta(ses, meta)
}

// replaced is what is known of a record that is replaced.
type replaced struct {
	size  int
	chain furl.Digest
	big   sql.NullInt64
}

// replaceable reads a record, and refuses to replace it by one of another kind.
func (w *writer) replaceable(ses *session, r *row) (was replaced, err error) {
	var f fetched
	err = w.row(`SELECT r.sum, r.head, coalesce(b.codec, r.codec), coalesce(b.size, r.size), coalesce(b.data, r.body), r.big
		FROM records r LEFT JOIN bodies b ON b.id = r.big WHERE r.id = ?`, recordID(ses.id, r.seq)).
		Scan(&f.sum, &f.head, &f.body.codec, &f.body.size, &f.body.data, &was.big)
	if errors.Is(err, sql.ErrNoRows) {
		return was, refuse("record %d does not exist: %w", r.seq, furl.ErrConflict)
	}
	if err != nil {
		return was, err
	}
	rec, err := f.open(r.seq)
	if err != nil {
		return was, err
	}
	size, message := record.MessageSize(&rec)
	if message != r.message {
		return was, refuse("record %d is of another kind", r.seq)
	}
	was.size, was.chain = int(size), rec.Chain
	return was, nil
}

// replace replaces a record.
func (w *writer) replace(ses *session, r *row, was *replaced) (err error) {
	id := recordID(ses.id, r.seq)
	var newBig any
	var codec, length, body any
	switch {
	case r.body == nil:
	case len(r.packed) <= inlineTo:
		codec, length, body = r.codec, len(r.body), r.packed
		if r.packed == nil {
			body = []byte{}
		}
	default:
		if newBig, err = w.share(ses.tenant, r); err != nil {
			return err
		}
	}
	if err := w.exec("UPDATE records SET sum = ?, head = ?, codec = ?, size = ?, body = ?, big = ? WHERE id = ?", r.sum, r.head, codec, length, body, newBig, id); err != nil {
		return err
	}
	if was.big.Valid {
		if err := w.dropBody(was.big.Int64); err != nil {
			return err
		}
	}
	if !r.message {
		return nil
	}
	ses.bytes += r.size - int64(was.size)
	return w.rechain(ses, id, r, was.chain)
}

// rechain changes the entry of a message in the chain index.
func (w *writer) rechain(ses *session, id int64, r *row, was furl.Digest) error {
	if was == r.chain {
		return nil
	}
	at := ses.created + r.seq // as for an entry that was lost
	if !was.IsZero() {
		err := w.row("SELECT at FROM chains WHERE tenant = ? AND chain = ? AND record = ?", ses.tenant, chainKey(was), id).Scan(&at)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err := w.exec("DELETE FROM chains WHERE tenant = ? AND chain = ? AND record = ?", ses.tenant, chainKey(was), id); err != nil {
			return err
		}
	}
	if r.chain.IsZero() {
		return nil
	}
	return w.exec("INSERT INTO chains (tenant, chain, at, record) VALUES (?, ?, ?, ?)", ses.tenant, chainKey(r.chain), at, id)
}

// refreshBody gives a body that other sessions have, too, its new bytes: encrypted
// ones differ by the key.
func (w *writer) refreshBody(tenant int64, r *row) error {
	if r.codec != codecSealed {
		return nil
	}
	return w.exec("UPDATE bodies SET codec = ?, size = ?, data = ? WHERE tenant = ? AND digest = ?", r.codec, len(r.body), r.packed, tenant, r.digest[:])
}

// dropBody deletes a body that nothing uses any more.
func (w *writer) dropBody(id int64) error {
	return w.exec(`DELETE FROM bodies WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM records WHERE big = ?1)
		AND NOT EXISTS (SELECT 1 FROM contents WHERE body = ?1)`, id)
}

func (w *writer) dropContent(ses *session, id furl.Digest) error {
	var body int64
	err := w.row("SELECT b.id FROM bodies b JOIN contents c ON c.body = b.id WHERE b.tenant = ? AND b.digest = ? AND c.session = ?", ses.tenant, id[:], ses.id).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := w.exec("DELETE FROM contents WHERE session = ? AND body = ?", ses.id, body); err != nil {
		return err
	}
	return w.dropBody(body)
}

// ContentIDs implements storage.Rewriter.
func (s *Store) ContentIDs(ctx context.Context, key furl.SessionKey) ([]furl.Digest, error) {
	ids, err := s.contentIDs(ctx, key)
	if err != nil {
		return nil, s.failed(fmt.Sprintf("list contents of session %.140q", key.Session), err)
	}
	return ids, nil
}

func (s *Store) contentIDs(ctx context.Context, key furl.SessionKey) (ids []furl.Digest, err error) {
	session, _, err := s.lookUp(ctx, key)
	if err != nil {
		return nil, err
	}
	if has, err := s.hasContents(ctx); err != nil || !has {
		return nil, err
	}
	rows, err := s.rows(ctx, "SELECT b.digest FROM contents c JOIN bodies b ON b.id = c.body WHERE c.session = ? ORDER BY b.digest", session)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var digest []byte
		if err := rows.Scan(&digest); err != nil {
			return nil, err
		}
		ids = append(ids, furl.Digest{})
		copy(ids[len(ids)-1][:], digest)
	}
	return ids, rows.Err()
}

// Scrub implements storage.Rewriter, as Delete does it.
func (s *Store) Scrub(ctx context.Context) error {
	nothing := func(*writer) error { return nil }
	err := s.do(ctx, &job{do: nothing, then: (*writer).shrink})
	if err == nil {
		err = s.sweep(ctx)
	}
	if err == nil {
		err = s.do(ctx, &job{do: nothing, then: (*writer).truncate})
	}
	if err != nil {
		return s.failed("overwrite deleted bytes", err)
	}
	return nil
}
