package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// terminal returns the two ends of a pseudo-terminal.
func terminal(t *testing.T) (near, far *os.File) {
	t.Helper()
	near, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this system has no terminals to give (%v): mount devpts at /dev/pts", err)
	}
	t.Cleanup(func() { near.Close() })
	var number, locked int32
	for request, arg := range map[uintptr]*int32{syscall.TIOCSPTLCK: &locked, syscall.TIOCGPTN: &number} {
		if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, near.Fd(), request, uintptr(unsafe.Pointer(arg))); e != 0 {
			t.Fatal(e)
		}
	}
	far, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	return near, far
}

// script prints its signals and exits with 7 after the second one.
const script = `n=0; trap 'n=$((n+1)); echo told $n; [ $n -lt 2 ] || exit 7' INT TERM; echo begun; while :; do sleep 0.02; done`

// The agent gets Ctrl-C from the terminal, once. The gateway runs until the agent exits.
func TestRunLeavesCtrlC(t *testing.T) {
	near, far := terminal(t)
	cmd := furlCommand(t.TempDir(), "run", "--", "sh", "-c", script)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = far, far, far
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	told(t, cmd, near, func() { _, _ = near.Write([]byte{3}) })
}

// Without a terminal, furl passes the signal on to the agent, once: a second signal would
// end furl itself.
func TestRunPassesSignalsOn(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		cmd := furlCommand(t.TempDir(), "run", "--", "sh", "-c", strings.NewReplacer("-lt 2", "-lt 1", "told", "heard").Replace(script))
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		cmd.Stdout, cmd.Stderr = w, w
		told(t, cmd, r, func() { _ = cmd.Process.Signal(s) })
	}
}

// told starts a command that runs the script, sends a signal whenever the script waits
// for one, and checks that the command exits with the script's code.
func told(t *testing.T, cmd *exec.Cmd, said io.Reader, tell func()) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 100)
	go func() {
		for lines := bufio.NewScanner(said); lines.Scan(); {
			heard <- lines.Text()
			if strings.Contains(lines.Text(), "begun") || strings.Contains(lines.Text(), "told 1") {
				tell()
			}
		}
	}()
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 7 {
		t.Errorf("furl run ended with %v, want the command's own code 7", cmd.ProcessState)
		for len(heard) > 0 {
			t.Log(<-heard)
		}
	}
}

// No line of the help is longer than the terminal is wide, which is 80 columns by
// default.
func TestHelpFits(t *testing.T) {
	near, far := terminal(t)
	cmd := furlCommand(t.TempDir(), "serve", "--help")
	cmd.Stdout = far
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	far.Close() // the command has a copy
	seen := false
	for lines := bufio.NewScanner(near); lines.Scan(); {
		line := strings.TrimRight(lines.Text(), "\r")
		seen = seen || strings.Contains(line, "--policy")
		if len(line) > 80 {
			t.Errorf("%d bytes: %s", len(line), line)
		}
	}
	if err := cmd.Wait(); err != nil || !seen {
		t.Errorf("the help of furl serve: %v, its flags seen: %v", err, seen)
	}
}

// An export to a terminal has no control characters. A pipe gets the original bytes.
func TestExportToTerminal(t *testing.T) {
	dir := t.TempDir()
	file := dir + "/session.jsonl"
	const bytes = "red \u009b31m title \u009d0;x\u009c delete \x7f back \u202e" // JSON allows them unescaped
	line := `{"type":"user","sessionId":"s","uuid":"u","timestamp":"2026-01-02T03:04:05Z","message":{"role":"user","content":"` + bytes + `"}}` + "\n"
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	piped, err := furlCommand(dir, "export", file, "--format", "anthropic").Output()
	if err != nil || !strings.Contains(string(piped), bytes) {
		t.Errorf("a pipe got %q, %v", piped, err)
	}
	if dash, err := furlCommand(dir, "export", file, "--format", "anthropic", "--output", "-").Output(); err != nil || string(dash) != string(piped) {
		t.Errorf("with --output - a pipe got %q, %v", dash, err)
	}
	for _, named := range []bool{false, true} {
		near, far := terminal(t)
		cmd := furlCommand(dir, "export", file, "--format", "anthropic")
		if named {
			cmd.Args = append(cmd.Args, "--output", far.Name())
		}
		cmd.Stdout = far
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		far.Close()                  // the command has a copy
		shown, _ := io.ReadAll(near) // ends with an error when the command exits
		if err := cmd.Wait(); err != nil || !strings.Contains(string(shown), "red \uFFFD31m title \uFFFD0;x\uFFFD delete \uFFFD back \uFFFD") {
			t.Errorf("a terminal that is named: %v got %q, %v", named, shown, err)
		}
	}
}

// An export does not replace a named pipe, a link or a device such as /dev/stdout by a
// file.
func TestExportReplacesFilesOnly(t *testing.T) {
	dir := t.TempDir()
	file, pipe, target, link := dir+"/session.jsonl", dir+"/pipe", dir+"/target", dir+"/link"
	line := `{"type":"user","sessionId":"s","uuid":"u","timestamp":"2026-01-02T03:04:05Z","message":{"role":"user","content":"hello"}}` + "\n"
	for _, err := range []error{
		os.WriteFile(file, []byte(line), 0o600), syscall.Mkfifo(pipe, 0o600), os.WriteFile(target, bytes.Repeat([]byte("old "), 1000), 0o600), os.Symlink(target, link),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	export := func(args ...string) error {
		return furlCommand(dir, append([]string{"export", file, "--format", "anthropic"}, args...)...).Run()
	}
	// Opened for reading and writing, the pipe always has a reader.
	r, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := export("--output", pipe); err != nil {
		t.Fatal("a named pipe:", err)
	}
	read := make([]byte, 1000)
	if n, err := r.Read(read); err != nil || !bytes.Contains(read[:n], []byte("hello")) {
		t.Errorf("the pipe got %q, %v", read[:n], err)
	}
	if err := export("--output", link); err == nil {
		t.Error("a link to a file is written to without --force")
	}
	if err := export("--output", link, "--force"); err != nil {
		t.Fatal("a link:", err)
	}
	written, err := os.ReadFile(target)
	if err != nil || !bytes.Contains(written, []byte("hello")) || bytes.Contains(written, []byte("old")) {
		t.Errorf("the link's file holds %.200q, %v", written, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link is %v, %v", info, err)
	}
}
