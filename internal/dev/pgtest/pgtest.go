// Package pgtest provides tests with a PostgreSQL server. It starts one from
// the installed binaries, on a Unix socket in a folder that is removed when
// the test process ends, however it ends. If PostgreSQL is not installed, the
// tests skip with instructions.
//
// FURL_POSTGRES may name a running server instead: the URL of a role that may
// create databases, such as postgres://me@localhost/postgres.
package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Env is the environment variable with the URL of a running server.
const Env = "FURL_POSTGRES"

// howto is the message of a skipped test.
const howto = "PostgreSQL is not installed: apt-get install postgresql (or brew install postgresql), or set " + Env + " to the URL of a server"

var shared struct {
	sync.Mutex
	server *Server
	err    error
}

// URL returns the address of a new, empty database, which is dropped at the
// end of the test. All tests of one process share a server. Without one the
// test is skipped.
func URL(t testing.TB) string {
	t.Helper()
	base := os.Getenv(Env)
	if base == "" {
		base = sharedServer(t).URL("postgres")
	}
	name := "furl_" + strings.ToLower(rand.Text())[:16]
	at, err := withDatabase(base, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := run(base, "create database "+name); err != nil {
		t.Fatalf("create test database: %v", err)
	}
	t.Cleanup(func() {
		if err := run(base, "drop database "+name+" with (force)"); err != nil {
			t.Errorf("drop test database: %v", err)
		}
	})
	return at
}

// sharedServer starts the server that all tests of the process share.
func sharedServer(t testing.TB) *Server {
	t.Helper()
	bin, ok := binaries()
	if !ok {
		t.Skip(howto)
	}
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		// Tests do not depend on the speed of a disk; benchmarks do.
		folder := ""
		if _, bench := t.(*testing.B); !bench {
			folder = ramFolder()
		}
		shared.server, shared.err = start(bin, folder)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// withDatabase replaces the database in a URL.
func withDatabase(base, name string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme == "" {
		return "", fmt.Errorf("%s is not a URL such as postgres://me@localhost/postgres", Env)
	}
	u.Path = "/" + name
	return u.String(), nil
}

// run runs one statement on its own connection.
func run(at, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, at)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}
