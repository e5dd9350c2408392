package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
)

// insertRecords inserts the rows of a batch, given as arrays of one length.
// If the session, or an earlier record of the batch, already has the body,
// the new record refers to that record. Only records that store a body have a
// print.
const insertRecords = `
insert into furl.records (tenant, session, seq, stored, same, print, size, sum, chain, head, body)
select $1, $2, $3 + b.n, s.updated, coalesce(p.seq, nullif(b.same, 0)),
	case when p.seq is null and b.same = 0 then nullif(b.print, 0) end,
	b.size, b.sum, b.chain, b.head,
	case when p.seq is null and b.same = 0 then b.body end
from s
cross join unnest($4::bigint[], $5::bigint[], $6::integer[], $7::integer[], $8::bytea[], $9::bytea[], $10::bytea[])
	with ordinality as b (same, print, size, sum, chain, head, body, n)
left join lateral (
	select p.seq from furl.records p
	where p.tenant = $1 and p.session = $2 and p.print = nullif(b.print, 0) and p.body = b.body
	limit 1
) p on true`

// extendSQL appends to a session that has exactly as many records as the
// caller expects. The update locks the session's row, so that concurrent
// appends wait and then find another count. Compare-and-swap needs nothing
// else.
const extendSQL = `
with s as (
	update furl.sessions set
		records = records + $11::bigint, messages = messages + $12::bigint, bytes = bytes + $13::bigint,
		updated = greatest(updated, clock_timestamp()),
		meta = coalesce($14::bytea, meta),
		hint = case when $14::bytea is null then hint else $15::bigint end
	where tenant = $1::bytea and session = $2::text and records = $3::bigint
		and ($16::bytea is null or meta = $16::bytea)
	returning updated
)` + insertRecords

// createSQL appends to a session that does not exist.
const createSQL = `
with s as (
	insert into furl.sessions (tenant, session, life, records, messages, bytes, created, updated, meta, hint)
	select $1::bytea, $2::text, $16::bigint, $11::bigint, $12::bigint, $13::bigint, now(), now(), coalesce($14::bytea, '{}'), $15::bigint
	where $3::bigint = 0
	on conflict (tenant, session) do nothing
	returning updated
)` + insertRecords

// appendSQL does the same for contents too, and on Citus. See migrations/0004.sql.
const appendSQL = `select furl.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)`

// metaSQL sets the metadata of a session, if it still is what the caller expects.
const metaSQL = `
update furl.sessions set
	meta = coalesce($3::bytea, meta),
	hint = case when $3::bytea is null then hint else $4::bigint end
where tenant = $1 and session = $2 and ($5::bytea is null or meta = $5::bytea)`

// Append implements storage.Store.
func (s *Store) Append(ctx context.Context, key furl.SessionKey, b storage.Batch) error {
	if err := s.append(ctx, key, b); err != nil {
		return fmt.Errorf("append to session %s: %w", key.Session, err)
	}
	return nil
}

func (s *Store) append(ctx context.Context, key furl.SessionKey, b storage.Batch) error {
	if err := storage.CheckBatch(key, &b); err != nil {
		return err
	}
	meta, hint, err := encodeMeta(b.Meta)
	if err != nil {
		return err
	}
	was, err := expectedMeta(&b)
	if err != nil {
		return err
	}
	if len(b.Records) == 0 {
		return s.doFor(ctx, key, func(ctx context.Context, _ bool) error {
			for {
				tag, err := s.pool.Exec(ctx, metaSQL, []byte(key.Tenant), string(key.Session), meta, hint, was)
				if err != nil || tag.RowsAffected() > 0 {
					return err
				}
				if was == nil {
					return storage.ErrNoSession
				}
				if was, err = s.storedMeta(ctx, key, &b, was); err != nil {
					return err
				}
			}
		})
	}
	rows, err := encodeRows(b.Records, s.maxBatch())
	if err != nil {
		return err
	}
	if rows.contents, err = encodeContents(&b, rows.total, s.maxBatch()); err != nil {
		return err
	}
	unsure := false
	err = s.doFor(ctx, key, func(ctx context.Context, again bool) error {
		err := s.appendOnce(ctx, key, &b, rows, meta, was, hint)
		unsure = again || err != nil && (transient(err) || s.citus.Load() && fromNode(err))
		return err
	})
	if err == nil {
		s.told(key)
		return nil
	}
	if unsure && !errors.Is(err, furl.ErrConflict) {
		return fmt.Errorf("the connection was lost before the server responded, so the append may or may not be committed: repeating it is safe: %w", err)
	}
	return err
}

