package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/furlhq/furl"
)

// The tables, in the order in which they came: 0001.sql makes version 1, and
// so on. A file that was released is never changed.
//
//go:embed migrations
var migrations embed.FS

// version is that of the tables this package works with.
const version = 2

// migrationLock is the advisory lock that one process at a time holds while it
// makes tables; the bytes of "furl".
const migrationLock = 0x6675726c

// maxPartitions is far above what PostgreSQL plans well with.
const maxPartitions = 1024

// migrate brings the tables up to this version. When they are, it only looks;
// a role that may not make tables can use a store that another has made.
func (s *Store) migrate(ctx context.Context) error {
	if s.opts.Partitions < 0 || s.opts.Partitions > maxPartitions {
		return fmt.Errorf("a store has at most %d partitions, not %d", maxPartitions, s.opts.Partitions)
	}
	deadline := time.Now().Add(s.opts.Retry)
	for {
		err := s.migrateOnce(ctx)
		// A server that is about to be there is waited for; one that is
		// not there is probably at another address.
		if c := code(err); c != codeStarting && c != codeDeadlock || time.Now().After(deadline) {
			return s.clean(err)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Store) migrateOnce(ctx context.Context) error {
	have, err := s.formatOf(ctx, s.pool)
	if err != nil || have == version {
		return err
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// Until the lock is there, another process makes the tables, which
		// may take longer than a statement should.
		if _, err := tx.Exec(ctx, `set local statement_timeout = 0`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, migrationLock); err != nil {
			return err
		}
		have, err := s.formatOf(ctx, tx)
		if err != nil {
			return err
		}
		for v := have + 1; v <= version; v++ {
			if err := s.migrateTo(ctx, tx, v); err != nil {
				return fmt.Errorf("make the tables of version %d: %w", v, err)
			}
		}
		return nil
	})
}

// querier is a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// formatOf gives the version of the tables that are there, 0 for none.
func (s *Store) formatOf(ctx context.Context, q querier) (int, error) {
	// Asked in two steps: a statement about a table that is not there would
	// end a transaction. And asked of the catalogue's rows: to_regclass may
	// not know yet what another process has made since the transaction began.
	const present = `select exists (
		select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		where n.nspname = 'furl' and c.relname = 'format')`
	var there bool
	if err := q.QueryRow(ctx, present).Scan(&there); err != nil || !there {
		return 0, err
	}
	var have int
	if err := q.QueryRow(ctx, `select version from furl.format`).Scan(&have); err != nil {
		if errors.Is(err, pgx.ErrNoRows) {
			return 0, fmt.Errorf("furl.format is empty: %w", furl.ErrDamaged)
		}
		return 0, err
	}
	if have > version {
		return 0, fmt.Errorf("the tables are of version %d, this furl knows up to %d: %w", have, version, furl.ErrNewerFormat)
	}
	return have, nil
}

// migrateTo makes the tables of version v out of those of the one before.
func (s *Store) migrateTo(ctx context.Context, tx pgx.Tx, v int) error {
	if v == 1 {
		const format = `create schema if not exists furl;
			create table furl.format (version integer not null, partitions integer not null);`
		if _, err := tx.Exec(ctx, format); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `insert into furl.format values (0, $1)`, s.opts.Partitions); err != nil {
			return err
		}
	}
	var partitions int
	if err := tx.QueryRow(ctx, `select partitions from furl.format`).Scan(&partitions); err != nil {
		return err
	}
	text, err := migrations.ReadFile(fmt.Sprintf("migrations/%04d.sql", v))
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, divided(string(text), partitions)); err != nil {
		return err
	}
	if v == 2 {
		if s.renamed, err = renameReserved(ctx, tx); err != nil {
			return fmt.Errorf("rename sessions with reserved ids: %w", err)
		}
	}
	_, err = tx.Exec(ctx, `update furl.format set version = $1`, v)
	return err
}

// bySession marks, in a migration, the end of a table that can be divided.
const bySession = "/* by session */"

// divided gives the statements of a migration for so many partitions. Rows of
// sessions change with every append: their pages keep room for it, which only
// tables that hold rows can be told.
func divided(text string, partitions int) string {
	var out strings.Builder
	for statement := range strings.SplitAfterSeq(text, ";\n") {
		before, _, made := strings.Cut(statement, bySession)
		if !made {
			out.WriteString(statement)
			continue
		}
		_, rest, _ := strings.Cut(before, "create table ")
		name, _, _ := strings.Cut(rest, " ")
		room := ""
		if name == "furl.sessions" {
			room = " with (fillfactor = 50)"
		}
		if partitions == 0 {
			out.WriteString(before + room + ";\n")
			continue
		}
		out.WriteString(before + "partition by hash (tenant, session);\n")
		for i := range partitions {
			fmt.Fprintf(&out, "create table %s_%d partition of %s for values with (modulus %d, remainder %d)%s;\n", name, i, name, partitions, i, room)
		}
	}
	return out.String()
}
