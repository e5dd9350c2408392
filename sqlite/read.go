package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
)

// Records are fetched in chunks, so that a slow reader does not hold a
// connection or old pages of the write-ahead log. Records never change, and
// the number of records at the start says where to end. The first chunk is
// small, for callers that want one record.
const (
	chunkFirst   = 4
	chunkRecords = 512
	chunkBytes   = 4 << 20
)

// Read implements storage.Store.
func (s *Store) Read(ctx context.Context, key furl.SessionKey, after furl.Seq) iter.Seq2[furl.Record, error] {
	return func(yield func(furl.Record, error) bool) {
		fail := func(err error) {
			yield(furl.Record{}, s.failed(fmt.Sprintf("read session %.140q", key.Session), err))
		}
		id, has, err := s.lookUp(ctx, key)
		if err != nil {
			fail(err)
			return
		}
		if after > maxSeq {
			return
		}
		limit := chunkFirst
		for at := int64(after); at < has; limit = min(16*limit, chunkRecords) {
			chunk, err := s.chunk(ctx, id, at, has, limit)
			for i := range chunk {
				if err := ctx.Err(); err != nil {
					fail(err)
					return
				}
				r, err := chunk[i].open(at + 1)
				if err != nil {
					fail(err)
					return
				}
				if !yield(r, nil) {
					return
				}
				at++
			}
			if err != nil {
				fail(err)
				return
			}
		}
	}
}

// ReadInfo implements storage.InfoReader: one statement if there are no records after the
// number after.
func (s *Store) ReadInfo(ctx context.Context, key furl.SessionKey, after furl.Seq) (storage.SessionInfo, iter.Seq2[furl.Record, error], error) {
	infos, err := s.listInfos(ctx, sessionColumns+" AND s.name = ?", []any{[]byte(key.Tenant), string(key.Session)})
	if err == nil && len(infos) == 0 {
		err = noSession(key.Session)
	}
	if err != nil {
		return storage.SessionInfo{}, nil, s.failed(fmt.Sprintf("read session %.140q", key.Session), err)
	}
	if infos[0].Records <= after {
		return infos[0], func(func(furl.Record, error) bool) {}, nil
	}
	return infos[0], s.Read(ctx, key, after), nil
}

// lookUp finds a session's id and its number of records.
func (s *Store) lookUp(ctx context.Context, key furl.SessionKey) (id, records int64, err error) {
	if err := s.ready(ctx); err != nil {
		return 0, 0, err
	}
	err = s.row(ctx, "SELECT s.id, s.records FROM tenants t JOIN sessions s ON s.tenant = t.id WHERE t.name = ? AND s.name = ?",
		[]byte(key.Tenant), string(key.Session)).Scan(&id, &records)
	if errors.Is(err, sql.ErrNoRows) {
		err = noSession(key.Session)
	}
	return id, records, err
}

// fetched is a record in its stored form.
type fetched struct {
	id, sum int64
	head    []byte
	body    packedBody
}

// packedBody is a body in its stored form; all fields are NULL if the record
// has none.
type packedBody struct {
	codec, size sql.NullInt64
	data        []byte
}

func (b *packedBody) open() ([]byte, error) {
	if !b.codec.Valid {
		return nil, nil
	}
	return unpack(b.codec.Int64, b.size.Int64, b.data)
}

// open decodes the record, which must have the number seq.
func (f *fetched) open(seq int64) (furl.Record, error) {
	body, err := f.body.open()
	if err != nil {
		return furl.Record{}, fmt.Errorf("record %d: %w", seq, err)
	}
	if sumOf(f.head, body) != f.sum {
		return furl.Record{}, fmt.Errorf("record %d: checksum mismatch: %w", seq, furl.ErrDamaged)
	}
	r, err := record.Decode(f.head, body)
	if err == nil && int64(r.Seq) != seq {
		err = fmt.Errorf("record number %d: expected %d: %w", r.Seq, seq, furl.ErrDamaged)
	}
	return r, err
}

// chunk fetches records after the number after and up to last. With an error
// it also returns the records read before. A missing record is an error.
func (s *Store) chunk(ctx context.Context, session, after, last int64, limit int) (chunk []fetched, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	rows, err := s.rows(ctx, `SELECT r.id, r.sum, r.head,
		coalesce(b.codec, r.codec), coalesce(b.size, r.size), coalesce(b.data, r.body)
		FROM records r LEFT JOIN bodies b ON b.id = r.big WHERE r.id > ? AND r.id <= ? ORDER BY r.id LIMIT ? + 0`,
		recordID(session, after), recordID(session, last), limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	size := 0
	for size < chunkBytes && rows.Next() {
		var f fetched
		if err := rows.Scan(&f.id, &f.sum, &f.head, &f.body.codec, &f.body.size, &f.body.data); err != nil {
			return chunk, err
		}
		if f.id != recordID(session, after+int64(len(chunk))+1) {
			break
		}
		size += len(f.head) + len(f.body.data)
		chunk = append(chunk, f)
	}
	if err := rows.Err(); err != nil {
		return chunk, err
	}
	if len(chunk) == 0 {
		return nil, s.missing(ctx, session, after+1)
	}
	return chunk, nil
}

// missing says why a record does not exist: the session was deleted
// meanwhile, or the store is damaged.
func (s *Store) missing(ctx context.Context, session, seq int64) error {
	var n int
	if err := s.read.QueryRowContext(ctx, "SELECT count(*) FROM sessions WHERE id = ?", session).Scan(&n); err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("the session was deleted during the read: %w", storage.ErrNoSession)
	}
	return fmt.Errorf("record %d is missing: %w", seq, furl.ErrDamaged)
}
