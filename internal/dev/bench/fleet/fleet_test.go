package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/sim"
)

// setups are the fleets that are measured.
var setups = []struct {
	store    string
	gateways int
	sticky   bool // a conversation stays on its gateway
}{
	{"sqlite", 1, false}, {"postgres", 1, false}, {"postgres", 2, false}, {"postgres", 4, false}, {"postgres", 8, false}, {"postgres", 4, true},
	{"citus", 1, false}, {"citus", 4, false},
}

// BenchmarkFleet measures what a request costs in the gateways and in the store. Each
// request of a conversation goes to another gateway; in "sticky" fleets all go to one. All
// fleets run at the same time, and get requests in turns, one fleet after the other. A figure is
// the median of the rounds, so a busy machine disturbs all fleets alike. Between its rounds a
// gateway is idle and returns memory (cli.whenIdle), which costs as much as some requests: rounds
// must be long, because a fleet of four does it four times as often.
//
// FURL_FLEET_REQUESTS is the number of requests of a round (1200), FURL_FLEET_ROUNDS the number of
// rounds (5). FURL_FLEET_GATEWAYS selects fleets by their number of gateways, such as 1,4.
// FURL_FLEET_STORE is the URL of another store; FURL_PROGRAM names a furl that is built already,
// and FURL_FLEET_OLD an older one, whose fleets get requests by turns with the others.
// Fleets on Citus are measured if FURL_CITUS names the folder with the script of a cluster; they
// share one. What counts are CPU seconds and bytes, which do not depend on the load of the machine
// as times do.
func BenchmarkFleet(b *testing.B) {
	requests, rounds := numberOf("FURL_FLEET_REQUESTS", 1200), numberOf("FURL_FLEET_ROUNDS", 5)
	program := os.Getenv("FURL_PROGRAM")
	if program == "" {
		program = filepath.Join(b.TempDir(), "furl")
		build := exec.Command("go", "build", "-o", program, "./cmd/furl")
		build.Dir = "../../../.."
		if out, err := build.CombinedOutput(); err != nil {
			b.Fatalf("build furl: %v\n%s", err, out)
		}
	}
	other, only, old := os.Getenv("FURL_FLEET_STORE"), os.Getenv("FURL_FLEET_GATEWAYS"), os.Getenv("FURL_FLEET_OLD")
	cluster := ""
	if os.Getenv(pgtest.CitusEnv) != "" {
		cluster = pgtest.Citus(b).URL(pgtest.Coordinator)
	}
	var all []*fleet
	for _, m := range setups {
		switch {
		case only != "" && !slices.Contains(strings.Split(only, ","), strconv.Itoa(m.gateways)),
			other != "" && m.store != "postgres", m.store == "citus" && cluster == "":
			continue
		}
		name, store := m.store, func() string { return pgtest.URL(b) }
		switch {
		case other != "":
			name, store = "other", func() string { return other }
		case m.store == "sqlite":
			store = func() string { return filepath.Join(b.TempDir(), "furl.db") }
		case m.store == "citus":
			store = func() string { return cluster }
		}
		if m.sticky {
			name += ", sticky"
		}
		if old != "" {
			all = append(all, startFleet(b, old, name+", old", store(), m.gateways, m.sticky))
		}
		all = append(all, startFleet(b, program, name, store(), m.gateways, m.sticky))
	}
	for _, f := range all {
		f.agents.run(b, int64(requests)) // connections, vocabularies and statements are ready
	}
	for range rounds {
		for _, f := range all {
			f.measure(b, requests)
		}
	}
	out := figures{Requests: requests, Rounds: rounds, Words: "an agent that reads files: one or two calls for each request, results of 3 kB, window of 24k tokens"}
	for _, f := range all {
		p := f.median()
		if !strings.HasSuffix(p.Store, ", old") {
			out.Points = append(out.Points, p)
		}
		b.Run(fmt.Sprintf("%s/%d", p.Store, p.Gateways), func(b *testing.B) {
			b.ReportMetric(p.GatewayCPU, "gateway-ms/req")
			b.ReportMetric(p.ServerCPU, "server-ms/req")
			b.ReportMetric(p.Transactions, "transactions/req")
			b.ReportMetric(p.WAL, "wal-B/req")
			b.ReportMetric(p.Growth, "store-B/req")
			b.ReportMetric(p.Provider, "provider-B/req")
			b.ReportMetric(0, "ns/op")
		})
	}
	if other != "" || only != "" {
		return
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err == nil {
		err = os.WriteFile("figures.json", append(text, '\n'), 0o644)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// numberOf is the number in an environment variable, n if it has none.
func numberOf(name string, n int) int {
	if m, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return m
	}
	return n
}

// fleet is gateways on one store, with their agents and provider.
type fleet struct {
	point
	traffic *counted
	pids    []int
	agents  *agents
	server  *server
	rounds  []point
}

// startFleet starts n gateways on a store.
func startFleet(b *testing.B, program, name, store string, n int, sticky bool) *fleet {
	player := sim.NewAgent(&sim.AgentOptions{Parallel: 2, Lines: 8})
	f := &fleet{point: point{Store: name, Gateways: n}, traffic: &counted{Handler: sim.New(&sim.Options{Player: player, Keep: 1, NoAuth: true})}}
	provider := httptest.NewServer(f.traffic)
	b.Cleanup(provider.Close)
	f.agents = &agents{name: fmt.Sprintf("%s %d", name, n), sticky: sticky}
	for range n {
		url, pid := serve(b, program, store, provider.URL)
		f.agents.urls, f.pids = append(f.agents.urls, url), append(f.pids, pid)
	}
	f.server = openServer(b, store)
	b.Cleanup(f.server.close)
	return f
}

// measure runs a round of requests.
func (f *fleet) measure(b *testing.B, requests int) {
	before, began := usageOf(b, f.server, f.pids), f.traffic.bytes.Load()
	f.agents.run(b, int64(requests))
	time.Sleep(6 * time.Second) // the indexers finish
	after, ended := usageOf(b, f.server, f.pids), f.traffic.bytes.Load()
	sent := float64(f.agents.sent.Load() - f.agents.last)
	f.rounds = append(f.rounds, point{
		GatewayCPU: 1000 * (after.gateway - before.gateway) / sent, ServerCPU: 1000 * (after.server - before.server) / sent,
		Transactions: (after.transactions - before.transactions) / sent, WAL: (after.wal - before.wal) / sent,
		Growth: (after.size - before.size) / sent, Provider: float64(ended-began) / sent,
	})
}

// median returns the medians of all rounds.
func (f *fleet) median() point {
	p := f.point
	for _, m := range []struct {
		to *float64
		of func(p *point) float64
	}{
		{&p.GatewayCPU, func(p *point) float64 { return p.GatewayCPU }},
		{&p.ServerCPU, func(p *point) float64 { return p.ServerCPU }},
		{&p.Transactions, func(p *point) float64 { return p.Transactions }},
		{&p.WAL, func(p *point) float64 { return p.WAL }},
		{&p.Growth, func(p *point) float64 { return p.Growth }},
		{&p.Provider, func(p *point) float64 { return p.Provider }},
	} {
		var all []float64
		for i := range f.rounds {
			all = append(all, m.of(&f.rounds[i]))
		}
		slices.Sort(all)
		*m.to = all[len(all)/2]
	}
	return p
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

// agents are concurrent conversations that use all gateways in turn. A conversation continues in
// the next round.
type agents struct {
	name   string // of the fleet
	urls   []string
	sticky bool // a conversation stays on its gateway
	next   atomic.Uint64
	sent   atomic.Int64
	last   int64 // sent before the latest run
	n      atomic.Int64
	all    [32]agent
}

// agent has one conversation after the other.
type agent struct {
	client sim.Client
	left   int // requests of the conversation
}

// conversationLength is the number of requests of a conversation.
const conversationLength = 60

func (a *agents) run(b *testing.B, requests int64) {
	a.last = a.sent.Load()
	until := a.last + requests
	var work sync.WaitGroup
	for i := range a.all {
		work.Go(func() {
			for a.sent.Load() < until && !b.Failed() {
				if err := a.step(b.Context(), &a.all[i]); err != nil {
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

// step sends the next request of an agent, and answers the reply.
func (a *agents) step(ctx context.Context, g *agent) error {
	if g.left == 0 {
		n := a.n.Add(1)
		id := fmt.Sprintf("agent-%s-%d-%d", strings.NewReplacer(",", "", " ", "-").Replace(a.name), os.Getpid(), n)
		g.client = sim.Client{Format: furl.FormatAnthropic, Model: "claude-sonnet-4-5", Stream: true, System: "You work on a repository.", Header: http.Header{"X-Api-Key": {"k"}, "X-Session-Id": {id}}}
		if err := g.client.Say(fmt.Sprintf("Conversation %d. Look at everything.", n)); err != nil {
			return err
		}
		// The first conversations end at different times, as later ones do.
		if g.left = conversationLength; n <= int64(len(a.all)) {
			g.left = 1 + int(n)*conversationLength/len(a.all)
		}
	}
	g.left--
	if c := &g.client; !a.sticky || c.URL == "" {
		c.URL = a.urls[a.next.Add(1)%uint64(len(a.urls))]
	}
	a.sent.Add(1)
	reply, err := g.client.Send(ctx)
	if err != nil {
		return err
	}
	var results []furl.Block
	for _, m := range reply.Messages {
		for _, call := range m.Blocks {
			if call.Kind == furl.KindCall {
				results = append(results, furl.Block{Kind: furl.KindResult, ID: call.ID, Text: strings.Repeat(fmt.Sprintf("%s line of a file that is read, %d\n", call.ID, g.left), 60)})
			}
		}
	}
	if len(results) == 0 {
		return g.client.Say("Go on.")
	}
	return g.client.Results(results)
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
	for _, node := range s.nodes {
		var transactions, wal, size float64
		err := node.QueryRow(b.Context(), `
			select (select xact_commit from pg_stat_database where datname = current_database()), (select wal_bytes from pg_stat_wal)::float8,
			pg_database_size(current_database())`).Scan(&transactions, &wal, &size)
		if err != nil {
			b.Fatal(err)
		}
		u.transactions, u.wal, u.size = u.transactions+transactions, u.wal+wal, u.size+size
		for _, pid := range s.processes(b, node) {
			u.server += cpuOf(pid)
		}
	}
	return u
}

// processes returns the processes of a node that work for the store. Nodes of Citus connect to
// each other, for single statements too. Such processes end soon, so the node's main
// process is counted too: it has the time of those that have ended.
func (s *server) processes(b *testing.B, node *pgx.Conn) []int {
	if len(s.nodes) == 1 {
		return numbersOf(b, node, `select pid from pg_stat_activity where pid <> pg_backend_pid() and (datname is null or datname = current_database())`)
	}
	parent := int(statOf(int(node.PgConn().PID()))[1])
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", parent))
	if err != nil {
		b.Fatal(err)
	}
	pids := []int{parent}
	for word := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			b.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func numbersOf(b *testing.B, conn *pgx.Conn, sql string) []int {
	rows, err := conn.Query(b.Context(), sql)
	if err != nil {
		b.Fatal(err)
	}
	numbers, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		b.Fatal(err)
	}
	return numbers
}

// cpuOf returns the CPU seconds of a process and of its children that have ended, 0 if it is
// unknown.
func cpuOf(pid int) float64 {
	f := statOf(pid)
	return (f[11] + f[12] + f[13] + f[14]) / 100 // clock ticks on all Linux systems
}

// statOf returns the numbers in /proc/PID/stat after the process's name and state, from
// index 1 on; zeros if it is unknown.
func statOf(pid int) (f [15]float64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return f
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	for i, word := range strings.Fields(rest) {
		if i > 0 && i < len(f) {
			f[i], _ = strconv.ParseFloat(word, 64)
		}
	}
	return f
}

// server is a connection to the database server, on Citus to each node.
type server struct{ nodes []*pgx.Conn }

// openServer connects to the server of a store; nil for a file.
func openServer(b *testing.B, store string) *server {
	if !strings.Contains(store, "://") {
		return nil
	}
	connect := func(port int) *pgx.Conn {
		config, err := pgx.ParseConfig(store)
		if err != nil {
			b.Fatal(err)
		}
		if port != 0 {
			config.Port = uint16(port)
		}
		conn, err := pgx.ConnectConfig(b.Context(), config)
		if err != nil {
			b.Fatal(err)
		}
		return conn
	}
	s := &server{nodes: []*pgx.Conn{connect(0)}}
	var citus bool
	if err := s.nodes[0].QueryRow(b.Context(), `select to_regclass('pg_dist_node') is not null`).Scan(&citus); err != nil {
		b.Fatal(err)
	}
	if citus { // all nodes are on this machine
		for _, port := range numbersOf(b, s.nodes[0], `select nodeport from pg_dist_node where groupid > 0`) {
			s.nodes = append(s.nodes, connect(port))
		}
	}
	return s
}

func (s *server) close() {
	if s != nil {
		for _, node := range s.nodes {
			_ = node.Close(context.Background())
		}
	}
}