// appendOnce appends, or finds that the records were appended before.
func (s *Store) appendOnce(ctx context.Context, key furl.SessionKey, b *storage.Batch, rows *rows, meta, was []byte, hint *int64) error {
	for {
		n, err := s.insert(ctx, key, rows, meta, was, hint)
		if err != nil || n == int64(len(rows.heads)) {
			return err
		}
		err = s.repeated(ctx, key, rows)
		if !errors.Is(err, errOtherMeta) || was == nil {
			return err
		}
		if was, err = s.storedMeta(ctx, key, b, was); err != nil {
			return err
		}
	}
}

// insert inserts records with their contents and returns the number of records.
// Without contents, a server that is not Citus needs no function.
func (s *Store) insert(ctx context.Context, key furl.SessionKey, rows *rows, meta, was []byte, hint *int64) (n int64, err error) {
	args := []any{
		[]byte(key.Tenant), string(key.Session), int64(rows.after),
		rows.same, rows.prints, rows.sizes, rows.sums, rows.chains, rows.heads, rows.bodies,
		int64(len(rows.heads)), int64(rows.messages), rows.bytes, meta, hint,
	}
	life := rand.Int64()
	if c := &rows.contents; s.citus.Load() || len(c.digests) > 0 {
		err = s.pool.QueryRow(ctx, appendSQL, append(args, was, life, c.digests, c.sizes, c.data, !s.citus.Load())...).Scan(&n)
		return n, err
	}
	sql := extendSQL
	if rows.after == 0 {
		sql, args = createSQL, append(args, life)
	} else {
		args = append(args, was)
	}
	tag, err := s.pool.Exec(ctx, sql, args...)
	return tag.RowsAffected(), err
}

// errOtherMeta is the error for a session that has the expected records, and other
// metadata than the batch expects.
var errOtherMeta = fmt.Errorf("the session's metadata has changed: %w", furl.ErrConflict)

// expectedMeta returns the column that the batch expects, nil for any.
func expectedMeta(b *storage.Batch) ([]byte, error) {
	if b.Meta == nil || b.MetaWas == nil {
		return nil, nil
	}
	was, _, err := encodeMeta(b.MetaWas)
	return was, err
}

// storedMeta returns a session's column if it is the metadata that the batch expects
// in other bytes than was, as another version of furl writes it. Otherwise the error
// wraps furl.ErrConflict.
func (s *Store) storedMeta(ctx context.Context, key furl.SessionKey, b *storage.Batch, was []byte) ([]byte, error) {
	var has []byte
	err := s.pool.QueryRow(ctx, `select meta from furl.sessions where tenant = $1 and session = $2`, []byte(key.Tenant), string(key.Session)).Scan(&has)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, storage.ErrNoSession
	case err != nil:
		return nil, err
	case bytes.Equal(has, was) || !b.MetaMatches(has):
		return nil, errOtherMeta
	}
	return has, nil
}

