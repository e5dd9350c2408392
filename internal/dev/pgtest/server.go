package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is a PostgreSQL server for one test, which may crash and restart it.
// Its superuser is "furl", without a password.
type Server struct {
	bin, dir string
	user     string   // the superuser
	port     int      // in the name of the socket
	settings []string // further settings
	cmd      *exec.Cmd
	hold     io.WriteCloser // ends the server when it is closed
}

// Start starts a server that the test may crash. It is stopped and its data
// removed at the end of the test. Without the binaries the test is skipped.
func Start(t testing.TB) *Server {
	t.Helper()
	bin, ok := binaries()
	if !ok {
		t.Skip(howto)
	}
	s, err := start(bin, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// binaries finds the folder of the newest installed server.
func binaries() (dir string, ok bool) {
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin"} {
		found, _ := filepath.Glob(pattern)
		slices.SortFunc(found, func(a, b string) int {
			if len(a) != len(b) { // 9.6 is older than 15
				return len(b) - len(a)
			}
			return strings.Compare(b, a)
		})
		for _, dir := range found {
			if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
				return dir, true
			}
		}
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", false
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", false
	}
	return filepath.Dir(path), true
}

// start creates a cluster, in folder or in the folder for temporary files,
// and starts its server.
func start(bin, folder string) (*Server, error) {
	s, err := newServer(bin, folder)
	if err != nil {
		return nil, err
	}
	// An incomplete cluster has no data to lose, so initdb need not sync; the
	// server does.
	if err := s.tool("initdb", "-D", s.data(), "-U", "furl", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"); err != nil {
		os.RemoveAll(s.dir)
		return nil, err
	}
	if err := s.launch(); err != nil {
		os.RemoveAll(s.dir)
		return nil, err
	}
	return s, nil
}

// newServer creates the folder of a server. Its path is short, because the
// path of a socket is limited to about 100 bytes, and it belongs to the user
// that runs the server.
func newServer(bin, folder string) (*Server, error) {
	if folder == "" {
		folder = os.TempDir()
	}
	if len(folder) > 60 {
		folder = "/tmp"
	}
	dir, err := os.MkdirTemp(folder, "furlpg")
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: dir, user: "furl", port: 5432}
	if err := give(dir); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) log() string { return filepath.Join(s.dir, "server.log") }

// URL returns the address of one of the server's databases; "postgres" always
// exists. others are further servers to try, for a client that follows a
// fail-over.
func (s *Server) URL(database string, others ...*Server) string {
	hosts, ports := []string{s.dir}, []string{fmt.Sprint(s.port)}
	for _, o := range others {
		hosts, ports = append(hosts, o.dir), append(ports, "5432")
	}
	q := url.Values{"host": {strings.Join(hosts, ",")}, "port": {strings.Join(ports, ",")}}
	if len(others) > 0 {
		q.Set("target_session_attrs", "read-write")
	}
	u := url.URL{Scheme: "postgres", User: url.User(s.user), Path: "/" + database, RawQuery: q.Encode()}
	return u.String()
}

// Exec runs a statement as the superuser.
func (s *Server) Exec(statement string) error { return run(s.URL("postgres"), statement) }

// tool runs one of PostgreSQL's programs and waits for it.
func (s *Server) tool(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	if err := asServer(cmd); err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// guard runs the server in a shell that reads a line from the test process.
// The end of its input means that the test process has ended, for whatever
// reason: the shell then stops the server and removes its folder.
const guard = `"$0" "$@" >>server.log 2>&1 </dev/null &
pid=$!
read -r how
kill -QUIT $pid 2>/dev/null
wait $pid
if [ "$how" != keep ]; then dir=$PWD; cd / && rm -rf "$dir"; fi`

// launch starts the server and waits until it responds.
func (s *Server) launch() error {
	deadline := time.Now().Add(time.Minute)
	if err := s.begin(); err != nil {
		return err
	}
	for {
		err := run(s.URL("postgres"), "select 1")
		if err == nil {
			return nil
		}
		log, _ := os.ReadFile(s.log())
		if time.Now().After(deadline) {
			s.end("keep")
			return fmt.Errorf("the server did not respond: %w\n%s", err, log)
		}
		// The processes of a killed server keep its shared memory until they
		// have exited.
		if strings.Contains(string(log), "is still in use") {
			s.end("keep")
			if err := s.begin(); err != nil {
				return err
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// begin starts the server, with a new log.
func (s *Server) begin() error {
	args := []string{"-c", guard, filepath.Join(s.bin, "postgres"),
		"-D", s.data(), "-k", s.dir, "-c", "listen_addresses=", "-c", "port=5432", "-c", "max_connections=200", "-c", "max_wal_size=256MB"}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	cmd := exec.Command("/bin/sh", args...)
	// Servers connect to each other, and look for certificates at home.
	cmd.Env = append(os.Environ(), "HOME="+s.dir)
	cmd.Dir = s.dir
	if err := asServer(cmd); err != nil {
		return err
	}
	hold, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(s.log()); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd, s.hold = cmd, hold
	return nil
}

// end stops the server immediately and waits for it.
func (s *Server) end(how string) {
	if s.cmd == nil {
		return
	}
	_, _ = io.WriteString(s.hold, how+"\n")
	_ = s.hold.Close()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// Stop stops the server and removes its data.
func (s *Server) Stop() {
	s.end("remove")
	_ = os.RemoveAll(s.dir) // the server's user may not remove it from the folder that it is in
}

// Crash shuts the server down immediately: data that is not in the
// write-ahead log is lost.
func (s *Server) Crash() { s.end("keep") }

// Kill kills the server's first process with SIGKILL. The others follow.
func (s *Server) Kill() error {
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return err
	}
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil || pid <= 1 {
		return fmt.Errorf("invalid process id in postmaster.pid: %q", text)
	}
	if err := kill(pid); err != nil {
		return err
	}
	s.end("keep")
	return nil
}

// Restart restarts a crashed server.
func (s *Server) Restart() error {
	return s.launch()
}

// Standby creates a second server that follows this one, and makes this one
// wait for it: acknowledged commits are on both. It is stopped at the end of
// the test.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	o, err := newServer(s.bin, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Stop)
	if err := o.tool("pg_basebackup", "-D", o.data(), "-h", s.dir, "-p", "5432", "-U", "furl", "-R", "-X", "stream", "-c", "fast", "--no-sync"); err != nil {
		t.Fatal(err)
	}
	if err := o.launch(); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"alter system set synchronous_standby_names = '*'", "select pg_reload_conf()"} {
		if err := s.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	// Wait until the server treats the standby as synchronous.
	deadline := time.Now().Add(time.Minute)
	for {
		n, err := s.count("select count(*) from pg_stat_replication where sync_state = 'sync'")
		if err == nil && n > 0 {
			return o
		}
		if time.Now().After(deadline) {
			t.Fatalf("the standby is not synchronous: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Promote makes a standby a primary.
func (s *Server) Promote() error {
	if ok, err := s.count("select case when pg_promote(true, 60) then 1 else 0 end"); err != nil || ok == 0 {
		return errors.Join(errors.New("the standby was not promoted"), err)
	}
	return nil
}

// count queries the server for one number.
func (s *Server) count(query string) (n int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, query).Scan(&n)
	return n, err
}
