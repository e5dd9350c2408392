package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// sizeSQL returns the size of a table with its indexes, in all its
// partitions.
const sizeSQL = `
select pg_total_relation_size(('furl.' || $1::text)::regclass) +
	coalesce(sum(pg_total_relation_size(relid)) filter (where isleaf), 0)::bigint
from pg_partition_tree(('furl.' || $1::text)::regclass)
where level > 0`

// citusSizeSQL returns the same for the shards of a table on all nodes.
const citusSizeSQL = `select citus_total_relation_size(('furl.' || $1::text)::regclass)`

// Stats implements storage.Checker. Sizes are those of the files, including free
// space; Bodies is the compressed size of the stored bodies.
func (s *Store) Stats(ctx context.Context) (storage.Stats, error) {
	stats := storage.Stats{Format: version, Place: s.place}
	err := s.unlimited(ctx, furl.SessionKey{}, func(ctx context.Context, tx pgx.Tx) error {
		stats.Total = 0
		err := tx.QueryRow(ctx, `
			select count(*), coalesce(sum(records), 0)::bigint, coalesce(sum(messages), 0)::bigint, coalesce(sum(bytes), 0)::bigint
			from furl.sessions`).Scan(&stats.Sessions, &stats.Records, &stats.Messages, &stats.MessageBytes)
		if err != nil {
			return err
		}
		const bodies = `select (select coalesce(sum(octet_length(body)), 0) from furl.records)::bigint +
			(select coalesce(sum(octet_length(data)), 0) from furl.contents)::bigint`
		if err := tx.QueryRow(ctx, bodies).Scan(&stats.Bodies); err != nil {
			return err
		}
		sizes, sizeSQL := map[string]int64{}, sizeSQL
		if s.citus.Load() {
			sizeSQL = citusSizeSQL
		}
		for _, table := range slices.Concat(everywhere, tables) {
			var size int64
			if err := tx.QueryRow(ctx, sizeSQL, table).Scan(&size); err != nil {
				return err
			}
			sizes[table] = size
			stats.Total += size
		}
		stats.Index, stats.Vectors = sizes["pages"], sizes["vectors"]
		return nil
	})
	if err != nil {
		return storage.Stats{}, fmt.Errorf("read statistics of store %s: %w", s.place, err)
	}
	return stats, nil
}