// repeated returns nil if the session already has these records with the same
// bytes, and otherwise an error wrapping furl.ErrConflict.
func (s *Store) repeated(ctx context.Context, key furl.SessionKey, rows *rows) error {
	var has int64
	err := s.pool.QueryRow(ctx, `select records from furl.sessions where tenant = $1 and session = $2`, []byte(key.Tenant), string(key.Session)).Scan(&has)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("the batch starts at record %d, but the session has no records: %w", rows.after+1, furl.ErrConflict)
	}
	if err != nil {
		return err
	}
	conflict := fmt.Errorf("the batch starts at record %d, but the session has %d records: %w", rows.after+1, has, furl.ErrConflict)
	last := int64(rows.after) + int64(len(rows.heads))
	if has == int64(rows.after) {
		return errOtherMeta
	}
	if has < last {
		return conflict
	}
	found, err := s.pool.Query(ctx, rangeSQL, []byte(key.Tenant), string(key.Session), int64(rows.after), last)
	if err != nil {
		return err
	}
	defer found.Close()
	n := 0
	for ; found.Next(); n++ {
		var r row
		if err := r.scan(found); err != nil {
			return err
		}
		body, err := r.unpack()
		if err != nil {
			return fmt.Errorf("record %d: %w: %w", r.seq, furl.ErrDamaged, err)
		}
		if !bytes.Equal(r.head, rows.heads[n]) || !bytes.Equal(body, rows.raw[n]) {
			return conflict
		}
	}
	if err := found.Err(); err != nil {
		return err
	}
	if n < len(rows.heads) {
		return conflict
	}
	return nil
}

// rows are the records of a batch, as the columns of the table.
type rows struct {
	after    furl.Seq // the record before the first
	same     []int64  // the earlier record of the batch with this body; 0 if none
	prints   []int64  // of a body that can be shared; 0 if none
	sizes    []int32
	sums     []int32
	chains   [][]byte
	heads    [][]byte
	bodies   [][]byte // packed; nil if none
	raw      [][]byte
	messages int
	bytes    int64
	total    int // bytes of heads and bodies
	contents contents
}

// maxBatch bounds the bytes of one append: PostgreSQL limits a statement to 1
// GB. Citus sends arguments to another server in hexadecimal.
func (s *Store) maxBatch() int {
	if s.citus.Load() {
		return 256 << 20
	}
	return 512 << 20
}

// encodeRows encodes the records of a batch that passed Batch.Check.
func encodeRows(records []furl.Record, maxBatch int) (*rows, error) {
	n := len(records)
	r := &rows{
		after: records[0].Seq - 1,
		same:  make([]int64, n), prints: make([]int64, n), sizes: make([]int32, n), sums: make([]int32, n),
		chains: make([][]byte, n), heads: make([][]byte, n), bodies: make([][]byte, n), raw: make([][]byte, n),
	}
	holder := map[int64]int{} // by print
	for i, rec := range records {
		head, body, err := record.Encode(rec)
		if err != nil {
			return nil, err
		}
		if r.total += len(head) + len(body); len(body) > maxBody || r.total > maxBatch {
			return nil, fmt.Errorf("record %d: too large: the limit for a body is %d bytes, for a batch %d", rec.Seq, maxBody, maxBatch)
		}
		size := len(body)
		_, sealed := rec.Body.(*furl.Sealed)
		if n, ok := record.MessageSize(&rec); ok {
			size = min(n, math.MaxInt32)
			r.bytes += int64(size)
			r.chains[i] = append([]byte(nil), rec.Chain[:]...)
			r.messages++
		}
		r.heads[i], r.raw[i] = head, body
		r.sizes[i], r.sums[i] = int32(size), checksum(head, body)
		if len(body) > smallBody && !sealed {
			print := printOf(body)
			r.prints[i] = print
			if at, ok := holder[print]; !ok {
				holder[print] = i
			} else if bytes.Equal(r.raw[at], body) {
				r.same[i] = int64(records[at].Seq)
			}
		}
		if r.bodies[i] = pack(body); sealed {
			r.bodies[i] = packSealed(body)
		}
	}
	return r, nil
}

// encodeMeta returns the columns of a session's Meta, nil for no Meta.
func encodeMeta(m *storage.Meta) (meta []byte, hint *int64, err error) {
	if m == nil {
		return nil, nil, nil
	}
	if meta, err = json.Marshal(m); err != nil {
		return nil, nil, err
	}
	if m.Hint != "" {
		print := printOf([]byte(string([]rune(m.Hint)))) // in JSON's form
		hint = &print
	}
	return meta, hint, nil
}
