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
	"github.com/furlhq/furl/record"
)

// The migrations in order: 0001.sql creates version 1, and so on. Released
// files must not be changed.
//
//go:embed migrations
var migrations embed.FS

// version is the version of the tables that this package uses.
const version = 5

// migrationLock is the advisory lock that a process holds while it creates or
// migrates tables: the bytes of "furl".
const migrationLock = 0x6675726c

// maxPartitions is far more than PostgreSQL plans efficiently.
const maxPartitions = 1024

// migrate migrates the tables to this version. If they are current, it only
// reads, so that a role without the right to create tables can use an
// existing store.
func (s *Store) migrate(ctx context.Context) error {
	if s.opts.Partitions < 0 || s.opts.Partitions > maxPartitions {
		return fmt.Errorf("invalid number of partitions %d: the limit is %d", s.opts.Partitions, maxPartitions)
	}
	deadline := time.Now().Add(s.opts.Retry)
	for {
		err := s.migrateOnce(ctx)
		// A starting server is waited for. A server that does not exist is
		// probably a wrong address.
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
	citus, err := hasCitus(ctx, s.pool)
	if err != nil {
		return err
	}
	if citus && !s.citus.Swap(true) {
		s.pool.Reset() // connections are opened in another way
	}
	have, err := s.formatOf(ctx, s.pool)
	if err != nil {
		return err
	}
	divided := !citus
	if citus && have > 0 {
		if divided, err = distributed(ctx, s.pool); err != nil {
			return err
		}
	}
	if have == version && divided {
		return nil
	}
	if citus {
		if err := checkCoordinator(ctx, s.pool); err != nil {
			return err
		}
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// Until the lock is free, another process creates the tables, which
		// may take longer than a statement's timeout.
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
				return fmt.Errorf("migrate to version %d: %w", v, err)
			}
		}
		if !citus {
			return nil
		}
		if err := s.distribute(ctx, tx); err != nil {
			return fmt.Errorf("distribute the tables on Citus: %w", err)
		}
		return nil
	})
}

// querier is a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// formatOf returns the version of the existing tables, 0 if none exist.
func (s *Store) formatOf(ctx context.Context, q querier) (int, error) {
	// Two statements are needed: a statement about a missing table would
	// abort the transaction. The first reads the catalogue's rows, because
	// to_regclass may not see tables that another process has created since
	// the transaction started.
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
		return 0, fmt.Errorf("version %d of the tables is not supported (this furl knows up to %d): use a newer furl: %w", have, version, record.ErrNewerFormat)
	}
	return have, nil
}

// migrateTo migrates the tables from version v-1 to v.
func (s *Store) migrateTo(ctx context.Context, tx pgx.Tx, v int) error {
	if v == 1 {
		const format = `create schema if not exists furl;
			create table furl.format (version integer not null, partitions integer not null);`
		if _, err := tx.Exec(ctx, format); err != nil {
			return err
		}
		partitions := s.opts.Partitions
		if s.citus.Load() {
			partitions = 0 // shards divide the tables
		}
		if _, err := tx.Exec(ctx, `insert into furl.format values (0, $1)`, partitions); err != nil {
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

// bySession marks, in a migration, the end of a table that can be
// partitioned.
const bySession = "/* by session */"

// divided returns the statements of a migration with the given number of
// partitions. Rows of sessions change with every append, so their pages
// reserve room for updates. That can only be set on tables that contain rows,
// which a partitioned table does not.
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
