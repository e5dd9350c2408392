package workspace

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/storage"
)

// heard is a log that sends its lines to a channel.
type heard struct {
	slog.Handler
	line func(string)
}

func (h heard) Enabled(context.Context, slog.Level) bool { return true }

func (h heard) Handle(_ context.Context, r slog.Record) error {
	h.line(r.Message)
	return nil
}

// line passes connections to a database, until it is cut.
func line(t *testing.T, address string) (place string, cut func()) {
	t.Helper()
	config, err := pgx.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	network, database := pgconn.NetworkAddress(config.Host, config.Port)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var open []net.Conn
	var work sync.WaitGroup
	work.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial(network, database)
			if err != nil {
				t.Error(err)
				client.Close()
				return
			}
			mu.Lock()
			open = append(open, client, server)
			mu.Unlock()
			work.Go(func() { _, _ = io.Copy(server, client); server.Close() }) // it may be cut
			work.Go(func() { _, _ = io.Copy(client, server); client.Close() })
		}
	})
	cut = sync.OnceFunc(func() {
		l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			c.Close()
		}
	})
	t.Cleanup(func() { cut(); work.Wait() })
	u := url.URL{Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Host: l.Addr().String(), Path: "/" + config.Database, RawQuery: "sslmode=disable"}
	return u.String(), cut
}

// While a database is not reachable, the log says so. Requests wait for it.
func TestDatabaseAwayIsLogged(t *testing.T) {
	place, cut := line(t, pgtest.URL(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said := ""
	f := Workspace{Place: place, Log: slog.New(heard{slog.DiscardHandler, func(line string) {
		said = line
		cancel() // enough for the test
	}})}
	store, err := f.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	cut()
	for _, err := range store.Sessions(ctx, "", storage.SessionQuery{}) {
		if err == nil {
			t.Error("there are sessions without a database")
		}
	}
	if !strings.Contains(said, "server unreachable") {
		t.Errorf("the log says %q", said)
	}
}
