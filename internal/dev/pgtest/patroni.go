package pgtest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Patroni is two PostgreSQL servers under Patroni, which makes one of them the
// leader and the other its synchronous standby, and an etcd server, on this machine.
type Patroni struct {
	dir   string
	port  int // the first of 6: etcd's two, then Patroni's, then the servers'
	nodes []string
}

// patroniConfig is the configuration of a node: name, etcd's port, Patroni's port,
// the folder, the server's port, the servers' binaries. 20 is the smallest ttl that
// Patroni accepts.
const patroniConfig = `scope: furl
name: %[1]s
restapi: {listen: "127.0.0.1:%[3]d", connect_address: "127.0.0.1:%[3]d"}
etcd3: {hosts: "127.0.0.1:%[2]d"}
bootstrap:
  dcs: {ttl: 20, loop_wait: 2, retry_timeout: 3, synchronous_mode: true, postgresql: {use_pg_rewind: true}}
  initdb: [data-checksums, no-sync, {encoding: UTF8}, {locale: C}]
  pg_hba:
  - host all all 127.0.0.1/32 trust
  - host replication all 127.0.0.1/32 trust
postgresql:
  listen: "127.0.0.1:%[5]d"
  connect_address: "127.0.0.1:%[5]d"
  data_dir: %[4]s/%[1]s.data
  bin_dir: %[6]s
  pgpass: %[4]s/%[1]s.pgpass
  authentication:
    superuser: {username: postgres, password: postgres}
    replication: {username: replicator, password: replicator}
  parameters: {unix_socket_directories: %[4]s}
`

// patroniScript starts all in folder $1, with etcd at ports $2 and $3, and ends them
// when the test process ends, however it ends.
const patroniScript = `cd "$1"
etcd --data-dir etcd.data --listen-client-urls "http://127.0.0.1:$2" --advertise-client-urls "http://127.0.0.1:$2" \
	--listen-peer-urls "http://127.0.0.1:$3" --initial-advertise-peer-urls "http://127.0.0.1:$3" \
	--initial-cluster "default=http://127.0.0.1:$3" >etcd.log 2>&1 &
echo $! >etcd.pid
for node in node1 node2; do patroni $node.yml >$node.log 2>&1 & echo $! >$node.pid; done
read -r _
kill -9 $(cat *.pid) $(head -qn1 *.data/postmaster.pid)
cd / && sleep 1 && rm -rf "$1"`

// StartPatroni starts the servers and waits for the leader and its standby. It needs
// Debian's packages patroni and etcd-server.
func StartPatroni(t testing.TB) *Patroni {
	t.Helper()
	bin, ok := binaries()
	if !ok {
		t.Skip(howto)
	}
	for _, name := range []string{"patroni", "etcd"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("%v: install the packages patroni and etcd-server", err)
		}
	}
	dir, err := os.MkdirTemp(ramFolder(), "furlpatroni")
	if err != nil {
		t.Fatal(err)
	}
	p := &Patroni{dir: dir, nodes: []string{"node1", "node2"}}
	if p.port, err = freePorts(6); err != nil {
		t.Fatal(err)
	}
	if err := give(dir); err != nil {
		t.Fatal(err)
	}
	for i, node := range p.nodes {
		text := fmt.Sprintf(patroniConfig, node, p.port, p.rest(i), dir, p.port+4+i, bin)
		if err := os.WriteFile(filepath.Join(dir, node+".yml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("/bin/sh", "-c", patroniScript, "sh", dir, strconv.Itoa(p.port), strconv.Itoa(p.port+1))
	if err := asServer(cmd); err != nil {
		t.Fatal(err)
	}
	hold, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, node := range append(p.nodes, "etcd") {
				log, _ := os.ReadFile(filepath.Join(dir, node+".log"))
				t.Logf("%s:\n%s", node, log[max(0, len(log)-3000):])
			}
		}
		_ = hold.Close()
		_ = cmd.Wait()
	})
	p.Ready(t)
	return p
}

func (p *Patroni) rest(node int) int { return p.port + 2 + node }

// is reports whether a node answers that it has a role: "leader", "sync".
func (p *Patroni) is(node int, role string) bool {
	client := http.Client{Timeout: time.Second}
	r, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/%s", p.rest(node), role))
	if err != nil {
		return false
	}
	_ = r.Body.Close()
	return r.StatusCode == http.StatusOK
}

// Ready waits until there is a leader with a synchronous standby, and returns the
// leader. For some seconds after a crash Patroni still reports the state before it,
// in which it would not promote the standby: the state has to last.
func (p *Patroni) Ready(t testing.TB) (leader int) {
	t.Helper()
	since, was := time.Now(), -1
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		is := -1
		for leader := range p.nodes {
			if p.is(leader, "leader") && p.is(1-leader, "sync") {
				is = leader
			}
		}
		if is != was || is < 0 {
			since, was = time.Now(), is
		}
		if time.Since(since) > 7*time.Second {
			return is
		}
	}
	t.Fatal("Patroni: no leader with a synchronous standby after 2 minutes")
	return 0
}

// URL returns the address of both servers, with which a client finds the leader.
func (p *Patroni) URL() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/postgres?target_session_attrs=read-write&sslmode=disable", p.port+4, p.port+5)
}

// KillServer kills the server of a node. Its Patroni starts it again.
func (p *Patroni) KillServer(t testing.TB, node int) {
	t.Helper()
	p.kill(t, p.nodes[node]+".data/postmaster.pid")
}

// Kill kills a node as the loss of its machine would: its Patroni and its server.
func (p *Patroni) Kill(t testing.TB, node int) {
	t.Helper()
	p.kill(t, p.nodes[node]+".pid")
	p.kill(t, p.nodes[node]+".data/postmaster.pid")
}

func (p *Patroni) kill(t testing.TB, file string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err == nil && pid > 1 {
		err = kill(pid)
	}
	if err != nil {
		t.Fatalf("kill the process in %s: %v", file, err)
	}
}

// Start starts Patroni on a node that was killed.
func (p *Patroni) Start(t testing.TB, node int) {
	t.Helper()
	name := p.nodes[node]
	cmd := exec.Command("/bin/sh", "-c", `cd "$1"; patroni $2.yml >>$2.log 2>&1 & echo $! >$2.pid`, "sh", p.dir, name)
	if err := asServer(cmd); err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("start %s: %v\n%s", name, err, out)
	}
}

// Switch asks Patroni to make the standby the leader.
func (p *Patroni) Switch(t testing.TB, leader int) {
	t.Helper()
	body := fmt.Sprintf(`{"leader": %q, "candidate": %q}`, p.nodes[leader], p.nodes[1-leader])
	r, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/switchover", p.rest(leader)), "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if text, _ := io.ReadAll(r.Body); r.StatusCode != http.StatusOK {
		t.Fatalf("switchover: %s: %s", r.Status, text)
	}
}
