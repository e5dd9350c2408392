package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/furlhq/furl"
)

// On Citus the server that furl is connected to runs each statement on other
// nodes, and one of them may be lost alone. Only work that needs that node
// waits for it. A surveyor asks the server which nodes it can reach, on a
// connection of its own, after an error or when a statement takes long. While
// nodes are lost it asks again and again, so that work continues as soon as its
// node is back.

const (
	slow        = 1500 * time.Millisecond // a statement that takes longer causes a survey
	surveyPause = 100 * time.Millisecond  // between two surveys while nodes are lost
	surveyRest  = 10 * time.Second        // the surveyor ends after this time without a need
	nodeAnswer  = time.Second             // a node that takes longer to respond is lost
)

// nodes are the lost nodes of a cluster.
type nodes struct {
	some atomic.Bool // there are lost nodes

	mu      sync.Mutex
	lost    map[string]*lostNode // by address
	shards  []shard              // of the newest survey, in the order of their hashes
	running bool
	next    chan struct{} // closed at the end of the next survey that begins
	ask     chan struct{}
}

// lostNode is a node that the server cannot reach.
type lostNode struct {
	address string
	away    bool          // it has not come back within Options.Retry
	back    chan struct{} // closed when it is back
}

func (n *nodes) init() {
	n.lost = map[string]*lostNode{}
	n.next, n.ask = make(chan struct{}), make(chan struct{}, 1)
}

// errNode is wrapped by errors of work whose node is lost.
var errNode = errors.New("node unreachable")

// here stands for work that needs no other node. It is not a valid id of a session.
const here furl.SessionID = "\x00here"

