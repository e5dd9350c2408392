package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/furlhq/furl/storage"
)

// setupChecks is how many of the clusterChecks are about the tables.
const setupChecks = 5

// clusterChecks return one text for each problem of a Citus cluster.
var clusterChecks = []string{
	// A table that is not distributed by session.
	`select format('table furl.%s is not distributed by session: its statements run on the coordinator alone', c.relname)
	from pg_catalog.pg_class c
	left join pg_catalog.pg_dist_partition p on p.logicalrelid = c.oid
	where c.relnamespace = 'furl'::regnamespace and c.relname = any($1::text[])
		and (p.partmethod is distinct from 'h' or column_to_column_name(p.logicalrelid, p.partkey) is distinct from 'session')
	order by c.relname`,
	// Rows of a session on different nodes, or other tables that move with them.
	`select format('table %s is not in the colocation group of furl.sessions: rows of a session can be on different nodes', p.logicalrelid)
	from pg_catalog.pg_dist_partition p join pg_catalog.pg_dist_partition s on s.logicalrelid = 'furl.sessions'::regclass
	where p.logicalrelid::text = any(select 'furl.' || unnest($1::text[])) and p.colocationid <> s.colocationid
	order by p.logicalrelid::text`,
	`select format('table %s is in the colocation group of furl.sessions: its shards move with those of furl', p.logicalrelid)
	from pg_catalog.pg_dist_partition p join pg_catalog.pg_dist_partition s on s.logicalrelid = 'furl.sessions'::regclass
	where not p.logicalrelid::text = any(select 'furl.' || unnest($1::text[])) and p.colocationid = s.colocationid
	order by p.logicalrelid::text`,
	`select format('table furl.%s is not a reference table: other nodes than the coordinator cannot use the store', c.relname)
	from pg_catalog.pg_class c left join pg_catalog.pg_dist_partition p on p.logicalrelid = c.oid and p.partmethod = 'n' and p.repmodel = 't'
	where c.relnamespace = 'furl'::regnamespace and c.relname in ('format', 'tenant_keys') and cardinality($1::text[]) > 0 and p.logicalrelid is null
	order by c.relname`,
	// A function that does not run on the session's node.
	`select format('function furl.%s is not distributed with the tables: writing to a session needs prepared transactions', f.proname)
	from pg_catalog.pg_proc f
	left join pg_catalog.pg_dist_object o on o.classid = 'pg_catalog.pg_proc'::regclass and o.objid = f.oid
	left join pg_catalog.pg_dist_partition s on s.logicalrelid = 'furl.sessions'::regclass
	where f.pronamespace = 'furl'::regnamespace and cardinality($1::text[]) > 0
		and (o.distribution_argument_index is distinct from 1 or o.colocationid is distinct from s.colocationid)
	order by f.proname`,
	// A shard without a placement, or with more than one.
	`select format('shard %s of table %s has %s placements, expected 1', s.shardid, s.logicalrelid, count(p.placementid))
	from pg_catalog.pg_dist_shard s left join pg_catalog.pg_dist_placement p on p.shardid = s.shardid
	where s.logicalrelid::text = any(select 'furl.' || unnest($1::text[]))
	group by s.shardid, s.logicalrelid having count(p.placementid) <> 1 order by s.shardid`,
	`select format('shard %s of table %s is on node %s:%s, which is not active', s.shardid, s.logicalrelid, n.nodename, n.nodeport)
	from pg_catalog.pg_dist_shard s join pg_catalog.pg_dist_placement p using (shardid) join pg_catalog.pg_dist_node n using (groupid)
	where s.logicalrelid::text = any(select 'furl.' || unnest($1::text[])) and n.noderole = 'primary' and not n.isactive
	order by s.shardid`,
	// What can lose acknowledged appends on a node.
	`select format('node %s:%s runs with %s = off: a crash can lose or damage acknowledged appends', r.nodename, r.nodeport, r.result)
	from run_command_on_workers($$
		select string_agg(name, ', ' order by name) from pg_settings where name in ('fsync', 'full_page_writes') and setting = 'off'$$) r
	where r.success and r.result <> '' and cardinality($1::text[]) > 0 order by 1`,
	// A prepared transaction that Citus has not finished, although it looks for them each minute.
	`select format('node %s:%s has had a prepared transaction for more than two minutes: %s: run select recover_prepared_transactions() on the coordinator', n.nodename, n.nodeport, r.result)
	from run_command_on_all_nodes($$
		select string_agg(gid, ', ' order by gid) from pg_prepared_xacts
		where database = current_database() and prepared < now() - interval '2 minutes'$$) r
	join pg_catalog.pg_dist_node n using (nodeid)
	where r.success and r.result <> '' and cardinality($1::text[]) > 0 order by 1`,
}

// cluster checks how a Citus cluster is set up, and its nodes.
func (c *checker) cluster() error {
	if !c.s.citus.Load() {
		return nil
	}
	conn, err := c.s.ownConn()
	if err != nil {
		return c.s.clean(err)
	}
	reached, err := surveyNodes(c.ctx, conn)
	closeNow(conn)
	if err != nil {
		return c.s.clean(err)
	}
	for _, address := range slices.Sorted(maps.Keys(reached)) {
		if !reached[address] {
			if err := c.found(storage.Problem{Text: fmt.Sprintf("node %s is unreachable: its sessions can be neither read nor written", address)}); err != nil {
				return err
			}
		}
	}
	wrong := 0
	for i, sql := range clusterChecks {
		var texts []string
		err := c.s.do(c.ctx, func(ctx context.Context, _ bool) error {
			rows, err := c.s.pool.Query(ctx, sql, tables)
			if err != nil {
				return err
			}
			texts, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		})
		if err != nil {
			return err
		}
		if i < setupChecks {
			wrong += len(texts)
		}
		for _, text := range texts {
			if err := c.found(storage.Problem{Text: text}); err != nil {
				return err
			}
		}
	}
	if wrong > 0 {
		if err := c.found(storage.Problem{Text: "the sessions were not checked: distribute the tables first"}); err != nil {
			return err
		}
		return errEnough
	}
	return nil
}
