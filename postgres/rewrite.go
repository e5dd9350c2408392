package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

var (
	_ storage.Rewriter = (*Store)(nil)
	_ storage.KeyStore = (*Store)(nil)
)

// copyBodiesSQL gives records their own copies of bodies that they share with
// records that are replaced.
const copyBodiesSQL = `
update furl.records r set same = null, body = o.body
from furl.records o
where r.tenant = $1 and r.session = $2 and r.same = any($3) and r.seq <> all($3)
	and o.tenant = $1 and o.session = $2 and o.seq = r.same`

// replaceSQL replaces records, given as arrays of one length.
const replaceSQL = `
update furl.records r set
	same = null, print = nullif(b.print, 0), size = b.size, sum = b.sum, chain = b.chain, head = b.head, body = b.body
from unnest($3::bigint[], $4::bigint[], $5::integer[], $6::integer[], $7::bytea[], $8::bytea[], $9::bytea[])
	as b (seq, print, size, sum, chain, head, body)
where r.tenant = $1 and r.session = $2 and r.seq = b.seq and (r.chain is null) = (b.chain is null)`

// putContentsSQL stores the contents that a session does not have yet.
const putContentsSQL = `
insert into furl.contents (tenant, session, digest, size, data)
select $1, $2, c.digest, c.size, c.data
from unnest($3::bytea[], $4::integer[], $5::bytea[]) as c (digest, size, data)
on conflict do nothing`

// finishSQL sets the session's row after a rewrite.
const finishSQL = `
update furl.sessions set
	indexed = 0, meta = coalesce($3::bytea, meta), hint = case when $3::bytea is null then hint else $4::bigint end,
	bytes = (select coalesce(sum(size) filter (where chain is not null), 0) from furl.records where tenant = $1 and session = $2)
where tenant = $1 and session = $2`

// Rewrite implements storage.Rewriter. The old rows are vacuumed by Scrub.
func (s *Store) Rewrite(ctx context.Context, key furl.SessionKey, w storage.Rewrite) error {
	if err := s.rewrite(ctx, key, &w); err != nil {
		return fmt.Errorf("rewrite session %.140q: %w", key.Session, err)
	}
	s.told(key)
	return nil
}

func (s *Store) rewrite(ctx context.Context, key furl.SessionKey, w *storage.Rewrite) error {
	if err := validKey(key); err != nil {
		return err
	}
	meta, hint, err := encodeMeta(w.Meta)
	if err != nil {
		return err
	}
	r := &rows{}
	if len(w.Put) > 0 {
		if r, err = encodeRows(w.Put, s.maxBatch()); err != nil {
			return err
		}
	}
	contents, err := encodeContents(w.Batch(), r.total, s.maxBatch())
	if err != nil {
		return err
	}
	seqs := make([]int64, len(w.Put))
	for i := range w.Put {
		seqs[i] = int64(w.Put[i].Seq)
		if r.same[i] != 0 { // each gets its own copy
			r.same[i] = 0
			r.prints[i] = 0
		}
	}
	drop := make([][]byte, len(w.DropContents))
	for i := range w.DropContents {
		drop[i] = w.DropContents[i][:]
	}
	tenant, session := []byte(key.Tenant), string(key.Session)
	if s.citus.Load() {
		return s.rewriteOnNode(ctx, key, w, func(stored []byte) []any {
			return []any{tenant, session, int64(w.Records), stored, seqs, r.prints, r.sizes, r.sums, r.chains, r.heads, r.bodies,
				drop, contents.digests, contents.sizes, contents.data, meta, hint}
		})
	}
	return s.unlimited(ctx, key, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := canRewrite(ctx, tx, key, w, " for no key update"); err != nil {
			return err
		}
		if len(seqs) > 0 {
			if _, err := tx.Exec(ctx, copyBodiesSQL, tenant, session, seqs); err != nil {
				return err
			}
			tag, err := tx.Exec(ctx, replaceSQL, tenant, session, seqs, r.prints, r.sizes, r.sums, r.chains, r.heads, r.bodies)
			if err != nil {
				return err
			}
			if tag.RowsAffected() != int64(len(seqs)) {
				return fmt.Errorf("%d of %d records are of the same kind", tag.RowsAffected(), len(seqs))
			}
		}
		if _, err := tx.Exec(ctx, `delete from furl.contents where tenant = $1 and session = $2 and digest = any($3)`, tenant, session, drop); err != nil {
			return err
		}
		if len(contents.digests) > 0 {
			if _, err := tx.Exec(ctx, putContentsSQL, tenant, session, contents.digests, contents.sizes, contents.data); err != nil {
				return err
			}
		}
		for _, table := range []string{"pages", "vectors"} {
			if _, err := tx.Exec(ctx, `delete from furl.`+table+` where tenant = $1 and session = $2`, tenant, session); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, finishSQL, tenant, session, meta, hint)
		return err
	})
}

