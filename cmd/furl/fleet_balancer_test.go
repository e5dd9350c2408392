package main

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/internal/dev/pgtest"
)

// A fleet as docs/operate/fleet.md describes it: HAProxy with contrib/haproxy.cfg,
// gateways, and PgBouncer in transaction mode in front of PostgreSQL. The gateways are
// replaced one at a time under load. /readyz turns before a gateway stops accepting
// requests, so none is refused, and no conversation branches.
//
// FURL_FLEET_OLD names a furl program of an earlier version, with which the gateways
// start. It may not know gateway.drain_delay, so clients may have to retry.
func TestFleetIsReplaced(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: it starts a database server")
	}
	b := newBalanced(t)
	old := os.Getenv("FURL_FLEET_OLD")
	for i := range b.addresses {
		b.start(t, i, old)
	}
	b.awaitFront(t)
	b.mayFail.Store(old != "")
	replaced := make(chan struct{})
	size := usualLoad()
	wait := b.work(t, size.agents, size.length, func() bool {
		select {
		case <-replaced:
			return false
		default:
			return true
		}
	})
	replace := b.addresses
	if !soaking { // each takes a while
		replace = replace[:2]
	}
	for i := range replace {
		b.await(t, size.between)
		was := b.gateways[i]
		_ = was.cmd.Process.Signal(os.Interrupt)
		if old == "" {
			b.awaitDraining(t, i, was)
		}
		<-was.done
		b.start(t, i, "")
		b.await(t, size.between/4)
	}
	close(replaced)
	wait()
	for _, g := range b.gateways {
		g.stop(t)
	}
	b.check(t, b.direct)
}

// A gateway is killed while it streams replies, and started again. Clients retry: their
// conversations continue on the other gateways, without branches.
func TestFleetSurvivesKills(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: it starts a database server")
	}
	b := newBalanced(t)
	for i := range b.addresses {
		b.start(t, i, "")
	}
	b.awaitFront(t)
	b.mayFail.Store(true)
	usual := 2
	if soaking {
		usual = 20
	}
	rounds := fleetSize(t, "FURL_FLEET_KILLS", usual)
	done := make(chan struct{})
	size := usualLoad()
	wait := b.work(t, size.agents, size.length, func() bool {
		select {
		case <-done:
			return false
		default:
			return true
		}
	})
	for n := range rounds {
		b.await(t, size.between)
		i := n % len(b.addresses)
		b.gateways[i].kill()
		b.await(t, size.between/4)
		b.start(t, i, "")
	}
	close(done)
	wait()
	for _, g := range b.gateways {
		g.stop(t)
	}
	b.check(t, b.direct)
	if out, err := furlCommand(t.TempDir(), "doctor", "--store", b.direct).CombinedOutput(); err != nil {
		t.Errorf("furl doctor: %v\n%s", err, out)
	}
}

// balanced is a fleet behind HAProxy, with PgBouncer before its store.
type balanced struct {
	*fleet
	direct, pooled string   // addresses of the store
	addresses      []string // of the gateways
}

func newBalanced(t *testing.T) *balanced {
	b := &balanced{fleet: newFleet(t), direct: pgtest.URL(t)}
	b.pooled = pgtest.PgBouncer(t, b.direct, 10)
	text, err := os.ReadFile("../../contrib/haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	config := string(text)
	for _, was := range []string{"127.0.0.1:7411", "127.0.0.1:7412", "127.0.0.1:7413"} {
		b.addresses = append(b.addresses, freeAddress(t))
		config = strings.Replace(config, was, b.addresses[len(b.addresses)-1], 1)
	}
	front := freeAddress(t)
	b.url = "http://" + front
	config = strings.Replace(config, "127.0.0.1:7400", front, 1)
	startHAProxy(t, config, front)
	return b
}

// awaitFront waits until HAProxy has noticed that a gateway is ready.
func (b *balanced) awaitFront(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get(b.url + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusNoContent {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("HAProxy has no gateway that is ready")
		}
	}
}

// freeAddress returns an address of this machine on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// startHAProxy starts HAProxy and waits until it listens on the address.
func startHAProxy(t *testing.T, config, address string) {
	t.Helper()
	program := pgtest.Program(t, "haproxy")
	name := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(name, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, "-c", "-f", name).CombinedOutput(); err != nil {
		t.Fatalf("haproxy -c: %v\n%s", err, out)
	}
	var said bytes.Buffer
	cmd := exec.Command(program, "-db", "-f", name)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return
		}
		select {
		case <-ended:
			t.Fatalf("haproxy: %s\n%s", cmd.ProcessState, &said)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// start starts gateway i, as program or as this one.
func (b *balanced) start(t *testing.T, i int, program string) {
	t.Helper()
	home := t.TempDir()
	cmd := furlCommand(home, "serve", "--listen", b.addresses[i], "--store", b.pooled, "--anthropic", b.provider.URL, "--openai", b.provider.URL, "--window", "24k", "--log", "warn")
	if program != "" {
		cmd.Path = program
	} else if err := os.WriteFile(filepath.Join(home, "config.yaml"), []byte("gateway: {drain_delay: 5s}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := start(t, cmd)
	b.mu.Lock()
	defer b.mu.Unlock()
	if i == len(b.gateways) {
		b.gateways = append(b.gateways, g)
	} else {
		b.gateways[i] = g
	}
}

// await waits until the agents have sent so many more requests.
func (b *balanced) await(t *testing.T, n int64) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for until := b.sent.Load() + n; b.sent.Load() < until; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.mu.Lock()
			defer b.mu.Unlock()
			t.Fatalf("the agents no longer send requests: %v", b.failed)
		}
	}
}

// awaitDraining waits until gateway i says that it is not ready. It must still accept
// requests then.
func (b *balanced) awaitDraining(t *testing.T, i int, g *process) {
	t.Helper()
	for {
		resp, err := http.Get("http://" + b.addresses[i] + "/readyz")
		if err != nil {
			t.Errorf("the gateway refuses connections before /readyz has turned: %v\n%s", err, g.log())
			return
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}
