package pgtest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// CitusEnv is the environment variable with the folder of the script that
// starts a cluster of Citus: "cluster start DIR PORT", "kill DIR NODE", "up DIR
// NODE" and "stop DIR".
const CitusEnv = "FURL_CITUS"

// citusHowto is the message of a skipped test.
const citusHowto = CitusEnv + " is unset: it names the folder of a script that starts a Citus cluster"

// The nodes of a cluster.
const (
	Coordinator = "coordinator"
	Worker1     = "worker1"
	Worker2     = "worker2"
)

// Cluster is a Citus cluster of real servers on this machine: a coordinator and
// two workers. All tests of one process share it, one after the other.
type Cluster struct {
	script, dir string
	port        int
	hold        *exec.Cmd
	added       *Worker // a third worker, if there is one
}

var citus struct {
	sync.Mutex
	cluster *Cluster
	err     error
}

// Citus returns the cluster of the process, without the schema furl. All its
// nodes run. Without a script the test is skipped.
func Citus(t testing.TB) *Cluster {
	t.Helper()
	folder := os.Getenv(CitusEnv)
	if folder == "" {
		t.Skip(citusHowto)
	}
	citus.Lock()
	defer citus.Unlock()
	if citus.cluster == nil && citus.err == nil {
		// As for the shared server: benchmarks depend on the speed of a disk.
		parent := ""
		if _, bench := t.(*testing.B); !bench {
			parent = ramFolder()
		}
		citus.cluster, citus.err = startCluster(folder, parent)
	}
	if citus.err != nil {
		t.Fatal(citus.err)
	}
	citus.cluster.Empty(t)
	return citus.cluster
}

// watchdog stops the cluster when the test process has ended, however it ends.
const watchdog = `read -r _; "$0" stop "$1" >/dev/null 2>&1`

func startCluster(folder, parent string) (*Cluster, error) {
	dir, err := os.MkdirTemp(parent, "furlcitus")
	if err != nil {
		return nil, err
	}
	c := &Cluster{script: filepath.Join(folder, "cluster"), dir: dir}
	if c.port, err = freePorts(3); err != nil {
		return nil, err
	}
	c.hold = exec.Command("/bin/sh", "-c", watchdog, c.script, dir)
	if err := asWatchdog(c.hold); err != nil {
		return nil, err
	}
	if _, err := c.hold.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.hold.Start(); err != nil {
		return nil, err
	}
	if err := c.run("start", dir, strconv.Itoa(c.port)); err != nil {
		for _, node := range []string{Coordinator, Worker1, Worker2} {
			if log, _ := os.ReadFile(filepath.Join(dir, node+".log")); len(log) > 0 {
				err = fmt.Errorf("%w\n%s:\n%s", err, node, log)
			}
		}
		return nil, err
	}
	return c, nil
}

// freePorts returns the first of n ports in a row that are free. They are below
// those that systems give to other connections, which could take one of them
// before a server starts.
func freePorts(n int) (int, error) {
	for range 100 {
		first, free := 15_000+rand.IntN(15_000), 0
		for ; free < n; free++ {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(first+free)))
			if err != nil {
				break
			}
			_ = l.Close()
		}
		if free == n {
			return first, nil
		}
	}
	return 0, fmt.Errorf("no %d free ports in a row", n)
}

// run runs the script.
func (c *Cluster) run(args ...string) error {
	cmd := exec.Command(c.script, args...)
	var out bytes.Buffer
	// Not a pipe: the servers inherit it and do not close it.
	file, err := os.CreateTemp("", "furlcluster")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(file.Name())
		out.Write(text)
		return fmt.Errorf("cluster %s: %w\n%s", strings.Join(args, " "), err, out.String())
	}
	return nil
}

// URL returns the address of a node.
func (c *Cluster) URL(node string) string {
	u := url.URL{Scheme: "postgres", User: url.User("postgres"), Host: c.Address(node), Path: "/postgres", RawQuery: "sslmode=disable"}
	return u.String()
}

