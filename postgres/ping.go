package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	quickPing   = 300 * time.Millisecond // how long a ping waits for all nodes, checked one after the other
	nodesAtOnce = 8                      // how many nodes a ping checks at once after that
)

// Ping implements storage.Pinger. On a plain server it reads a row of a table of the
// store. On Citus, the server that furl is connected to asks each node with shards for
// a response: a statement for each node, where reading all sessions takes one for each
// shard. One that responds is enough, since its sessions can be used.
func (s *Store) Ping(ctx context.Context) error {
	var unreachable error
	err := s.doHere(ctx, func(ctx context.Context, _ bool) (err error) {
		var version int
		if err := s.pool.QueryRow(ctx, `select version from furl.format`).Scan(&version); err != nil || !s.citus.Load() {
			return err
		}
		unreachable, err = s.pingNodes(ctx)
		return err
	})
	if err = cmp.Or(err, unreachable); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return nil
}

// pingNodes returns the nodes with shards as an error if none of them responds, and an
// error if they could not be checked.
func (s *Store) pingNodes(ctx context.Context) (unreachable, err error) {
	quick, cancel := context.WithTimeout(ctx, quickPing)
	defer cancel()
	reached, err := surveyNodes(quick, s.pool)
	if err != nil && quick.Err() != nil && ctx.Err() == nil { // a node hangs
		reached, err = s.firstNode(ctx)
	}
	if err != nil {
		return nil, err
	}
	var lost []error
	for _, address := range slices.Sorted(maps.Keys(reached)) {
		if reached[address] {
			return nil, nil
		}
		lost = append(lost, fmt.Errorf("%w: %s", errNode, address))
	}
	return errors.Join(lost...), nil
}

// firstNode checks all nodes with shards at once, each on a connection of its own, until one responds. A
// survey checks one after the other, and waits for each that hangs.
func (s *Store) firstNode(ctx context.Context) (map[string]bool, error) {
	addresses, err := s.shardNodes(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type check struct {
		address string
		ok      bool
		err     error
	}
	checks := make(chan check, len(addresses))
	turn := make(chan struct{}, nodesAtOnce)
	for _, a := range addresses {
		go func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			ok, err := s.checkNode(ctx, a)
			checks <- check{a.String(), ok, err}
		}()
	}
	reached := map[string]bool{}
	var failed error
	for range addresses {
		c := <-checks
		if c.ok {
			return map[string]bool{c.address: true}, nil
		}
		reached[c.address] = false
		failed = errors.Join(failed, c.err)
	}
	return reached, failed
}

// shardNodes returns the nodes with shards.
func (s *Store) shardNodes(ctx context.Context) ([]nodeAddress, error) {
	rows, err := s.pool.Query(ctx, `select nodename, nodeport from pg_dist_node where isactive and shouldhaveshards and noderole = 'primary'`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[nodeAddress])
}

// checkNode reports whether the server can reach a node.
func (s *Store) checkNode(ctx context.Context, a nodeAddress) (ok bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	conn, err := s.ownConn()
	if err != nil {
		return false, err
	}
	defer closeNow(conn)
	err = conn.QueryRow(ctx, `
		select groupid = (select groupid from pg_dist_local_group) or citus_check_connection_to_node(nodename, nodeport)
		from pg_dist_node where nodename = $1 and nodeport = $2`, a.Host, a.Port).Scan(&ok)
	return ok, err
}

// nodeAddress is the address of a node, as the server has it.
type nodeAddress struct {
	Host string
	Port int
}

func (a nodeAddress) String() string { return net.JoinHostPort(a.Host, strconv.Itoa(a.Port)) }
