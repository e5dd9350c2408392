package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
)

// Match implements storage.Store.
func (s *Store) Match(ctx context.Context, tenant furl.Tenant, chains []furl.Digest, limit int) ([]storage.Matched, error) {
	matched, err := s.match(ctx, tenant, chains, limit)
	if err != nil {
		return nil, s.failed("match", err)
	}
	return matched, nil
}

func (s *Store) match(ctx context.Context, tenant furl.Tenant, chains []furl.Digest, limit int) (matched []storage.Matched, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if limit <= 0 {
		return nil, nil
	}
	seen := make(map[furl.Digest]bool, len(chains))
	keys := make([]int64, 0, len(chains))
	for _, c := range chains {
		if seen[c] || c.IsZero() {
			continue
		}
		seen[c] = true
		keys = append(keys, chainKey(c))
	}
	slices.Sort(keys)
	list, err := json.Marshal(slices.Compact(keys))
	if err != nil {
		return nil, err
	}
	// Chains that differ only after their key are found too; a further round
	// replaces those.
	for before := int64(math.MaxInt64); len(matched) < limit; {
		found, last, err := s.matchRound(ctx, tenant, list, before, limit)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			if chain, ok := record.Chain(f.head); ok && seen[chain] && len(matched) < limit {
				matched = append(matched, storage.Matched{Session: f.session, Seq: f.seq, Chain: chain})
			}
		}
		if len(found) < limit {
			break
		}
		before = last
	}
	return matched, nil
}

type foundChain struct {
	session furl.SessionID
	seq     furl.Seq
	head    []byte
}

func (s *Store) matchRound(ctx context.Context, tenant furl.Tenant, keys []byte, before int64, limit int) (found []foundChain, last int64, err error) {
	rows, err := s.rows(ctx, `SELECT c.at, c.record, s.name, r.head FROM (
			SELECT c.at, c.record FROM tenants t
			CROSS JOIN json_each(?) k CROSS JOIN chains c ON c.tenant = t.id AND c.chain = k.value
			WHERE t.name = ? AND c.at < ? ORDER BY c.at DESC LIMIT ? + 0
		) c CROSS JOIN records r ON r.id = c.record CROSS JOIN sessions s ON s.id = c.record >> 32 ORDER BY c.at DESC`,
		string(keys), []byte(tenant), before, limit)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var f foundChain
		var record int64
		if err := rows.Scan(&last, &record, &f.session, &f.head); err != nil {
			return nil, 0, err
		}
		f.seq = furl.Seq(record & maxSeq)
		found = append(found, f)
	}
	return found, last, rows.Err()
}

// Sessions implements storage.Store.
func (s *Store) Sessions(ctx context.Context, tenant furl.Tenant, q storage.SessionQuery) iter.Seq2[storage.SessionInfo, error] {
	query, args := sessionColumns, []any{[]byte(tenant)}
	where := func(condition string, values ...any) {
		query += " AND " + condition
		args = append(args, values...)
	}
	if q.Prefix != "" {
		// The range conditions let SQLite use the index.
		where("s.name >= ? AND s.name <= ? AND substr(s.name, 1, ?) = ?", q.Prefix, q.Prefix+string(utf8.MaxRune), utf8.RuneCountInString(q.Prefix), q.Prefix)
	}
	if !q.Since.IsZero() {
		where("s.updated >= ?", nanos(q.Since))
	}
	if !q.Before.IsZero() {
		where("s.updated < ?", nanos(q.Before))
	}
	if q.Hint != "" {
		where("s.hint = ?", []byte(q.Hint))
	}
	query += " ORDER BY s.updated DESC"
	if q.Limit > 0 {
		query += " LIMIT ? + 0" // see prepared
		args = append(args, q.Limit)
	}
	return s.infos(ctx, "list sessions", query, args)
}

// Tenants implements storage.TenantLister.
func (s *Store) Tenants(ctx context.Context) ([]furl.Tenant, error) {
	tenants, err := s.listTenants(ctx)
	if err != nil {
		return nil, s.failed("list tenants", err)
	}
	return tenants, nil
}

func (s *Store) listTenants(ctx context.Context) (tenants []furl.Tenant, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, `SELECT name FROM tenants t WHERE EXISTS (SELECT 1 FROM sessions s WHERE s.tenant = t.id) ORDER BY name`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name []byte
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		tenants = append(tenants, furl.Tenant(name))
	}
	return tenants, rows.Err()
}

// Unindexed implements storage.Searchable.
func (s *Store) Unindexed(ctx context.Context, tenant furl.Tenant) iter.Seq2[storage.SessionInfo, error] {
	return s.infos(ctx, "list sessions to index", sessionColumns+" AND s.indexed < s.records ORDER BY s.updated DESC", []any{[]byte(tenant)})
}

const sessionColumns = `SELECT t.name, s.name, s.records, s.messages, s.bytes, s.created, s.updated, s.meta
	FROM tenants t JOIN sessions s ON s.tenant = t.id WHERE t.name = ?`

// nanos returns a time in its stored form, or the nearest representable one.
func nanos(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// infos yields the sessions of a query. All are read before the first is
// yielded, so that the caller may use the store in between.
func (s *Store) infos(ctx context.Context, doing string, query string, args []any) iter.Seq2[storage.SessionInfo, error] {
	return func(yield func(storage.SessionInfo, error) bool) {
		infos, err := s.listInfos(ctx, query, args)
		if err != nil {
			yield(storage.SessionInfo{}, s.failed(doing, err))
			return
		}
		for _, info := range infos {
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (s *Store) listInfos(ctx context.Context, query string, args []any) (infos []storage.SessionInfo, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	rows, err := s.rows(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var info storage.SessionInfo
		var tenant, meta []byte
		var created, updated int64
		if err := rows.Scan(&tenant, &info.Session, &info.Records, &info.Messages, &info.Bytes, &created, &updated, &meta); err != nil {
			return nil, err
		}
		info.Tenant = furl.Tenant(tenant)
		info.Created, info.Updated = time.Unix(0, created).UTC(), time.Unix(0, updated).UTC()
		if meta != nil {
			if err := json.Unmarshal(meta, &info.Meta); err != nil {
				return nil, fmt.Errorf("session %s: %w: decode metadata: %w", info.Session, furl.ErrDamaged, err)
			}
		}
		infos = append(infos, info)
	}
	return infos, rows.Err()
}
