package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// process is one of those that are measured or needed for it.
type process struct {
	url  string
	furl bool
	dir  string // of a gateway's store
	args []string
	cmd  *exec.Cmd
	hold io.Closer // what it lives as long as
	said *tail
}

// startChild starts this program with another task.
func startChild(ctx context.Context, task, upstream string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, self, "-child", task, "-upstream", upstream)}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.hold, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("start the %s: %w", task, err)
	}
	p.url = strings.TrimSpace(line)
	return p, nil
}

// newGateway names a gateway that is yet to be started, with a store of its own.
func newGateway(dir, name string, args ...string) (*process, error) {
	p := &process{furl: true, dir: filepath.Join(dir, name), args: args}
	return p, os.MkdirAll(p.dir, 0o700)
}

// start runs furl serve until stop, and again after that.
func (p *process) start(ctx context.Context, furl, upstream string) error {
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--anthropic", upstream, "--openai", upstream}, p.args...)
	p.cmd = exec.CommandContext(ctx, furl, args...)
	p.cmd.Env = append(os.Environ(), "FURL_DATA="+p.dir, "FURL_STORE="+p.store(), "FURL_CONFIG="+filepath.Join(p.dir, "config.yaml"))
	if err := os.WriteFile(filepath.Join(p.dir, "config.yaml"), nil, 0o600); err != nil {
		return err
	}
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(os.Interrupt) }
	p.cmd.WaitDelay = 40 * time.Second
	p.said = &tail{first: make(chan string, 1)}
	p.cmd.Stderr = p.said
	if err := p.cmd.Start(); err != nil {
		return err
	}
	select {
	case line := <-p.said.first:
		_, p.url, _ = strings.Cut(line, "furl listens on ")
		return nil
	case <-time.After(30 * time.Second):
		return fmt.Errorf("furl serve does not start: %s", p.said.text())
	}
}

func (p *process) store() string { return filepath.Join(p.dir, "furl.db") }

// stop ends a process.
func (p *process) stop() error {
	if p == nil || p.cmd == nil || p.cmd.Process == nil {
		return nil
	}
	if p.hold != nil {
		_ = p.hold.Close()
	} else if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	err := p.cmd.Wait()
	p.cmd = nil
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && p.furl {
		return fmt.Errorf("furl serve: %w: %s", err, p.said.text())
	}
	return nil
}

// tail keeps the end of what a process says, and gives the line with the
// address.
type tail struct {
	mu    sync.Mutex
	first chan string
	begun bool
	buf   []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if !t.begun {
		if line, _, ok := strings.Cut(string(t.buf), "\n"); ok {
			t.begun = true
			t.first <- line
		}
	}
	if len(t.buf) > 1<<16 {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-1<<12:]...)
	}
	return len(b), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf[max(0, len(t.buf)-2000):])
}