// lostFor returns a lost node that work on a session needs, or nil. Work
// without a session needs all nodes.
func (s *Store) lostFor(key furl.SessionKey) *lostNode {
	n := &s.nodes
	if key.Session == here || !n.some.Load() {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if key.Session != "" {
		return n.lost[homeOf(n.shards, key.Session)]
	}
	for _, address := range slices.Sorted(maps.Keys(n.lost)) {
		return n.lost[address]
	}
	return nil
}

// awaitNode waits until the node of a session is back, at most until the
// deadline. If the node did not come back in time before, it does not wait.
func (s *Store) awaitNode(ctx context.Context, key furl.SessionKey, deadline time.Time) error {
	for {
		lost := s.lostFor(key)
		if lost == nil {
			return nil
		}
		s.nodes.mu.Lock()
		away := lost.away
		s.nodes.mu.Unlock()
		if away || s.opts.Retry < 0 {
			return fmt.Errorf("%w: %s", errNode, lost.address)
		}
		late := time.NewTimer(time.Until(deadline))
		select {
		case <-lost.back:
			late.Stop()
		case <-late.C:
			s.nodes.mu.Lock()
			first := !lost.away
			lost.away = true
			s.nodes.mu.Unlock()
			if first {
				s.log.Error("postgres: node still unreachable; operations on its sessions are not retried until it responds", "place", s.place, "node", lost.address)
			}
			return fmt.Errorf("%w after %v: %s", errNode, s.opts.Retry, lost.address)
		case <-ctx.Done():
			late.Stop()
			return errors.Join(ctx.Err(), fmt.Errorf("%w: %s", errNode, lost.address))
		case <-s.closing.Done():
			late.Stop()
			return ErrClosed
		}
	}
}

// watchNode cancels work that takes long because its node is lost. The returned
// function ends that and returns the lost node, if there is one.
func (s *Store) watchNode(ctx context.Context, key furl.SessionKey, cancel func()) func() *lostNode {
	var lost atomic.Pointer[lostNode]
	var timer *time.Timer
	timer = time.AfterFunc(time.Hour, func() {
		if ctx.Err() != nil || s.begin() != nil {
			return
		}
		defer s.running.Done()
		s.survey(ctx)
		if l := s.lostFor(key); l != nil && ctx.Err() == nil {
			lost.Store(l)
			cancel()
		} else if ctx.Err() == nil {
			timer.Reset(slow)
		}
	})
	timer.Reset(slow)
	return func() *lostNode {
		timer.Stop()
		return lost.Load()
	}
}

// survey waits until the lost nodes are known as of now.
func (s *Store) survey(ctx context.Context) {
	n := &s.nodes
	n.mu.Lock()
	done := n.next
	if !n.running {
		if s.begin() != nil {
			n.mu.Unlock()
			return
		}
		n.running = true
		go func() {
			defer s.running.Done()
			s.surveyor()
		}()
	}
	n.mu.Unlock()
	select {
	case n.ask <- struct{}{}:
	default:
	}
	select {
	case <-done:
	case <-ctx.Done():
	case <-s.closing.Done():
	}
}

// surveyor surveys the nodes as long as there is a need.
func (s *Store) surveyor() {
	n := &s.nodes
	var conn *pgx.Conn
	defer func() { closeNow(conn) }()
	for needed := time.Now(); ; {
		n.mu.Lock()
		done := n.next
		n.next = make(chan struct{})
		n.mu.Unlock()
		var reached map[string]bool
		var shards []shard
		var err error
		if conn == nil || conn.IsClosed() {
			conn, err = s.ownConn()
		}
		if err == nil {
			reached, err = surveyNodes(s.closing, conn)
		}
		if err == nil {
			shards, err = surveyShards(s.closing, conn)
		}
		if err != nil {
			// The server itself is lost. Work notices that without a survey.
			closeNow(conn)
			conn, reached = nil, nil
		}
		s.surveyed(reached, shards)
		close(done)
		pause := surveyPause
		if !n.some.Load() {
			pause = surveyRest - time.Since(needed)
		}
		select {
		case <-n.ask:
			needed = time.Now()
			continue
		case <-time.After(pause):
		case <-s.closing.Done():
		}
		n.mu.Lock()
		if s.closing.Err() != nil || !n.some.Load() && time.Since(needed) >= surveyRest {
			n.running = false
			close(n.next) // of those who asked meanwhile
			n.next = make(chan struct{})
			n.mu.Unlock()
			return
		}
		n.mu.Unlock()
	}
}

// surveyed records which nodes were reached, and where shards are.
func (s *Store) surveyed(reached map[string]bool, shards []shard) {
	n := &s.nodes
	n.mu.Lock()
	defer n.mu.Unlock()
	if shards != nil {
		n.shards = shards
	}
	for address, l := range n.lost {
		if ok, known := reached[address]; ok || !known {
			close(l.back)
			delete(n.lost, address)
			if !ok {
				continue // not a node any more, or the server itself is lost
			}
			s.log.Info("postgres: node reachable again", "place", s.place, "node", address)
		}
	}
	for address, ok := range reached {
		if !ok && n.lost[address] == nil {
			n.lost[address] = &lostNode{address: address, back: make(chan struct{})}
			s.log.Warn("postgres: node unreachable; retrying operations on its sessions", "place", s.place, "node", address)
		}
	}
	n.some.Store(len(n.lost) > 0)
}

// reader is a connection, or a pool of them.
type reader interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// surveyNodes asks the server which nodes with shards it can reach.
func surveyNodes(ctx context.Context, conn reader) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	rows, err := conn.Query(ctx, `
		select nodename, nodeport, groupid = (select groupid from pg_dist_local_group) or citus_check_connection_to_node(nodename, nodeport)
		from pg_dist_node where isactive and shouldhaveshards and noderole = 'primary'`)
	if err != nil {
		return nil, err
	}
	reached := map[string]bool{}
	var host string
	var port int
	var ok bool
	_, err = pgx.ForEachRow(rows, []any{&host, &port, &ok}, func() error {
		reached[net.JoinHostPort(host, strconv.Itoa(port))] = ok
		return nil
	})
	return reached, err
}

// ownConn opens a connection outside the pool, which lost nodes can exhaust.
func (s *Store) ownConn() (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(s.closing, brief)
	defer cancel()
	config := s.pool.Config().ConnConfig
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	// Citus would check a node on a connection that it has kept to it, and that has no time
	// limit.
	if _, err = conn.Exec(ctx, fmt.Sprintf(`set citus.node_connection_timeout = %d; set citus.max_cached_conns_per_worker = 0; set client_min_messages = error`, nodeAnswer.Milliseconds())); err != nil {
		closeNow(conn)
		return nil, err
	}
	return conn, nil
}

// closeNow closes a connection, also while the store is closing.
func closeNow(conn *pgx.Conn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}
