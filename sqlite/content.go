package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// contentsSince is the first format with contents.
const contentsSince = 3

// packContents returns contents in their stored form.
func packContents(b *storage.Batch) []row {
	rows := make([]row, len(b.Contents))
	for i, c := range b.Contents {
		r := &rows[i]
		r.body, r.digest = c, b.ContentID(i)
		if b.ContentIDs != nil {
			r.codec, r.packed = codecSealed, c
		} else {
			r.codec, r.packed = pack(c)
		}
		if r.packed == nil {
			r.packed = []byte{} // not NULL
		}
	}
	return rows
}

// addContents stores contents for a session.
func (w *writer) addContents(ses *session, contents []row) error {
	for i := range contents {
		body, err := w.share(ses.tenant, &contents[i])
		if err != nil {
			return err
		}
		if err := w.exec("INSERT OR IGNORE INTO contents (session, body) VALUES (?, ?)", ses.id, body); err != nil {
			return err
		}
	}
	return nil
}

// Content implements storage.ContentStore.
func (s *Store) Content(ctx context.Context, key furl.SessionKey, digest furl.Digest) ([]byte, error) {
	content, err := s.content(ctx, key, digest)
	if err != nil {
		return nil, s.failed(fmt.Sprintf("read content %v of session %.140q", digest, key.Session), err)
	}
	return content, nil
}

func (s *Store) content(ctx context.Context, key furl.SessionKey, digest furl.Digest) ([]byte, error) {
	id, _, err := s.lookUp(ctx, key)
	if err != nil {
		return nil, err
	}
	if has, err := s.hasContents(ctx); err != nil || !has {
		return nil, errors.Join(err, storage.ErrNoContent)
	}
	var body packedBody
	err = s.row(ctx, `SELECT b.codec, b.size, b.data FROM sessions s JOIN bodies b ON b.tenant = s.tenant AND b.digest = ?
		JOIN contents c ON c.session = s.id AND c.body = b.id WHERE s.id = ?`, digest[:], id).Scan(&body.codec, &body.size, &body.data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, storage.ErrNoContent
	}
	if err != nil {
		return nil, err
	}
	content, err := body.open()
	if err == nil && body.codec.Int64 != codecSealed && furl.DigestOf(content) != digest {
		err = fmt.Errorf("its bytes do not match the digest: %w", furl.ErrDamaged)
	}
	return content, err
}

// hasContents reports whether the file has the table of contents: a store that
// is read only may be in an older format.
func (s *Store) hasContents(ctx context.Context) (bool, error) {
	if s.write != nil {
		return true, nil
	}
	format, err := formatOf(ctx, s.read)
	return format >= contentsSince, err
}

// contents reports the contents of a session whose bytes are damaged.
func (c *checker) contents(tx *sql.Tx, l *listed) error {
	if has, err := c.s.hasContents(c.ctx); err != nil || !has {
		return err
	}
	rows, err := tx.QueryContext(c.ctx, `SELECT b.digest, b.codec, b.size, b.data FROM contents c JOIN bodies b ON b.id = c.body WHERE c.session = ?`, l.id)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var digest []byte
		var body packedBody
		if err := rows.Scan(&digest, &body.codec, &body.size, &body.data); err != nil {
			return err
		}
		content, err := body.open()
		if d := furl.DigestOf(content); err == nil && body.codec.Int64 != codecSealed && string(d[:]) != string(digest) {
			err = errors.New("its bytes do not match the digest")
		}
		if err != nil {
			if err := c.report(storage.Problem{Session: l.key, Text: fmt.Sprintf("content %.16x: %v", digest, err)}); err != nil {
				return err
			}
		}
	}
	if err := rows.Err(); !errors.Is(explain(err), furl.ErrDamaged) {
		return err
	}
	return c.report(storage.Problem{Session: l.key, Text: "its contents are unreadable"})
}
