package sqlite_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// The test binary is also the second process that some tests need.
const (
	childDoes = "FURL_SQLITE_TEST_CHILD"
	childPath = "FURL_SQLITE_TEST_PATH"
)

func TestMain(m *testing.M) {
	if does := os.Getenv(childDoes); does != "" {
		if err := beChild(does, os.Getenv(childPath)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func beChild(does, path string) error {
	switch does {
	case "lock":
		return holdLock(path)
	case "append":
		return appendSecond(path)
	default:
		return writeUntilKilled(path)
	}
}

// holdLock keeps the file locked for writing until its input ends.
func holdLock(path string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	fmt.Println("locked")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// appendSecond appends the second record of the session "s".
func appendSecond(path string) error {
	s, err := sqlite.Open(path, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Append(context.Background(), key("s"), storage.Batch{Records: some(2)[1:]}); err != nil {
		return err
	}
	fmt.Println("appended")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// process is a running child process.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func child(t testing.TB, does, path string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childDoes+"="+does, childPath+"="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		if cmd.ProcessState == nil { // the test has failed
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	return p
}

// line waits for a line of output from the child.
func (p *process) line(t testing.TB) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("no output from the other process: %v", err)
	}
	return line
}

// stop lets the child end by itself.
func (p *process) stop(t testing.TB) {
	t.Helper()
	p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the other process: %v", err)
	}
}
