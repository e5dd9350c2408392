package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
)

// Limits of one statement of a longer read. Between statements no connection
// is in use: the caller's loop may use the store itself. The first statement
// fetches little, for callers that want one record.
const (
	pageFirst   = 4
	pageRecords = 4096
	pageBytes   = 8 << 20
)

// Limits of the first statement of ReadInfo, whose caller usually wants all records.
const (
	infoRecords = 256
	infoBytes   = 1 << 20
)

// columns of a record r of session $2 of tenant $1, with its body, which may
// be stored with another record of the session.
const columns = `r.seq, r.head, r.size, r.sum, coalesce(r.body, (
	select o.body from furl.records o where o.tenant = $1 and o.session = $2 and o.seq = r.same))`

// rangeSQL returns the records after $3 up to $4.
const rangeSQL = `
select ` + columns + ` from furl.records r
where r.tenant = $1 and r.session = $2 and r.seq > $3 and r.seq <= $4
order by r.seq`

// pageSQL returns the session's number of records and its life, and the first
// records after $3: at most $4 records, and at most one more than fit into $5
// bytes.
const pageSQL = `
select s.records, s.life, r.*
` + pageOf + `
	where r.before <= $5
) r on true
where s.tenant = $1 and s.session = $2
order by r.seq`

// infoPageSQL is the same with the description of the session, which is in the first row
// only, and without a record that does not fit.
const infoPageSQL = `
select s.records, s.life, r.*,
	case when r.seq is null or r.seq = $3 + 1 then s.meta end, s.created, s.updated, s.messages, s.bytes
` + pageOf + `
	where r.before + octet_length(r.head) + r.size <= $5
) r on true
where s.tenant = $1 and s.session = $2
order by r.seq`

// pageOf is the common part of both.
const pageOf = `from furl.sessions s
left join lateral (
	select ` + columns + `
	from (
		select *, sum(octet_length(head) + size) over (order by seq) - octet_length(head) - size as before
		from furl.records
		where tenant = $1 and session = $2 and seq > $3
		order by seq limit $4
	) r`

// row is one stored record.
type row struct {
	seq  int64
	head pgtype.DriverBytes // until the next row
	body pgtype.DriverBytes // packed; until the next row
	size int32              // of the body, uncompressed
	sum  int32
}

func (r *row) scan(from pgx.Rows) error {
	return from.Scan(&r.seq, &r.head, &r.size, &r.sum, &r.body)
}

// unpack returns the body, nil if there is none, after verifying the
// checksum.
func (r *row) unpack() (body []byte, err error) {
	if r.body != nil {
		if body, err = unpack(r.body, int(r.size)); err != nil {
			return nil, err
		}
	}
	if checksum(r.head, body) != r.sum {
		return nil, errors.New("checksum mismatch")
	}
	return body, nil
}

// decode decodes the record.
func (r *row) decode() (furl.Record, error) {
	body, err := r.unpack()
	if err != nil {
		return furl.Record{}, fmt.Errorf("record %d: %w: %w", r.seq, furl.ErrDamaged, err)
	}
	rec, err := record.Decode(r.head, body)
	if err == nil && int64(rec.Seq) != r.seq {
		err = fmt.Errorf("record number %d: found %d: %w", r.seq, rec.Seq, furl.ErrDamaged)
	}
	return rec, err
}

// Read implements storage.Store. If the session is deleted during the read, it
// ends with an error wrapping storage.ErrNoSession.
func (s *Store) Read(ctx context.Context, key furl.SessionKey, after furl.Seq) iter.Seq2[furl.Record, error] {
	return func(yield func(furl.Record, error) bool) {
		p := page{at: int64(min(after, 1<<62)), end: -1, limit: pageFirst}
		if err := validKey(key); err != nil {
			yield(furl.Record{}, fmt.Errorf("read: %w", err))
			return
		}
		if err := s.readPage(ctx, key, &p); err != nil {
			yield(furl.Record{}, fmt.Errorf("read session %s: %w", key.Session, err))
			return
		}
		s.readOn(ctx, key, &p, yield)
	}
}

