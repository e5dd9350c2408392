package launch

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/furlhq/furl/internal/config"
)

// The files of furl run in the data folder.
const (
	runLogName    = "run.log"
	runLogOldName = "run.log.1"
	// offeredName exists once furl run has offered its status line to somebody who
	// has one.
	offeredName = "status-line-offered"
)

// RunFiles are the names of these files.
var RunFiles = []string{runLogName, runLogOldName, offeredName}

// maxRunLog is the size in bytes at which the log of furl run is renamed to
// runLogOldName and begun anew.
const maxRunLog = 4 << 20

// RunLog is the log of furl run: a file, because the agent uses the screen. Several
// runs may write to it. A log that cannot be written is dropped: it must not end the
// agent's work. It is safe for concurrent use.
type RunLog struct {
	Path string

	mu    sync.Mutex
	file  *os.File // nil: lines are dropped
	size  int64
	warns int
}

// OpenRunLog opens the log.
func OpenRunLog() *RunLog {
	l := &RunLog{}
	dir, err := config.DataDir()
	if err != nil || os.MkdirAll(dir, 0o700) != nil {
		return l
	}
	l.Path = filepath.Join(dir, runLogName)
	l.open()
	return l
}

func (l *RunLog) open() {
	l.size = 0
	file, err := os.OpenFile(l.Path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	l.file = file
	if info, err := file.Stat(); err == nil {
		l.size = info.Size()
	}
}

// Write appends a line. It never fails.
func (l *RunLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.Contains(line, []byte(" level=WARN ")) || bytes.Contains(line, []byte(" level=ERROR ")) {
		l.warns++
	}
	if l.file != nil && l.size+int64(len(line)) > maxRunLog {
		_ = l.file.Close()
		l.file = nil
		if os.Rename(l.Path, filepath.Join(filepath.Dir(l.Path), runLogOldName)) == nil {
			l.open() // else the log is full
		}
	}
	if l.file != nil {
		n, _ := fmt.Fprintf(l.file, "run=%d %s", os.Getpid(), line)
		l.size += int64(n)
	}
	return len(line), nil
}

// Warnings returns the number of warnings and errors.
func (l *RunLog) Warnings() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.warns
}

// Close closes the file.
func (l *RunLog) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}

var _ io.Writer = (*RunLog)(nil)
