package pgtest

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// PgBouncer starts a PgBouncer in transaction mode in front of a database of [URL],
// with so many connections to the server. It returns the address through it. It is
// stopped at the end of the test. Without the program the test is skipped.
func PgBouncer(t testing.TB, database string, connections int) string {
	t.Helper()
	program := Program(t, "pgbouncer")
	config, err := pgx.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newServer(filepath.Dir(program), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	password := ""
	if config.Password != "" {
		password = " password=" + config.Password
	}
	text := fmt.Sprintf(`[databases]
furl = host=%s port=%d dbname=%s user=%s%s
[pgbouncer]
listen_addr =
listen_port = 5432
unix_socket_dir = %s
auth_type = any
pool_mode = transaction
max_client_conn = 1000
default_pool_size = %d
logfile = %s
`, config.Host, config.Port, config.Database, config.User, password, s.dir, connections, s.log())
	name := filepath.Join(s.dir, "pgbouncer.ini")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	// PgBouncer ignores SIGQUIT while it has connections.
	cmd := exec.Command("/bin/sh", "-c", strings.Replace(guard, "kill -QUIT", "kill -TERM", 1), program, name)
	cmd.Dir = s.dir
	if err := asServer(cmd); err != nil {
		t.Fatal(err)
	}
	if s.hold, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.cmd = cmd
	// Before version 1.21, PgBouncer knows no prepared statements.
	q := url.Values{"host": {s.dir}, "port": {"5432"}, "default_query_exec_mode": {"cache_describe"}}
	at := (&url.URL{Scheme: "postgres", User: url.User("furl"), Path: "/furl", RawQuery: q.Encode()}).String()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		err := run(at, "select 1")
		if err == nil {
			return at
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(s.log())
			t.Fatalf("PgBouncer did not respond: %v\n%s", err, log)
		}
	}
}

// Program returns the path of an installed program, also of one in a folder for
// servers. Without it the test is skipped.
func Program(t testing.TB, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin"} {
		if path := filepath.Join(dir, name); isFile(path) {
			return path
		}
	}
	t.Skipf("%s is not installed: apt-get install %s (or brew install %s)", name, name, name)
	return ""
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
