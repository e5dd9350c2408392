package eval

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of a process.
const (
	maxLog = 16 << 20 // bytes of output that are kept
	// grace is the time to end after SIGTERM, before the processes are killed.
	grace = 3 * time.Second
)

// process is a command to run.
type process struct {
	args  []string
	dir   string
	env   []string
	input io.Reader // nil: none
	log   string    // file for the output
	limit time.Duration
}

// ended says how a process ended.
type ended struct {
	exit     int  // exit code, as in shells: 128 plus the signal
	timedOut bool // it was killed at its time limit
	took     time.Duration
}

// run runs the command in a process group of its own, without a terminal. At the time
// limit, or when ctx ends, the group gets SIGTERM and is killed after the grace time.
// What the command leaves in the background is killed too. An error means that it could
// not run, or that ctx has ended.
func (p *process) run(ctx context.Context) (end ended, err error) {
	file, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return end, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	limited, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	c := exec.CommandContext(limited, p.args[0], p.args[1:]...)
	c.Dir, c.Env, c.Stdin = p.dir, p.env, p.input
	out := &limitedLog{w: file}
	c.Stdout, c.Stderr = out, out
	ownSession(c)
	var killed atomic.Bool
	c.Cancel = func() error {
		err := terminate(c.Process)
		killed.Store(err == nil)
		return err
	}
	c.WaitDelay = grace
	start := time.Now()
	if err := c.Start(); err != nil {
		return end, err
	}
	err = c.Wait()
	killGroup(c.Process)
	end.took = time.Since(start)
	if ctx.Err() != nil {
		return end, ctx.Err()
	}
	end.timedOut = killed.Load()
	exit := (*exec.ExitError)(nil)
	switch {
	case errors.As(err, &exit):
		end.exit = exitOf(exit.ProcessState)
	case err == nil || end.timedOut, errors.Is(err, exec.ErrWaitDelay), errors.Is(err, context.DeadlineExceeded):
		end.exit = exitOf(c.ProcessState)
	default: // such as an error of writing the log
		return end, err
	}
	return end, nil
}

// limitedLog writes up to maxLog bytes and drops the rest, so that a command that
// prints without end does not fill the disk. It is safe for concurrent use.
type limitedLog struct {
	mu   sync.Mutex
	w    io.Writer
	size int64
	full bool
}

func (l *limitedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full {
		return len(b), nil
	}
	keep := b
	if left := maxLog - l.size; int64(len(keep)) > left {
		keep, l.full = keep[:left], true
	}
	n, err := l.w.Write(keep)
	l.size += int64(n)
	if err == nil && l.full {
		_, err = fmt.Fprintf(l.w, "\n[output of more than %d MB is not kept]\n", maxLog>>20)
	}
	if err != nil {
		return n, err
	}
	return len(b), nil
}

// tailOf returns the last bytes of a log as valid UTF-8. Control characters stay.
func tailOf(log string, n int64) string {
	f, err := os.Open(log)
	if err != nil {
		return ""
	}
	defer f.Close()
	if fi, err := f.Stat(); err == nil && fi.Size() > n {
		if _, err := f.Seek(-n, io.SeekEnd); err != nil {
			return ""
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, n))
	if err != nil {
		return ""
	}
	return validText(data)
}
