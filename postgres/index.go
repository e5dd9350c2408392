package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Indexed implements storage.Searchable. If the session does not exist, it
// returns an error wrapping storage.ErrNoSession.
func (s *Store) Indexed(ctx context.Context, key furl.SessionKey) (furl.Seq, error) {
	at, err := int64(0), validKey(key)
	if err == nil {
		err = s.doFor(ctx, key, func(ctx context.Context, _ bool) error {
			err := s.pool.QueryRow(ctx, `select indexed from furl.sessions where tenant = $1 and session = $2`, []byte(key.Tenant), string(key.Session)).Scan(&at)
			if errors.Is(err, pgx.ErrNoRows) {
				return storage.ErrNoSession
			}
			return err
		})
	}
	if err != nil {
		return 0, fmt.Errorf("search index of session %s: %w", key.Session, err)
	}
	return furl.Seq(at), nil
}

// Unindexed implements storage.Searchable.
func (s *Store) Unindexed(ctx context.Context, tenant furl.Tenant) iter.Seq2[storage.SessionInfo, error] {
	return s.infos(ctx, tenant, unindexedSQL, []any{[]byte(tenant)}, func(*storage.SessionInfo) bool { return true }, 0)
}

// Segments are unsigned, but the column is signed: the upper half is stored
// as negative numbers, which sort last. $4 is the first segment.
const (
	pagesSQL = `
select p.session, p.segment, p.data from furl.pages p
where p.tenant = $1 and p.session = $2 and p.bucket = $3
	and (p.segment < 0, p.segment) >= ($4::bigint < 0, $4::bigint)
order by p.segment < 0, p.segment
limit $5`

	// allPagesSQL returns the pages of all sessions from $2 on, with one
	// index lookup for each, independent of the planner's estimates.
	allPagesSQL = `
select s.session, p.segment, p.data
from (
	select session from furl.sessions where tenant = $1 and session >= $2 order by session
) s
cross join lateral (
	select p.segment, p.data from furl.pages p
	where p.tenant = $1 and p.session = s.session and p.bucket = $3
		and (s.session > $2 or (p.segment < 0, p.segment) >= ($4::bigint < 0, $4::bigint))
	order by p.segment < 0, p.segment
	offset 0
) p
order by s.session, p.segment < 0, p.segment
limit $5`
)

// fetch computes how many rows the next statement of a longer read should
// return, so that they are about pageBytes.
type fetch struct{ rows, bytes int64 }

func (f fetch) next() int64 {
	if f.rows == 0 {
		return 256
	}
	return max(16, min(pageRecords, pageBytes/(f.bytes/f.rows+1)))
}

// Pages implements storage.Searchable.
func (s *Store) Pages(ctx context.Context, key furl.SessionKey, bucket uint32) iter.Seq2[storage.IndexPage, error] {
	return func(yield func(storage.IndexPage, error) bool) {
		if key.Session != "" && validKey(key) != nil {
			return // no such session has pages
		}
		sql := pagesSQL
		if key.Session == "" {
			sql = allPagesSQL
		}
		at, from, seen := key.Session, uint64(0), fetch{}
		for {
			limit := seen.next()
			pages, err := s.pages(ctx, sql, key, at, bucket, from, limit)
			if err != nil {
				yield(storage.IndexPage{}, fmt.Errorf("read the search index: %w", err))
				return
			}
			for _, p := range pages {
				seen.rows, seen.bytes = seen.rows+1, seen.bytes+int64(len(p.Data))
				if !yield(p, nil) {
					return
				}
			}
			if int64(len(pages)) < limit {
				return
			}
			last := pages[len(pages)-1]
			at, from = last.Session, last.Segment+1
			if from == 0 { // the last possible segment
				if key.Session != "" {
					return
				}
				at += "!" // sorts before every session that follows
			}
		}
	}
}

// pages runs one statement of Pages.
func (s *Store) pages(ctx context.Context, sql string, key furl.SessionKey, at furl.SessionID, bucket uint32, from uint64, limit int64) (pages []storage.IndexPage, err error) {
	err = s.doFor(ctx, key, func(ctx context.Context, _ bool) error {
		rows, err := s.pool.Query(ctx, sql, []byte(key.Tenant), string(at), int64(bucket), int64(from), limit)
		if err != nil {
			return err
		}
		pages, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (storage.IndexPage, error) {
			var segment int64
			p := storage.IndexPage{Bucket: bucket}
			err := r.Scan(&p.Session, &segment, &p.Data)
			p.Segment = uint64(segment)
			return p, err
		})
		return err
	})
	return pages, err
}

// writeSQL writes pages; existing ones are replaced. See migrations/0004.sql.
const writeSQL = `select furl.write_index($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

// WriteIndex implements storage.Searchable. If the response to a write is lost,
// the write is repeated and may find that its own cursor has moved. That is
// also an error wrapping furl.ErrConflict; the caller should read the cursor
// again.
func (s *Store) WriteIndex(ctx context.Context, key furl.SessionKey, w storage.IndexWrite) error {
	err := validKey(key)
	if err == nil {
		err = s.doFor(ctx, key, func(ctx context.Context, _ bool) error { return s.writeIndex(ctx, s.pool, key, w) })
	}
	if err != nil {
		return fmt.Errorf("write the search index of session %s: %w", key.Session, err)
	}
	return nil
}

func (s *Store) writeIndex(ctx context.Context, q querier, key furl.SessionKey, w storage.IndexWrite) error {
	var drop []int64
	for _, segment := range w.Drop {
		drop = append(drop, int64(segment))
	}
	var did []int64
	pages := newestPages(w.Put)
	if pages.size > s.maxBatch() {
		return fmt.Errorf("pages of %d bytes are too large: the limit is %d", pages.size, s.maxBatch())
	}
	err := q.QueryRow(ctx, writeSQL, []byte(key.Tenant), string(key.Session), int64(w.After), int64(w.To), w.DropAll, drop,
		pages.buckets, pages.segments, pages.data, !s.citus.Load()).Scan(&did)
	switch {
	case err != nil:
		return err
	case len(did) != 3:
		return storage.ErrNoSession
	case did[0] != 0:
		return nil
	case !w.DropAll && furl.Seq(did[1]) != w.After:
		return fmt.Errorf("the cursor is at %d, not at %d: %w", did[1], w.After, furl.ErrConflict)
	}
	return fmt.Errorf("pages up to record %d: the session has %d", w.To, did[2])
}

// pageRows are pages as the columns of the table.
type pageRows struct {
	buckets, segments []int64
	data              [][]byte
	size              int // bytes of data
}

// newestPages returns the rows of pages. If two pages have one place, the later
// wins, as if they had been written one by one.
func newestPages(pages []storage.IndexPage) (rows pageRows) {
	type place struct {
		bucket  uint32
		segment uint64
	}
	newest := make(map[place]int, len(pages))
	for i, p := range pages {
		newest[place{p.Bucket, p.Segment}] = i
	}
	for i, p := range pages {
		if newest[place{p.Bucket, p.Segment}] != i {
			continue
		}
		rows.buckets, rows.segments = append(rows.buckets, int64(p.Bucket)), append(rows.segments, int64(p.Segment))
		rows.data = append(rows.data, append([]byte{}, p.Data...)) // nil would be null
		rows.size += len(p.Data)
	}
	return rows
}
