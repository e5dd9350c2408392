package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/storage"
)

// clusterLoad appends to sessions of a cluster, and writes index pages of the
// same sessions beside.
type clusterLoad struct {
	load
	stop func()

	mu    sync.Mutex
	last  map[furl.SessionID]time.Time     // when an append was acknowledged last
	worst map[furl.SessionID]time.Duration // the longest time between two, since the last reset
}

const loadSessions = 8

func startClusterLoad(t *testing.T, s *Store) *clusterLoad {
	t.Helper()
	l := &clusterLoad{load: load{s: s, acked: map[furl.SessionID]furl.Seq{}}, last: map[furl.SessionID]time.Time{}, worst: map[furl.SessionID]time.Duration{}}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range loadSessions {
		id := furl.SessionID(fmt.Sprint("load-", i))
		all.Go(func() {
			err := l.run(ctx, id, func(seq furl.Seq) {
				l.mu.Lock()
				l.acked[id] = seq
				now := time.Now()
				if last, ok := l.last[id]; ok {
					l.worst[id] = max(l.worst[id], now.Sub(last))
				}
				l.last[id] = now
				l.mu.Unlock()
				l.acks.Add(1)
			})
			if err != nil {
				t.Errorf("append to session %s: %v", id, err)
			}
		})
	}
	for part := range 2 {
		all.Go(func() {
			for n := part; ctx.Err() == nil; n += 2 {
				key := furl.SessionKey{Tenant: "load", Session: furl.SessionID(fmt.Sprint("load-", n%loadSessions))}
				if err := indexOnce(ctx, s, key); err != nil && ctx.Err() == nil {
					t.Errorf("index of session %s: %v", key.Session, err)
				}
			}
		})
	}
	l.stop = sync.OnceFunc(func() { cancel(); all.Wait() })
	t.Cleanup(l.stop)
	return l
}

// indexOnce writes a page of the records that are not indexed yet.
func indexOnce(ctx context.Context, s *Store, key furl.SessionKey) error {
	at, err := s.Indexed(ctx, key)
	if errors.Is(err, storage.ErrNoSession) {
		return nil
	}
	if err != nil {
		return err
	}
	to := at
	for r, err := range s.Read(ctx, key, at) {
		if err != nil {
			return err
		}
		to = r.Seq
	}
	w := storage.IndexWrite{After: at, To: to}
	for bucket := range uint32(8) {
		w.Put = append(w.Put, storage.IndexPage{Bucket: bucket, Segment: uint64(to), Data: make([]byte, 500)})
	}
	// If the response is lost, the repetition finds that its own cursor has moved.
	if err := s.WriteIndex(ctx, key, w); err != nil && !errors.Is(err, furl.ErrConflict) {
		return err
	}
	return nil
}

// on returns the sessions of the load on a node, and the others.
func (l *clusterLoad) on(t *testing.T, address string) (there, others []furl.SessionID) {
	t.Helper()
	for i := range loadSessions {
		id := furl.SessionID(fmt.Sprint("load-", i))
		switch home := nodeOf(t, l.s, id); home {
		case "":
			t.Fatalf("session %s has no node", id)
		case address:
			there = append(there, id)
		default:
			others = append(others, id)
		}
	}
	return there, others
}

// nodeOf returns the address of the node of a session.
func nodeOf(t *testing.T, s *Store, id furl.SessionID) string {
	t.Helper()
	s.survey(t.Context())
	s.nodes.mu.Lock()
	defer s.nodes.mu.Unlock()
	return homeOf(s.nodes.shards, id)
}

// reset starts the measurement of the longest times.
func (l *clusterLoad) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.worst)
}

// longest returns the longest time without an acknowledged append of a session.
func (l *clusterLoad) longest(ids []furl.SessionID) (d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		d = max(d, l.worst[id])
	}
	return d
}

