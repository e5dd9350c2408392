// Package pgtest gives tests a PostgreSQL server of their own. It starts one
// from the binaries that are installed, on a Unix socket in a folder that goes
// when the test process ends, however it ends. Where there are none, the tests
// that ask skip and say how to get them.
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

// Env names the variable that names a running server.
const Env = "FURL_POSTGRES"

// howto is what a skipped test says.
const howto = "PostgreSQL is not installed: apt-get install postgresql (or brew install postgresql), or set " + Env + " to the URL of a server"

var shared struct {
	sync.Mutex
	server *Server
	err    error
}

// URL gives the address of a new, empty database, which is dropped when the
// test ends. All tests of one process share a server. Without one the test is
// skipped.
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
		t.Fatalf("create a database for the test: %v", err)
	}
	t.Cleanup(func() {
		if err := run(base, "drop database "+name+" with (force)"); err != nil {
			t.Errorf("drop the test's database: %v", err)
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
		// Its tests are about what the server does, not about how long a
		// disk takes; benchmarks are about that too.
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

// withDatabase puts another database into a URL.
func withDatabase(base, name string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme == "" {
		return "", fmt.Errorf("%s is not a URL such as postgres://me@localhost/postgres", Env)
	}
	u.Path = "/" + name
	return u.String(), nil
}

// run runs one statement on a connection of its own.
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
