package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// quickPing is how long a ping waits for all nodes before it asks each with a limit of
// its own.
const quickPing = 300 * time.Millisecond

// Ping implements storage.Pinger. On a plain server it reads a row of a table of the
// store. On Citus, the server that furl is connected to asks each node with shards for
// a response: a statement for each node, where reading all sessions takes one for each
// shard. One that responds is enough, since its sessions can be used.
func (s *Store) Ping(ctx context.Context) error {
	err := s.do(ctx, func(ctx context.Context, _ bool) error {
		var version int
		if err := s.pool.QueryRow(ctx, `select version from furl.format`).Scan(&version); err != nil || !s.citus.Load() {
			return err
		}
		return s.pingNodes(ctx)
	})
	if err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return nil
}

// pingNodes returns an error if no node with shards responds.
func (s *Store) pingNodes(ctx context.Context) error {
	quick, cancel := context.WithTimeout(ctx, quickPing)
	defer cancel()
	reached, err := surveyNodes(quick, s.pool)
	if err != nil && quick.Err() != nil && ctx.Err() == nil { // a node hangs
		var conn *pgx.Conn
		if conn, err = s.ownConn(); err == nil {
			defer closeNow(conn)
			reached, err = surveyNodes(ctx, conn)
		}
	}
	if err != nil {
		return err
	}
	var lost []error
	for _, address := range slices.Sorted(maps.Keys(reached)) {
		if reached[address] {
			return nil
		}
		lost = append(lost, fmt.Errorf("%w: %s", errNode, address))
	}
	return errors.Join(lost...)
}