// ReadInfo implements storage.InfoReader by one statement, and further ones for what does
// not fit into it.
func (s *Store) ReadInfo(ctx context.Context, key furl.SessionKey, after furl.Seq) (storage.SessionInfo, iter.Seq2[furl.Record, error], error) {
	info := storage.SessionInfo{SessionKey: key}
	first := page{at: int64(min(after, 1<<62)), end: -1, limit: infoRecords, info: &info}
	err := validKey(key)
	if err == nil {
		err = s.readPage(ctx, key, &first)
	}
	if err != nil {
		return storage.SessionInfo{}, nil, fmt.Errorf("read session %.140q: %w", key.Session, err)
	}
	first.info = nil
	return info, func(yield func(furl.Record, error) bool) {
		p := first
		s.readOn(ctx, key, &p, yield)
	}, nil
}

// readOn yields the records of a page, and then those of the following ones.
func (s *Store) readOn(ctx context.Context, key furl.SessionKey, p *page, yield func(furl.Record, error) bool) {
	fail := func(err error) { yield(furl.Record{}, fmt.Errorf("read session %s: %w", key.Session, err)) }
	for {
		for _, r := range p.records {
			if err := ctx.Err(); err != nil {
				fail(err)
				return
			}
			if !yield(r, nil) {
				return
			}
		}
		if p.damaged != nil {
			fail(p.damaged)
			return
		}
		if p.at >= p.end {
			return
		}
		p.limit = pageRecords
		if err := s.readPage(ctx, key, p); err != nil {
			fail(err)
			return
		}
	}
}

// page is the position of a read and its last chunk.
type page struct {
	info    *storage.SessionInfo // to be read too; nil: not
	at      int64                // the last record read
	end     int64                // the last record at the start of the read; -1: not started
	life    int64
	limit   int // of the next statement
	records []furl.Record
	damaged error // the error after them
}

// readPage reads the next chunk.
func (s *Store) readPage(ctx context.Context, key furl.SessionKey, p *page) error {
	begun := *p
	return s.doFor(ctx, key, func(ctx context.Context, _ bool) error {
		*p = begun
		p.records = nil
		sql, most := pageSQL, pageBytes
		if p.info != nil {
			sql, most = infoPageSQL, infoBytes
		}
		found, err := s.pool.Query(ctx, sql, []byte(key.Tenant), string(key.Session), p.at, p.limit, most)
		if err != nil {
			return err
		}
		defer found.Close()
		return p.take(found)
	})
}

// take reads the rows of one statement.
func (p *page) take(found pgx.Rows) error {
	exists := false
	for found.Next() {
		var (
			r             row
			records, life int64
			seq           *int64
			size, sum     *int32
			meta          []byte
		)
		to := []any{&records, &life, &seq, &r.head, &size, &sum, &r.body}
		if p.info != nil {
			to = append(to, &meta, &p.info.Created, &p.info.Updated, &p.info.Messages, &p.info.Bytes)
		}
		if err := found.Scan(to...); err != nil {
			return err
		}
		if p.info != nil && !exists {
			if err := setInfo(p.info, meta, records); err != nil {
				return err
			}
		}
		exists = true
		if p.end < 0 {
			p.end, p.life = records, life
		}
		if p.life != life {
			return fmt.Errorf("the session was deleted during the read: %w", storage.ErrNoSession)
		}
		if seq == nil || *seq > p.end || p.damaged != nil {
			continue
		}
		r.seq, r.size, r.sum = *seq, *size, *sum
		if r.seq != p.at+1 {
			p.damaged = fmt.Errorf("record %d is missing: %w", p.at+1, furl.ErrDamaged)
			continue
		}
		rec, err := r.decode()
		if err != nil {
			p.damaged = err
			continue
		}
		p.records, p.at = append(p.records, rec), r.seq
	}
	if err := found.Err(); err != nil {
		return err
	}
	if !exists {
		return storage.ErrNoSession
	}
	if len(p.records) == 0 && p.damaged == nil && p.at < p.end && p.info == nil {
		p.damaged = fmt.Errorf("record %d is missing: %w", p.at+1, furl.ErrDamaged)
	}
	return nil
}

// validKey refuses keys that no session can have.
func validKey(key furl.SessionKey) error {
	if !storage.ValidID(key.Session) {
		return fmt.Errorf("invalid session id %.140q: %w", key.Session, storage.ErrNoSession)
	}
	return nil
}
