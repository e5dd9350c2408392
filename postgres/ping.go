package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// Ping implements storage.Pinger. On a plain server it reads a row of a table of the
// store. On Citus, the server that furl is connected to asks each node with shards for
// one: a statement for each node, where reading all sessions takes one for each shard.
func (s *Store) Ping(ctx context.Context) error {
	err := s.do(ctx, func(ctx context.Context, _ bool) error {
		var version int
		if err := s.pool.QueryRow(ctx, `select version from furl.format`).Scan(&version); err != nil || !s.citus.Load() {
			return err
		}
		reached, err := surveyNodes(ctx, s.pool)
		if err != nil {
			return err
		}
		for _, address := range slices.Sorted(maps.Keys(reached)) {
			if !reached[address] {
				return fmt.Errorf("%w: %s", errNode, address)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return nil
}
