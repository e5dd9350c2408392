package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/pgtest"
	"github.com/furlhq/furl/sim"
)

// sizes are the numbers of gateways that are measured on PostgreSQL.
var sizes = []int{1, 2, 4, 8}

// BenchmarkFleet measures what a request costs in the gateways and in the store. Each
// request of a conversation goes to another gateway; in "sticky" fleets all go to one. FURL_FLEET_REQUESTS is the number of
// requests for each fleet (600), and FURL_FLEET_STORE the URL of another store, such as a
// Citus cluster; FURL_PROGRAM names a furl that is built already. What counts are CPU seconds and bytes, which do not depend on the load
// of the machine as times do.
func BenchmarkFleet(b *testing.B) {
	requests := 600
	if n, err := strconv.Atoi(os.Getenv("FURL_FLEET_REQUESTS")); err == nil {
		requests = n
	}
	program := os.Getenv("FURL_PROGRAM")
	if program == "" {
		program = filepath.Join(b.TempDir(), "furl")
		build := exec.Command("go", "build", "-o", program, "./cmd/furl")
		build.Dir = "../.."
		if out, err := build.CombinedOutput(); err != nil {
			b.Fatalf("build furl: %v\n%s", err, out)
		}
	}
	f := figures{Requests: requests, Words: "an agent that reads files: one or two calls for each request, results of 3 kB, window of 24k tokens"}
	run := func(name string, n int, store string) {
		b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
			for range b.N {
				p := measure(b, program, store, n, requests, strings.HasSuffix(name, stickyName))
				p.Store = name
				f.Points = append(f.Points, p)
				b.ReportMetric(p.GatewayCPU, "gateway-ms/req")
				b.ReportMetric(p.ServerCPU, "server-ms/req")
				b.ReportMetric(p.Transactions, "transactions/req")
				b.ReportMetric(p.WAL, "wal-B/req")
				b.ReportMetric(p.Growth, "store-B/req")
				b.ReportMetric(p.Provider, "provider-B/req")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
	if at := os.Getenv("FURL_FLEET_STORE"); at != "" {
		for _, n := range sizes {
			run("other", n, at)
		}
		return
	}
	run("sqlite", 1, filepath.Join(b.TempDir(), "furl.db"))
	for _, n := range sizes {
		run("postgres", n, pgtest.URL(b))
	}
	run("postgres"+stickyName, 4, pgtest.URL(b))
	text, err := json.MarshalIndent(f, "", "  ")
	if err == nil {
		err = os.WriteFile("figures.json", append(text, '\n'), 0o644)
	}
	if err != nil {
		b.Fatal(err)
	}
}

const stickyName = ", sticky"

// measure runs agents through n gateways on a store.
func measure(b *testing.B, program, store string, n, requests int, sticky bool) point {
	player := sim.NewAgent(&sim.AgentOptions{Parallel: 2, Lines: 8})
	traffic := &counted{Handler: sim.New(&sim.Options{Player: player, Keep: 1, NoAuth: true})}
	provider := httptest.NewServer(traffic)
	defer provider.Close()
	var urls []string
	var pids []int
	for range n {
		url, pid := serve(b, program, store, provider.URL)
		urls, pids = append(urls, url), append(pids, pid)
	}
	agents := &agents{urls: urls, sticky: sticky}
	agents.run(b, 200) // connections, vocabularies and statements are ready
	s := openServer(b, store)
	defer s.close()
	before, began := usageOf(b, s, pids), traffic.bytes.Load()
	agents.run(b, int64(requests))
	time.Sleep(3 * time.Second) // the indexers finish
	after, ended := usageOf(b, s, pids), traffic.bytes.Load()
	sent := float64(agents.sent.Load() - agents.last)
	return point{
		Gateways: n, GatewayCPU: 1000 * (after.gateway - before.gateway) / sent, ServerCPU: 1000 * (after.server - before.server) / sent,
		Transactions: (after.transactions - before.transactions) / sent, WAL: (after.wal - before.wal) / sent,
		Growth: (after.size - before.size) / sent, Provider: float64(ended-began) / sent,
	}
}

// counted counts the bytes of bodies in both directions.
type counted struct {
	http.Handler
	bytes atomic.Int64
}

func (c *counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.bytes.Add(r.ContentLength)
	c.Handler.ServeHTTP(&countedWriter{w, c}, r)
}

type countedWriter struct {
	http.ResponseWriter
	of *counted
}

func (w *countedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *countedWriter) Write(p []byte) (int, error) {
	w.of.bytes.Add(int64(len(p)))
	return w.ResponseWriter.Write(p)
}

// serve starts a gateway and returns its address and its process.
func serve(b *testing.B, program, store, provider string) (url string, pid int) {
	home := b.TempDir()
	if err := os.WriteFile(filepath.Join(home, "config.yaml"), nil, 0o600); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(program, "serve", "--listen", "127.0.0.1:0", "--store", store, "--anthropic", provider, "--openai", provider, "--window", "24k", "--log", "error")
	cmd.Env = append(os.Environ(), "FURL_DATA="+home, "FURL_CONFIG="+filepath.Join(home, "config.yaml"))
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	_, url, ok := strings.Cut(strings.TrimSpace(line), "furl listens on ")
	if err != nil || !ok {
		b.Fatalf("furl serve: %v %s", err, line)
	}
	return url, cmd.Process.Pid
}

// agents are concurrent conversations that use all gateways in turn.
type agents struct {
	urls   []string
	sticky bool // a conversation stays on its gateway
	next   atomic.Uint64
	sent   atomic.Int64
	last   int64 // sent before the latest run
	n      atomic.Int64
}

func (a *agents) run(b *testing.B, requests int64) {
	a.last = a.sent.Load()
	until := a.last + requests
	var work sync.WaitGroup
	for range 32 {
		work.Go(func() {
			for a.sent.Load() < until && !b.Failed() {
				if err := a.converse(b.Context(), until); err != nil {
					b.Error(err)
				}
			}
		})
	}
	work.Wait()
	if b.Failed() {
		b.FailNow()
	}
}

func (a *agents) converse(ctx context.Context, until int64) error {
	n := a.n.Add(1)
	c := sim.Client{Format: furl.FormatAnthropic, Model: "claude-sonnet-4-5", Stream: true, System: "You work on a repository.", Header: http.Header{"X-Api-Key": {"k"}, "X-Session-Id": {fmt.Sprintf("agent-%d-%d", os.Getpid(), n)}}}
	if err := c.Say(fmt.Sprintf("Conversation %d. Look at everything.", n)); err != nil {
		return err
	}
	for i := 0; i < 60 && a.sent.Load() < until; i++ {
		if !a.sticky || i == 0 {
			c.URL = a.urls[a.next.Add(1)%uint64(len(a.urls))]
		}
		a.sent.Add(1)
		reply, err := c.Send(ctx)
		if err != nil {
			return err
		}
		var results []furl.Block
		for _, m := range reply.Messages {
			for _, call := range m.Blocks {
				if call.Kind == furl.KindCall {
					results = append(results, furl.Block{Kind: furl.KindResult, ID: call.ID, Text: strings.Repeat(fmt.Sprintf("%s line of a file that is read, %d\n", call.ID, i), 60)})
				}
			}
		}
		if len(results) == 0 {
			err = c.Say("Go on.")
		} else {
			err = c.Results(results)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// usage is what gateways and the server have used, in seconds and bytes.
type usage struct{ gateway, server, transactions, wal, size float64 }

func usageOf(b *testing.B, s *server, pids []int) (u usage) {
	b.Helper()
	for _, pid := range pids {
		u.gateway += cpuOf(pid)
	}
	if s == nil {
		return u
	}
	err := s.conn.QueryRow(b.Context(), `
		select (select xact_commit from pg_stat_database where datname = current_database()), (select wal_bytes from pg_stat_wal)::float8,
		pg_database_size(current_database())`).Scan(&u.transactions, &u.wal, &u.size)
	if err != nil {
		b.Fatal(err)
	}
	rows, err := s.conn.Query(b.Context(), `select pid from pg_stat_activity where pid <> pg_backend_pid()`)
	if err != nil {
		b.Fatal(err)
	}
	servers, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		b.Fatal(err)
	}
	for _, pid := range servers {
		u.server += cpuOf(pid)
	}
	return u
}

// cpuOf returns the CPU seconds of a process, 0 if it is unknown.
func cpuOf(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, err1 := strconv.ParseFloat(f[11], 64)
	system, err2 := strconv.ParseFloat(f[12], 64)
	if errors.Join(err1, err2) != nil {
		return 0
	}
	return (user + system) / 100 // clock ticks on all Linux systems
}

// server is a connection to the database server.
type server struct{ conn *pgx.Conn }

// openServer connects to the server of a store; nil for a file.
func openServer(b *testing.B, store string) *server {
	if !strings.Contains(store, "://") {
		return nil
	}
	conn, err := pgx.Connect(b.Context(), store)
	if err != nil {
		b.Fatal(err)
	}
	return &server{conn}
}

func (s *server) close() {
	if s != nil {
		_ = s.conn.Close(context.Background())
	}
}