// each waits until n more records of every one of the sessions are acknowledged.
func (l *clusterLoad) each(t *testing.T, ids []furl.SessionID, n furl.Seq) {
	t.Helper()
	l.mu.Lock()
	want := map[furl.SessionID]furl.Seq{}
	for _, id := range ids {
		want[id] = l.acked[id] + n
	}
	l.mu.Unlock()
	deadline := time.Now().Add(2 * time.Minute)
	for _, id := range ids {
		for {
			l.mu.Lock()
			has := l.acked[id]
			l.mu.Unlock()
			if has >= want[id] {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("session %s: no appends are acknowledged any more", id)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// all lists the sessions of the load.
func (l *clusterLoad) all() (ids []furl.SessionID) {
	for i := range loadSessions {
		ids = append(ids, furl.SessionID(fmt.Sprint("load-", i)))
	}
	return ids
}

// finish stops the load and checks that nothing is lost.
func (l *clusterLoad) finish(t *testing.T, c *pgtest.Cluster) {
	t.Helper()
	l.stop()
	if names := c.Prepared(t); len(names) > 0 {
		t.Errorf("prepared transactions: %v", names)
	}
	kept(t, l.s, l.acked)
}

// onCluster opens a store with eight shards.
func onCluster(t testing.TB, o Options) (*pgtest.Cluster, *Store) {
	t.Helper()
	c := pgtest.Citus(t)
	if o.Partitions == 0 {
		o.Partitions = 8
	}
	if testing.Verbose() {
		o.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return c, reopen(t, c.URL(pgtest.Coordinator), &o)
}

// When nodes of a cluster are killed under load, appends to their sessions wait
// until they are back, those to sessions on other workers continue, and no
// acknowledged record is lost or doubled.
func TestCitusKilled(t *testing.T) {
	c, s := onCluster(t, Options{Retry: time.Minute})
	n := rounds(t, 3)
	if n >= 10 {
		c.Logical(t)
	}
	l := startClusterLoad(t, s)
	for round := range n {
		if n >= 10 && round == n-1 { // takes as long as ten rounds
			moveShards(t, c, s, l)
		}
		node := []string{pgtest.Worker1, pgtest.Worker2, pgtest.Coordinator}[round%3]
		l.reset()
		l.each(t, l.all(), furl.Seq(3+round*7%40))
		there, others := l.on(t, c.Address(node))
		before := l.longest(l.all())
		l.reset()
		c.Kill(t, node)
		if node == pgtest.Coordinator {
			there, others = l.all(), nil
		} else {
			l.each(t, others, 10) // while the node is away
		}
		c.Up(t, node)
		back := time.Now()
		l.each(t, there, 1)
		t.Logf("round %d, %s killed: its sessions continued %v after its return; the longest pause of other sessions was %v, and %v before",
			round+1, node, time.Since(back).Round(time.Millisecond), l.longest(others).Round(time.Millisecond), before.Round(time.Millisecond))
		if names := c.Prepared(t); len(names) > 0 {
			t.Errorf("prepared transactions: %v", names)
		}
	}
	l.each(t, l.all(), 3)
	l.finish(t, c)
}

// moveShards adds a worker and moves shards to it under load: no append fails.
func moveShards(t *testing.T, c *pgtest.Cluster, s *Store, l *clusterLoad) {
	node := c.AddWorker(t)
	t.Cleanup(func() { l.stop(); c.Empty(t); node.Remove(t) })
	l.reset()
	conn, err := pgx.Connect(t.Context(), c.URL(pgtest.Coordinator))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	begun := time.Now()
	if _, err := conn.Exec(t.Context(), `select rebalance_table_shards('furl.sessions', shard_transfer_mode := 'force_logical')`); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begun)
	l.each(t, l.all(), 5)
	var moved int
	err = s.pool.QueryRow(t.Context(), `
		select count(*) from pg_dist_placement join pg_dist_node n using (groupid) join pg_dist_shard using (shardid)
		where logicalrelid = 'furl.records'::regclass and n.nodeport = $1`, node.Port()).Scan(&moved)
	if err != nil || moved == 0 {
		t.Errorf("%d shards were moved to the new worker: %v", moved, err)
	}
	t.Logf("%d of 8 shards moved to a new worker in %v: the longest pause of a session was %v", moved, took.Round(time.Millisecond), l.longest(l.all()).Round(time.Millisecond))
}

// When a node hangs, sessions on other nodes continue, and its own do when it
// responds again.
func TestCitusHangs(t *testing.T) {
	c, s := onCluster(t, Options{Retry: time.Minute})
	l := startClusterLoad(t, s)
	for range (rounds(t, 1) + 19) / 20 { // takes as long as ten kills
		l.each(t, l.all(), 5)
		there, others := l.on(t, c.Address(pgtest.Worker1))
		l.reset()
		resume := c.Hang(t, pgtest.Worker1)
		begun := time.Now()
		l.each(t, others, 2) // some wait until the hanging statements are given up
		lost := func() bool { return s.nodes.some.Load() }
		for !lost() {
			if time.Since(begun) > time.Minute {
				t.Fatal("the hanging node is not noticed")
			}
			time.Sleep(time.Millisecond)
		}
		noticed := time.Since(begun)
		l.each(t, others, 20)
		resume()
		back := time.Now()
		l.each(t, there, 1)
		t.Logf("the hanging node was noticed after %v; its sessions continued %v after its return; the longest pause of other sessions was %v",
			noticed.Round(time.Millisecond), time.Since(back).Round(time.Millisecond), l.longest(others).Round(time.Millisecond))
	}
	l.finish(t, c)
}

// A node that does not come back within Options.Retry is away: work on its
// sessions, and on all sessions, fails at once and says which node. Other
// sessions are not affected.
func TestCitusNodeAway(t *testing.T) {
	c, s := onCluster(t, Options{Retry: 300 * time.Millisecond})
	var keys []furl.SessionKey
	for i := range loadSessions {
		keys = append(keys, furl.SessionKey{Tenant: "t", Session: furl.SessionID(fmt.Sprint("load-", i))})
		appendAll(t, s, keys[i], talk(t, "x", 1, 10))
	}
	records := talk(t, "x", 2, 10)[1:]
	c.Kill(t, pgtest.Worker2)
	up := sync.OnceFunc(func() { c.Up(t, pgtest.Worker2) })
	defer up()
	address := c.Address(pgtest.Worker2)
	lost := 0
	for _, key := range keys {
		err := s.Append(t.Context(), key, storage.Batch{Records: records})
		// Processes of a killed server take a moment to go.
		for deadline := time.Now().Add(time.Minute); err == nil && nodeOf(t, s, key.Session) == address && time.Now().Before(deadline); {
			err = s.Append(t.Context(), key, storage.Batch{Records: records})
		}
		switch {
		case nodeOf(t, s, key.Session) != address:
			if err != nil {
				t.Errorf("append to a session on another node: %v", err)
			}
			continue
		case !errors.Is(err, errNode):
			t.Errorf("append to a session of a lost node: %v", err)
		}
		lost++
	}
	if lost == 0 || lost == len(keys) {
		t.Errorf("%d of %d sessions are on the lost node", lost, len(keys))
	}
	if _, err := s.Match(t.Context(), "t", []furl.Digest{records[0].Chain}, 1); !errors.Is(err, errNode) {
		t.Errorf("match over all nodes: %v", err)
	}
	up()
	deadline := time.Now().Add(time.Minute)
	for s.nodes.some.Load() && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	for _, key := range keys {
		appendAll(t, s, key, records)
	}
	healthy(t, s)
}
