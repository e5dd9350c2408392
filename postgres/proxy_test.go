package postgres

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/storage"
)

// proxy relays between a store and the server, and interrupts the connection.
type proxy struct {
	url      string
	listener net.Listener
	network  string
	address  string

	mu    sync.Mutex
	conns map[net.Conn]bool
	mode  mode
	done  sync.WaitGroup
}

// mode says what happens to the responses of the server.
type mode int

const (
	passing  mode = iota
	cutting       // the first response breaks the connection, later ones are relayed
	silent        // no response, and the connection stays open
	refusing      // no connection
)

func newProxy(t *testing.T, address string) *proxy {
	t.Helper()
	config, err := pgx.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{conns: map[net.Conn]bool{}}
	p.network, p.address = pgconn.NetworkAddress(config.Host, config.Port)
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Host: p.listener.Addr().String(), Path: "/" + config.Database, RawQuery: "sslmode=disable"}
	p.url = u.String()
	p.done.Go(p.serve)
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.set(refusing)
		p.done.Wait()
	})
	return p
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial(p.network, p.address)
		p.mu.Lock()
		if err != nil || p.mode == refusing {
			_ = client.Close()
			if err == nil {
				_ = server.Close()
			}
			p.mu.Unlock()
			continue
		}
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		p.done.Go(func() { _, _ = io.Copy(server, client); p.drop(client, server) })
		p.done.Go(func() { p.answers(client, server); p.drop(client, server) })
	}
}

// answers relays the server's responses according to the current mode.
func (p *proxy) answers(client, server net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		m := p.mode
		if m == cutting {
			p.mode = passing
		}
		p.mu.Unlock()
		switch m {
		case cutting:
			return
		case silent:
			continue
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
		_ = c.Close()
	}
}

// set changes the mode. Refusing closes the open connections.
func (p *proxy) set(m mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = m
	if m == refusing {
		for c := range p.conns {
			_ = c.Close()
		}
	}
}

// If the connection breaks after the commit but before the response, the
// append is repeated and adds nothing.
func TestAnswerLost(t *testing.T) {
	p := newProxy(t, pgtest.URL(t))
	s := reopen(t, p.url, &Options{Retry: time.Minute})
	key := furl.SessionKey{Tenant: "t", Session: "s"}
	records := talk(t, "x", 10, 300)
	for i := range records {
		p.set(cutting)
		b := storage.Batch{Records: records[i : i+1], Meta: &storage.Meta{Title: "t"}}
		if err := s.Append(t.Context(), key, b); err != nil {
			t.Fatalf("append %d: %v", i+1, err)
		}
	}
	got := read(t, s, key, 0)
	if len(got) != len(records) {
		t.Fatalf("%d records, want %d", len(got), len(records))
	}
	for i := range got {
		if encoded(t, got[i]) != encoded(t, records[i]) {
			t.Errorf("record %d differs", i+1)
		}
	}
	// If another client has appended there meanwhile, it is a conflict.
	p.set(cutting)
	other := talk(t, "other", 10, 300)[9:]
	if err := s.Append(t.Context(), key, storage.Batch{Records: other}); !errors.Is(err, furl.ErrConflict) {
		t.Errorf("another record in its place: %v", err)
	}
	p.set(cutting)
	if err := s.Delete(t.Context(), key); err != nil {
		t.Errorf("delete: %v", err)
	}
	healthy(t, s)
}

// If the server does not come back in time, the error says that the outcome
// is unknown; repeating the append later resolves it.
func TestServerAway(t *testing.T) {
	p := newProxy(t, pgtest.URL(t))
	s := reopen(t, p.url, &Options{Retry: 300 * time.Millisecond})
	key := furl.SessionKey{Session: "s"}
	records := talk(t, "x", 4, 300)
	appendAll(t, s, key, records[:2])
	p.set(refusing)
	b := storage.Batch{Records: records[2:]}
	err := s.Append(t.Context(), key, b)
	if err == nil || errors.Is(err, furl.ErrConflict) || !strings.Contains(err.Error(), "repeating it is safe") {
		t.Fatalf("append without a server: %v", err)
	}
	for _, err := range s.Read(t.Context(), key, 0) {
		if err == nil || errors.Is(err, storage.ErrNoSession) || !strings.Contains(err.Error(), "unreachable") {
			t.Errorf("read without a server: %v", err)
		}
	}
	p.set(passing)
	if err := s.Append(t.Context(), key, b); err != nil {
		t.Fatalf("append again: %v", err)
	}
	if n := len(read(t, s, key, 0)); n != 4 {
		t.Errorf("%d records, want 4", n)
	}
}