// canRewrite returns the metadata of a session, or an error if it is not as the
// rewrite expects.
func canRewrite(ctx context.Context, q querier, key furl.SessionKey, w *storage.Rewrite, lock string) (meta []byte, err error) {
	var has int64
	err = q.QueryRow(ctx, `select records, meta from furl.sessions where tenant = $1 and session = $2`+lock, []byte(key.Tenant), string(key.Session)).Scan(&has, &meta)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, storage.ErrNoSession
	case err != nil:
		return nil, err
	case furl.Seq(has) != w.Records:
		return nil, fmt.Errorf("the session has %d records, not %d: %w", has, w.Records, furl.ErrConflict)
	case !w.Batch().MetaMatches(meta):
		return nil, errOtherMeta
	}
	return meta, nil
}

// rewriteSQL rewrites a session on Citus. See migrations/0005.sql.
const rewriteSQL = `select furl.rewrite($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`

// rewriteOnNode rewrites a session by one call, which runs whole on the session's
// node. If the response of a call is lost, the next one writes the same again.
func (s *Store) rewriteOnNode(ctx context.Context, key furl.SessionKey, w *storage.Rewrite, args func(stored []byte) []any) error {
	return s.doFor(ctx, key, func(limited context.Context, _ bool) error {
		return s.unlimitedConn(ctx, limited, func(ctx context.Context, conn *pgxpool.Conn) error {
			for {
				stored, err := canRewrite(ctx, conn, key, w, "")
				if err != nil {
					return err
				}
				var n int64
				if err := conn.QueryRow(ctx, rewriteSQL, args(stored)...).Scan(&n); err != nil || n >= 0 {
					return err
				}
			}
		})
	})
}

// ContentIDs implements storage.Rewriter.
func (s *Store) ContentIDs(ctx context.Context, key furl.SessionKey) (ids []furl.Digest, err error) {
	err = s.do(ctx, func(ctx context.Context, _ bool) error {
		var exists bool
		tenant, session := []byte(key.Tenant), string(key.Session)
		if err := s.pool.QueryRow(ctx, `select exists (select from furl.sessions where tenant = $1 and session = $2)`, tenant, session).Scan(&exists); err != nil {
			return err
		}
		if !exists {
			return storage.ErrNoSession
		}
		found, err := s.pool.Query(ctx, `select digest from furl.contents where tenant = $1 and session = $2 order by digest`, tenant, session)
		if err != nil {
			return err
		}
		ids, err = pgx.CollectRows(found, func(r pgx.CollectableRow) (id furl.Digest, err error) {
			var digest []byte
			err = r.Scan(&digest)
			copy(id[:], digest)
			return id, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list contents of session %.140q: %w", key.Session, err)
	}
	return ids, nil
}

// Scrub implements storage.Rewriter: it vacuums the tables, so that old rows are
// no longer in them. As in every PostgreSQL database, bytes can remain in free
// space of pages, in the write-ahead log and in backups: see Delete.
func (s *Store) Scrub(ctx context.Context) error {
	s.vacuum.mu.Lock()
	s.vacuum.last = s.vacuum.last.Add(-2 * vacuumPause)
	s.vacuum.mu.Unlock()
	if err := s.tidy(ctx); err != nil {
		return fmt.Errorf("vacuum: %w", s.clean(err))
	}
	return nil
}
