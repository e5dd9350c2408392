package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
)

// Check implements storage.Checker. It reads everything, session by session, and
// can run concurrently with other work: what it reports of a session was true
// at one moment. If the store cannot be read to the end, the sequence ends
// with an error.
func (s *Store) Check(ctx context.Context, mend bool) iter.Seq2[storage.Problem, error] {
	return func(yield func(storage.Problem, error) bool) {
		c := &checker{s: s, ctx: ctx, mend: mend, yield: yield}
		for _, step := range []func() error{c.server, c.cluster, c.strays, c.sessions} {
			err := step()
			if errors.Is(err, errEnough) {
				return
			}
			if err != nil {
				yield(storage.Problem{}, fmt.Errorf("check the store at %s: %w", s.place, err))
				return
			}
		}
	}
}

// errEnough reports that the caller stopped iterating.
var errEnough = errors.New("enough")

type checker struct {
	s     *Store
	ctx   context.Context
	mend  bool
	yield func(storage.Problem, error) bool
}

// found reports a problem.
func (c *checker) found(p storage.Problem) error {
	if !c.yield(p, nil) {
		return errEnough
	}
	return nil
}

// derived reports a problem of data that can be rebuilt, and rebuilds it if
// asked to.
func (c *checker) derived(key furl.SessionKey, text string, rebuild func(context.Context, pgx.Tx) error) error {
	p := storage.Problem{Session: key, Text: text, Derived: true}
	if c.mend {
		if err := c.s.unlimited(c.ctx, key, rebuild); err != nil {
			return err
		}
		p.Mended = true
	}
	return c.found(p)
}

// server checks for settings with which acknowledged appends can be lost.
func (c *checker) server() error {
	for _, setting := range []string{"fsync", "full_page_writes"} {
		var value string
		err := c.s.do(c.ctx, func(ctx context.Context, _ bool) error {
			return c.s.pool.QueryRow(ctx, `select current_setting($1)`, setting).Scan(&value)
		})
		if err != nil {
			return err
		}
		if value == "off" {
			if err := c.found(storage.Problem{Text: "the server runs with " + setting + " = off: a crash can lose or damage acknowledged appends"}); err != nil {
				return err
			}
		}
	}
	return nil
}

// strays looks for rows of sessions that do not exist.
func (c *checker) strays() error {
	for _, table := range tables[1:] {
		keys, err := c.keys(`
			select distinct t.tenant, t.session from furl.` + table + ` t
			where not exists (select from furl.sessions s where s.tenant = t.tenant and s.session = t.session)`)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if table == "records" {
				err = c.found(storage.Problem{Session: key, Text: "records of a session that is missing from table sessions"})
			} else {
				err = c.derived(key, table+" of a session that does not exist", func(ctx context.Context, tx pgx.Tx) error {
					_, err := tx.Exec(ctx, `
						delete from furl.`+table+` where tenant = $1 and session = $2
						and not exists (select from furl.sessions where tenant = $1 and session = $2)`, []byte(key.Tenant), string(key.Session))
					return err
				})
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// keys runs a statement that returns tenants and sessions.
func (c *checker) keys(sql string, args ...any) (keys []furl.SessionKey, err error) {
	err = c.s.unlimited(c.ctx, furl.SessionKey{}, func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		keys, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (key furl.SessionKey, err error) {
			var tenant []byte
			err = r.Scan(&tenant, &key.Session)
			key.Tenant = furl.Tenant(tenant)
			return key, err
		})
		return err
	})
	return keys, err
}

// sessions checks all sessions, one after the other.
func (c *checker) sessions() error {
	var at furl.SessionKey
	for {
		keys, err := c.keys(`
			select tenant, session from furl.sessions
			where (tenant, session) > ($1, $2) order by tenant, session limit 1000`, []byte(at.Tenant), string(at.Session))
		if err != nil || len(keys) == 0 {
			return err
		}
		for _, key := range keys {
			if err := c.session(key); err != nil {
				return err
			}
		}
		at = keys[len(keys)-1]
	}
}

// countsSQL compares a session's row with its records in one statement.
const countsSQL = `
select s.records, r.n, r.first, r.last, s.indexed,
	s.messages = r.messages and s.bytes = r.bytes
from furl.sessions s
cross join lateral (
	select count(*) as n, coalesce(min(seq), 0) as first, coalesce(max(seq), 0) as last,
		count(chain) as messages, coalesce(sum(size) filter (where chain is not null), 0) as bytes
	from furl.records r where r.tenant = s.tenant and r.session = s.session
) r
where s.tenant = $1 and s.session = $2`

// session checks one session.
func (c *checker) session(key furl.SessionKey) error {
	var (
		records, n, first, last, indexed int64
		counted                          bool
	)
	tenant, session := []byte(key.Tenant), string(key.Session)
	err := c.s.unlimited(c.ctx, key, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, countsSQL, tenant, session).Scan(&records, &n, &first, &last, &indexed, &counted)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil // deleted meanwhile
	}
	if err != nil {
		return err
	}
	if n != records || last != records || n > 0 && first != 1 {
		text := fmt.Sprintf("expected %d records, found %d, from %d to %d", records, n, first, last)
		if err := c.found(storage.Problem{Session: key, Text: text}); err != nil {
			return err
		}
	} else if !counted { // counts can only be checked if all records exist
		err := c.derived(key, "the counts of messages and bytes are wrong", func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `
				with s as (select from furl.sessions where tenant = $1 and session = $2 for no key update)
				update furl.sessions set (messages, bytes) = (
					select count(chain), coalesce(sum(size) filter (where chain is not null), 0)
					from s, furl.records where tenant = $1 and session = $2)
				where tenant = $1 and session = $2`, tenant, session)
			return err
		})
		if err != nil {
			return err
		}
	}
	if indexed < 0 || indexed > records {
		err := c.derived(key, fmt.Sprintf("invalid search index cursor %d: the session has %d records", indexed, records), func(ctx context.Context, tx pgx.Tx) error {
			return c.s.writeIndex(ctx, tx, key, storage.IndexWrite{DropAll: true})
		})
		if err != nil {
			return err
		}
	}
	if err := c.records(key); err != nil {
		return err
	}
	return c.contents(key)
}