// In an outage, the first operation waits for the server to come back. Later
// ones are tried once and briefly, until one succeeds.
func TestOutage(t *testing.T) {
	p := newProxy(t, pgtest.URL(t))
	var log bytes.Buffer
	s := reopen(t, p.url, &Options{Retry: 300 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	key := furl.SessionKey{Session: "s"}
	appendAll(t, s, key, talk(t, "x", 1, 10))
	fails := func(want string) {
		t.Helper()
		for _, err := range s.Read(t.Context(), key, 0) {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("read without a server: %v, want %q", err, want)
			}
		}
	}
	p.set(refusing)
	fails("still unreachable after 300ms: ")
	fails("still unreachable: ")
	p.set(silent)
	fails("did not respond within 2s")
	p.set(refusing) // closes the open connections
	fails("still unreachable: ")
	p.set(passing)
	if n := len(read(t, s, key, 0)); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
	p.set(refusing)
	fails("still unreachable after 300ms: ") // another outage
	for words, want := range map[string]int{"server unreachable; retrying": 2, "server still unreachable": 2, "server reachable again": 1} {
		if n := strings.Count(log.String(), words); n != want {
			t.Errorf("the log contains %d times %q, want %d:\n%s", n, words, want, log.String())
		}
	}
}

// A silently lost server is noticed.
func TestSilence(t *testing.T) {
	p := newProxy(t, pgtest.URL(t))
	s := reopen(t, p.url, &Options{Timeout: 250 * time.Millisecond, Retry: -1})
	key := furl.SessionKey{Session: "s"}
	appendAll(t, s, key, talk(t, "x", 1, 10))
	p.set(silent)
	err := s.Append(t.Context(), key, storage.Batch{Meta: &storage.Meta{}})
	if err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "did not respond") {
		t.Errorf("append to a silent server: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Append(ctx, key, storage.Batch{Meta: &storage.Meta{}}); !errors.Is(err, context.Canceled) {
		t.Errorf("append under a cancelled context: %v", err)
	}
	p.set(refusing) // closes the open connections
	p.set(passing)
	if n := len(read(t, s, key, 0)); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}

// If a row is locked, the append ends with an error in time and without
// effect, and works when the row is unlocked.
func TestLocked(t *testing.T) {
	// The store waits as long again for the server's own error.
	s := open(t, &Options{Timeout: 2 * time.Second, Retry: -1})
	key := furl.SessionKey{Session: "s"}
	records := talk(t, "x", 3, 300)
	appendAll(t, s, key, records[:1])
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from furl.sessions for update`); err != nil {
		t.Fatal(err)
	}
	b := storage.Batch{Records: records[1:]}
	if err := s.Append(t.Context(), key, b); err == nil || !strings.Contains(err.Error(), "statement timeout") {
		t.Errorf("append to a locked session: %v", err)
	}
	appendAll(t, s, furl.SessionKey{Session: "another"}, records[:1])
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(read(t, s, key, 0)); n != 1 {
		t.Errorf("%d records after an append that failed", n)
	}
	appendAll(t, s, key, b.Records)
	healthy(t, s)
}

// A read-only server, such as a standby, can be read, and writes fail with an
// error.
func TestReadOnly(t *testing.T) {
	url := pgtest.URL(t)
	key := furl.SessionKey{Session: "s"}
	records := talk(t, "x", 2, 300)
	appendAll(t, reopen(t, url, nil), key, records[:1])
	s := reopen(t, url+"&default_transaction_read_only=on", &Options{Retry: 100 * time.Millisecond})
	err := s.Append(t.Context(), key, storage.Batch{Records: records[1:]})
	if err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("append to a server that only reads: %v", err)
	}
	if n := len(read(t, s, key, 0)); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}
