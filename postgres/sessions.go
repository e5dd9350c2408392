package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// infoColumns are the columns of a storage.SessionInfo.
const infoColumns = `session, meta, created, updated, records, messages, bytes`

// sessionsSQL lists sessions. Ids contain only characters below "~".
const sessionsSQL = `
select ` + infoColumns + ` from furl.sessions
where tenant = $1 and session >= $2 and session < $2 || '~'
	and ($3::timestamptz is null or updated >= $3) and ($4::timestamptz is null or updated < $4)
order by updated desc, session
limit $5`

// hintedSQL is the same for sessions whose hint has the print $6.
const hintedSQL = `
select ` + infoColumns + ` from furl.sessions
where tenant = $1 and hint = $6 and session >= $2 and session < $2 || '~'
	and ($3::timestamptz is null or updated >= $3) and ($4::timestamptz is null or updated < $4)
order by updated desc, session
limit $5`

// unindexedSQL lists sessions with records that are not indexed.
const unindexedSQL = `
select ` + infoColumns + ` from furl.sessions
where tenant = $1 and indexed < records
order by updated desc, session`

// canBegin reports whether ids of sessions may start with prefix: a reserved
// id can be the prefix of a valid one.
func canBegin(prefix furl.SessionID) bool {
	return storage.ValidID(prefix) || storage.ReservedID(prefix)
}

// Sessions implements storage.Store.
func (s *Store) Sessions(ctx context.Context, tenant furl.Tenant, q storage.SessionQuery) iter.Seq2[storage.SessionInfo, error] {
	if q.Prefix != "" && !canBegin(furl.SessionID(q.Prefix)) {
		return func(func(storage.SessionInfo, error) bool) {} // no id starts with it
	}
	limit := func(n int) *int {
		if n <= 0 {
			return nil
		}
		return &n
	}
	sql, args := sessionsSQL, []any{[]byte(tenant), q.Prefix, moment(q.Since), moment(q.Before), limit(q.Limit)}
	if q.Hint != "" {
		// Other hints may have the same print, so the limit is applied after
		// comparing the hints.
		sql, args[4] = hintedSQL, nil
		args = append(args, printOf([]byte(q.Hint)))
	}
	return s.infos(ctx, tenant, sql, args, func(info *storage.SessionInfo) bool { return q.Hint == "" || info.Hint == q.Hint }, q.Limit)
}

// Tenants implements storage.TenantLister.
func (s *Store) Tenants(ctx context.Context) (tenants []furl.Tenant, err error) {
	if tenants, err = s.tenants(ctx, `select distinct tenant from furl.sessions order by tenant`); err != nil {
		return nil, fmt.Errorf("list tenants: %w", err)
	}
	return tenants, nil
}

// tenants returns the tenants that a query lists.
func (s *Store) tenants(ctx context.Context, query string) (tenants []furl.Tenant, err error) {
	err = s.do(ctx, func(ctx context.Context, _ bool) error {
		rows, err := s.pool.Query(ctx, query)
		if err != nil {
			return err
		}
		tenants, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (furl.Tenant, error) {
			var name []byte
			err := r.Scan(&name)
			return furl.Tenant(name), err
		})
		return err
	})
	return tenants, err
}

// moment returns a parameter for a time, null for the zero time.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// infos runs a statement that returns infoColumns.
func (s *Store) infos(ctx context.Context, tenant furl.Tenant, sql string, args []any, keep func(*storage.SessionInfo) bool, limit int) iter.Seq2[storage.SessionInfo, error] {
	return func(yield func(storage.SessionInfo, error) bool) {
		var found []storage.SessionInfo
		err := s.do(ctx, func(ctx context.Context, _ bool) error {
			rows, err := s.pool.Query(ctx, sql, args...)
			if err != nil {
				return err
			}
			found, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (storage.SessionInfo, error) { return scanInfo(r, tenant) })
			return err
		})
		if err != nil {
			yield(storage.SessionInfo{}, fmt.Errorf("list sessions: %w", err))
			return
		}
		n := 0
		for i := range found {
			if !keep(&found[i]) {
				continue
			}
			if n++; limit > 0 && n > limit || !yield(found[i], nil) {
				return
			}
		}
	}
}

func scanInfo(r pgx.CollectableRow, tenant furl.Tenant) (storage.SessionInfo, error) {
	var (
		info    = storage.SessionInfo{SessionKey: furl.SessionKey{Tenant: tenant}}
		meta    []byte
		records int64
	)
	err := r.Scan(&info.Session, &meta, &info.Created, &info.Updated, &records, &info.Messages, &info.Bytes)
	if err != nil {
		return info, err
	}
	err = setInfo(&info, meta, records)
	return info, err
}

// setInfo completes a description by the columns that have another form in it.
func setInfo(info *storage.SessionInfo, meta []byte, records int64) error {
	info.Records = furl.Seq(records)
	info.Created, info.Updated = info.Created.UTC(), info.Updated.UTC()
	if err := json.Unmarshal(meta, &info.Meta); err != nil {
		return fmt.Errorf("session %s: decode metadata: %w: %w", info.Session, furl.ErrDamaged, err)
	}
	return nil
}

// matchSQL looks up each chain in the index, newest first, so that a chain
// shared by many sessions costs no more than the limit.
const matchSQL = `
select m.session, m.seq, m.chain
from (select distinct unnest($2::bytea[]) as chain) c
cross join lateral (
	select r.session, r.seq, r.chain, r.stored from furl.records r
	where r.tenant = $1 and r.chain = c.chain
	order by r.stored desc, r.seq desc
	limit $3
) m
order by m.stored desc, m.seq desc, m.session
limit $3`

// matchCitusSQL is the same on Citus, which refuses the lateral: each shard
// returns the newest.
const matchCitusSQL = `
select session, seq, chain from furl.records
where tenant = $1 and chain = any($2::bytea[])
order by stored desc, seq desc, session
limit $3`

// Match implements storage.Store.
func (s *Store) Match(ctx context.Context, tenant furl.Tenant, chains []furl.Digest, limit int) ([]storage.Matched, error) {
	wanted := make([][]byte, 0, len(chains))
	for i := range chains {
		if !chains[i].IsZero() { // the zero digest is not a chain
			wanted = append(wanted, chains[i][:])
		}
	}
	if len(wanted) == 0 || limit <= 0 {
		return nil, nil
	}
	sql := matchSQL
	if s.citus.Load() {
		sql = matchCitusSQL
	}
	var found []storage.Matched
	err := s.do(ctx, func(ctx context.Context, _ bool) error {
		rows, err := s.pool.Query(ctx, sql, []byte(tenant), wanted, limit)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (storage.Matched, error) {
			var (
				m     storage.Matched
				seq   int64
				chain []byte
			)
			err := r.Scan(&m.Session, &seq, &chain)
			m.Seq = furl.Seq(seq)
			copy(m.Chain[:], chain)
			return m, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("match: %w", err)
	}
	return found, nil
}
