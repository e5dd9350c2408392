package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// On Citus all tables of sessions are distributed by session, in a colocation
// group of their own, and the others are on every node. The functions that write
// to a session are distributed with the tables, so that a call outside of a
// transaction runs whole on the session's node.

// defaultShards is how many shards each table has, if Options do not say. A
// query across sessions asks each of them.
const defaultShards = 36

// everywhere lists the tables that each node has a copy of. The keys of tenants are
// read by all sessions of a tenant, which are on all nodes, and rarely written.
var everywhere = []string{"format", "tenant_keys"}

// functions are the functions of migrations/0004.sql and 0005.sql, whose argument _session
// decides where they run.
var functions = []string{
	"append(bytea, text, bigint, bigint[], bigint[], integer[], integer[], bytea[], bytea[], bytea[], " +
		"bigint, bigint, bigint, bytea, bigint, bytea, bigint, bytea[], integer[], bytea[], boolean)",
	"write_index(bytea, text, bigint, bigint, boolean, bigint[], bigint[], bigint[], bytea[], boolean)",
	"put_vectors(bytea, text, bytea, bytea[], bytea[], boolean)",
	"delete_session(bytea, text)",
	"rewrite(bytea, text, bigint, bytea, bigint[], bigint[], integer[], integer[], bytea[], bytea[], bytea[], " +
		"bytea[], bytea[], integer[], bytea[], bytea, bigint)",
}

// hasCitus reports whether the database has the extension.
func hasCitus(ctx context.Context, q querier) (has bool, err error) {
	err = q.QueryRow(ctx, `select exists (select from pg_catalog.pg_extension where extname = 'citus')`).Scan(&has)
	return has, err
}

// distributed reports whether the tables are distributed.
func distributed(ctx context.Context, q querier) (bool, error) {
	names, err := distributedNames(ctx, q)
	return len(names) > 0, err
}

// distributedNames returns the names of the distributed tables and functions.
func distributedNames(ctx context.Context, q querier) (names []string, err error) {
	err = q.QueryRow(ctx, `
		select coalesce(array_agg(name), '{}') from (
			select c.relname::text as name from pg_catalog.pg_dist_partition p join pg_catalog.pg_class c on c.oid = p.logicalrelid
			where c.relnamespace = (select oid from pg_catalog.pg_namespace where nspname = 'furl')
			union all
			select f.proname::text from pg_catalog.pg_dist_object o join pg_catalog.pg_proc f on f.oid = o.objid
			where o.classid = 'pg_catalog.pg_proc'::regclass and o.distribution_argument_index is not null
				and f.pronamespace = (select oid from pg_catalog.pg_namespace where nspname = 'furl')
		) as found`).Scan(&names)
	return names, err
}

// checkCoordinator returns an error if the server is another node, which cannot
// create tables.
func checkCoordinator(ctx context.Context, q querier) error {
	var coordinator bool
	err := q.QueryRow(ctx, `select groupid = 0 from pg_catalog.pg_dist_local_group`).Scan(&coordinator)
	if err == nil && !coordinator {
		err = errors.New("this node cannot create or convert tables: open the store at the coordinator of the cluster first")
	}
	return err
}

// distribute distributes the tables with their rows, and the functions, unless they
// are already.
func (s *Store) distribute(ctx context.Context, tx pgx.Tx) error {
	done, err := distributedNames(ctx, tx)
	if err != nil {
		return err
	}
	shards := s.opts.Partitions
	if shards == 0 {
		shards = defaultShards
	}
	statements := []string{
		// Copies of shards by statements would need a prepared transaction for
		// each write: nodes are replicated by PostgreSQL instead.
		`set local citus.shard_replication_factor = 1`,
		`set local citus.multi_shard_modify_mode = 'sequential'`,
		`set local client_min_messages = error`,
	}
	var converted []string
	for _, table := range everywhere {
		if !slices.Contains(done, table) {
			statements = append(statements, fmt.Sprintf(`select create_reference_table('furl.%s')`, table))
			converted = append(converted, table)
		}
	}
	for i, table := range tables {
		group := "colocate_with => 'furl.sessions'"
		if i == 0 {
			group = fmt.Sprintf("colocate_with => 'none', shard_count => %d", shards)
		}
		if !slices.Contains(done, table) {
			statements = append(statements, fmt.Sprintf(`select create_distributed_table('furl.%s', 'session', %s)`, table, group))
			converted = append(converted, table)
		}
	}
	for _, function := range functions {
		if name, _, _ := strings.Cut(function, "("); !slices.Contains(done, name) {
			statements = append(statements, fmt.Sprintf(`
				select create_distributed_function('furl.%s', '_session', colocate_with := 'furl.sessions')`, function))
		}
	}
	// What was in the tables before is in the shards now.
	for _, table := range converted {
		statements = append(statements, fmt.Sprintf(`select truncate_local_data_after_distributing_table('furl.%s')`, table))
	}
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("%s: %w", strings.TrimSpace(statement), err)
		}
	}
	return nil
}