// Address returns the host and port of a node, as Citus has it.
func (c *Cluster) Address(node string) string {
	port := c.port
	switch node {
	case Worker1:
		port++
	case Worker2:
		port += 2
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// Empty drops the schema furl.
func (c *Cluster) Empty(t testing.TB) {
	t.Helper()
	if err := run(c.URL(Coordinator), `drop schema if exists furl cascade`); err != nil {
		t.Fatalf("empty the cluster: %v", err)
	}
}

// Kill kills a node as a crash would.
func (c *Cluster) Kill(t testing.TB, node string) {
	t.Helper()
	if err := c.run("kill", c.dir, node); err != nil {
		t.Fatal(err)
	}
}

// Up starts a killed node and waits until it responds.
func (c *Cluster) Up(t testing.TB, node string) {
	t.Helper()
	if err := c.run("up", c.dir, node); err != nil {
		t.Fatal(err)
	}
}

// Hang stops all processes of a node without ending them. The returned function continues
// them; so does the end of the test.
func (c *Cluster) Hang(t testing.TB, node string) (resume func()) {
	t.Helper()
	file, err := os.Open(filepath.Join(c.dir, node, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	first := bufio.NewScanner(file)
	first.Scan()
	pid, err := strconv.Atoi(strings.TrimSpace(first.Text()))
	if err != nil || pid <= 1 {
		t.Fatalf("invalid process id %q of %s", first.Text(), node)
	}
	stopped, err := pause(pid)
	if err != nil {
		t.Fatal(err)
	}
	resume = sync.OnceFunc(func() {
		if err := unpause(stopped); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(resume)
	return resume
}

// LogFile returns the name of a node's log.
func (c *Cluster) LogFile(node string) string { return filepath.Join(c.dir, node+".log") }

// Exec runs a statement on a node.
func (c *Cluster) Exec(t testing.TB, node, statement string) {
	t.Helper()
	if err := run(c.URL(node), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// Prepared returns the prepared transactions of all nodes.
func (c *Cluster) Prepared(t testing.TB) (names []string) {
	t.Helper()
	addresses := []string{c.URL(Coordinator), c.URL(Worker1), c.URL(Worker2)}
	if c.added != nil {
		addresses = append(addresses, c.added.URL())
	}
	for _, address := range addresses {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		conn, err := pgx.Connect(ctx, address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		rows, err := conn.Query(ctx, `select gid from pg_prepared_xacts`)
		if err != nil {
			t.Fatal(err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	return names
}

// Logical restarts the nodes with wal_level = logical, with which shards can be moved
// while they are written to.
func (c *Cluster) Logical(t testing.TB) {
	t.Helper()
	for _, node := range []string{Coordinator, Worker1, Worker2} {
		c.Exec(t, node, `alter system set wal_level = 'logical'`)
		c.Kill(t, node)
		c.Up(t, node)
	}
}

// Worker is a worker that was added to a cluster.
type Worker struct {
	c      *Cluster
	server *Server
	port   int
}

// AddWorker adds a third worker.
func (c *Cluster) AddWorker(t testing.TB) *Worker {
	t.Helper()
	bin, ok := binaries()
	if !ok {
		t.Skip(howto)
	}
	port, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newServer(bin, ramFolder())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	s.user = "postgres"
	s.settings = []string{"listen_addresses=127.0.0.1", fmt.Sprint("port=", port), "shared_preload_libraries=citus", "wal_level=logical", "max_prepared_transactions=200"}
	s.port = port
	if err := s.tool("initdb", "-D", s.data(), "-U", s.user, "-A", "trust", "-N"); err != nil {
		t.Fatal(err)
	}
	if err := s.launch(); err != nil {
		t.Fatal(err)
	}
	if err := s.Exec(`create extension citus`); err != nil {
		t.Fatal(err)
	}
	c.Exec(t, Coordinator, fmt.Sprintf(`select citus_add_node('127.0.0.1', %d)`, port))
	c.added = &Worker{c: c, server: s, port: port}
	return c.added
}

// URL returns the worker's address.
func (w *Worker) URL() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", w.port)
}

// Port returns the worker's port.
func (w *Worker) Port() int { return w.port }

// Remove removes the worker, which must have no shards.
func (w *Worker) Remove(t testing.TB) {
	t.Helper()
	w.c.Exec(t, Coordinator, fmt.Sprintf(`select citus_remove_node('127.0.0.1', %d)`, w.port))
	w.c.added = nil
}