// records reads all records of a session, including damaged ones.
func (c *checker) records(key furl.SessionKey) error {
	type finding struct {
		seq   furl.Seq
		text  string
		mend  bool
		chain []byte // the correct value of the column
	}
	for at := int64(0); ; {
		var findings []finding
		n, begun := 0, at
		err := c.s.doFor(c.ctx, key, func(ctx context.Context, _ bool) error {
			findings, n, at = nil, 0, begun
			found, err := c.s.pool.Query(ctx, `
				select `+columns+`, r.chain from (
					select * from furl.records where tenant = $1 and session = $2 and seq > $3 order by seq limit 64
				) r order by r.seq`, []byte(key.Tenant), string(key.Session), at)
			if err != nil {
				return err
			}
			defer found.Close()
			for ; found.Next(); n++ {
				var (
					r     row
					chain []byte
				)
				if err := found.Scan(&r.seq, &r.head, &r.size, &r.sum, &r.body, &chain); err != nil {
					return err
				}
				at = r.seq
				rec, err := r.decode()
				if err != nil {
					findings = append(findings, finding{seq: furl.Seq(r.seq), text: err.Error()})
					continue
				}
				var want []byte
				if _, ok := record.MessageSize(&rec); ok {
					want = rec.Chain[:]
				}
				if (want == nil) != (chain == nil) || !bytes.Equal(want, chain) {
					findings = append(findings, finding{furl.Seq(r.seq), "the chain column is wrong", true, want})
				}
			}
			return found.Err()
		})
		if err != nil {
			return err
		}
		for _, f := range findings {
			p := storage.Problem{Session: key, Seq: f.seq, Text: f.text, Derived: f.mend}
			if p.Derived && c.mend {
				err := c.s.unlimited(c.ctx, key, func(ctx context.Context, tx pgx.Tx) error {
					_, err := tx.Exec(ctx, `update furl.records set chain = $4 where tenant = $1 and session = $2 and seq = $3`,
						[]byte(key.Tenant), string(key.Session), int64(f.seq), f.chain)
					return err
				})
				if err != nil {
					return err
				}
				p.Mended = true
			}
			if err := c.found(p); err != nil {
				return err
			}
		}
		if n < 64 {
			return nil
		}
	}
}
