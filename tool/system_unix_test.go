//go:build unix

package tool

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Pipes, sockets and devices are refused at once.
func TestSpecialFiles(t *testing.T) {
	f := openFolder(t, Options{}, map[string]string{"f": "text"})
	if err := syscall.Mkfifo(filepath.Join(f.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(f.dir) // the path of a socket must be short
	l, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Symlink("pipe", "link"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"pipe", "socket", "link"} {
		refuse(t, f, "read_file", args{"path": path}, "not a regular file")
		refuse(t, f, "search_files", args{"path": path, "pattern": "x"}, "not a regular file")
		refuse(t, f, "list_files", args{"path": path}, "")
		refuse(t, f, "edit_file", args{"path": path, "old": "a", "new": "b"}, "not a regular file")
		refuse(t, f, "write_file", args{"path": path, "text": "b"}, "not a regular file")
	}
	expect(t, f, "search_files", args{"pattern": "text"}, "f:1: text\n")
	expect(t, f, "list_files", nil, "link -> pipe\npipe (not a regular file)\n")
	// A file that becomes a pipe after it was looked at.
	if file, _, err := f.openName("pipe", "pipe"); err == nil {
		file.Close()
		t.Error("opened a pipe")
	}
}

// A command ends with all of its processes: when it is canceled, and those in the
// background when it ends itself. Each process has the pipe open, so
// the end of the pipe says that all have ended.
func TestCommandEndsProcesses(t *testing.T) {
	f := openFolder(t, Options{}, nil)
	for _, how := range []string{"cancel", "end"} {
		t.Run(how, func(t *testing.T) {
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			in := commandInput{Command: fmt.Sprintf("exec 3>%s; echo started; (trap '' TERM HUP INT; echo child >&3; sleep 1000) & sh -c 'echo other >&3; exec sleep 1000' & wait", pipe)}
			if how == "end" {
				in.Command = strings.TrimSuffix(in.Command, " wait")
			}
			done := make(chan Result, 1)
			go func() {
				r, err := f.run(ctx, in)
				if err != nil {
					t.Error(err)
				}
				done <- r
			}()
			r, err := os.Open(pipe)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			lines := bufio.NewReader(r)
			if how == "cancel" {
				for range 2 { // both have the pipe
					if _, err := lines.ReadString('\n'); err != nil {
						t.Fatal(err)
					}
				}
				cancel()
			}
			result := <-done
			if _, err := io.Copy(io.Discard, lines); err != nil { // until all have ended
				t.Fatal(err)
			}
			want := map[string]string{"cancel": "[Interrupted: the command was stopped]", "end": "[Exit code: 0]"}[how]
			if got := result.Text(); got != "started\n"+want || result.Error != (how != "end") {
				t.Errorf("got %q, error %v", got, result.Error)
			}
		})
	}
}

func TestCommandTimeout(t *testing.T) {
	f := openFolder(t, Options{Timeout: time.Millisecond}, nil)
	r, err := f.run(t.Context(), commandInput{Command: "exec sleep 1000"})
	if err != nil || !r.Error || r.Text() != "[Stopped: the command took more than 1ms]" {
		t.Errorf("got %q, %v", r.Text(), err)
	}
}

// killed is the environment variable that makes the test binary change a file and stop
// at a step.
const killed = "FURL_TOOL_TEST_STOP_AT"

func TestMain(m *testing.M) {
	if step := os.Getenv(killed); step != "" {
		changeAndStop(step, os.Getenv("DIR"), os.Getenv("COPIES"))
	}
	os.Exit(m.Run())
}

// changeAndStop changes f. At the step it says so and waits to be killed.
func changeAndStop(step, dir, copies string) {
	f, err := Open(dir, &Options{Copies: copies, Record: func() uint64 { return 7 }})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	f.step = func(name string) {
		if name == step {
			fmt.Println("here")
			time.Sleep(time.Hour)
		}
	}
	_, err = f.writeTool().Run(context.Background(), []byte(`{"path":"f","text":"new"}`))
	fmt.Println("no step", err)
	os.Exit(1)
}

// If the process is killed at any step of a change, the file has its old or its new
// content, the old one can be restored, and no temporary file stays.
func TestKilledChange(t *testing.T) {
	for step, want := range map[string]string{"copied": "old", "written": "old", "renamed": "new"} {
		t.Run(step, func(t *testing.T) {
			dir, copies := t.TempDir(), t.TempDir()
			put(t, filepath.Join(dir, "f"), "old")
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), killed+"="+step, "DIR="+dir, "COPIES="+copies)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil || line != "here\n" {
				t.Errorf("%q, %v", line, err)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			f := reopen(t, dir, Options{Copies: copies, Record: func() uint64 { return 8 }})
			if got := get(t, f, "f"); got != want {
				t.Errorf("the file has %q, want %q", got, want)
			}
			if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
				t.Errorf("files %v, %v", list, err)
			}
			changes, err := f.Changes(7)
			if err != nil {
				t.Fatal(err)
			}
			if want == "old" && len(changes) != 0 || want == "new" && (len(changes) != 1 || changes[0].Others) {
				t.Errorf("changes %+v", changes)
			}
			if skipped, err := f.Restore(changes, false); err != nil || len(skipped) > 0 || get(t, f, "f") != "old" {
				t.Errorf("not restored: %v, %v", skipped, err)
			}
			// The journal continues.
			expect(t, f, "edit_file", args{"path": "f", "old": "old", "new": "newer"}, "Edited")
			if changes, err := f.Changes(8); err != nil || len(changes) != 1 || changes[0].Others {
				t.Errorf("changes %+v, %v", changes, err)
			}
		})
	}
}
