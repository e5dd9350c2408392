package mcptool

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// process is the process of a server. Its Write and Close are those of its standard
// input; Close ends the process.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	out    *os.File
	stderr tail
	limit  int // of a line, in bytes
	flood  atomic.Bool
	eof    atomic.Bool // it has closed its output
	exited chan struct{}
	once   sync.Once

	endedItself bool // during the handshake; set by dialVersion
}

// Times to wait for the end of a process before the next, harder step.
const (
	stopWait = 2 * time.Second
	pipeWait = time.Second // for children that hold its streams
)

// maxMessage is the size of the largest message of a server, in bytes: a result in
// JSON, with bytes in base64 or escaped.
func maxMessage(s *Server) int { return 2*s.MaxResult + 1<<20 }

func startProcess(s *Server) (*process, error) {
	p := &process{cmd: exec.Command(s.Command, s.Args...), limit: maxMessage(s), exited: make(chan struct{})}
	p.cmd.Env, p.cmd.Dir, p.cmd.Stderr, p.cmd.WaitDelay = environment(s.Env), s.Dir, &p.stderr, pipeWait
	ownGroup(p.cmd)
	// Not StdoutPipe: Wait would discard the output that has not been read.
	out, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.out, p.cmd.Stdout = out, w
	if p.stdin, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	_ = w.Close() // the process has its own
	if err != nil {
		_ = out.Close()
		return nil, err
	}
	go func() { // ends with the process; stop waits for it
		defer close(p.exited)
		_ = p.cmd.Wait() // status describes it
		killGroup(p.cmd) // children that the server has left
	}()
	return p, nil
}

func (p *process) Write(b []byte) (int, error) { return p.stdin.Write(b) }

// Close implements io.Closer for the transport.
func (p *process) Close() error {
	p.stop()
	return nil
}

// stop closes the input of the process and waits for its end. A process that does not
// end is killed, with its children.
func (p *process) stop() {
	p.once.Do(func() {
		_ = p.stdin.Close() // it may be closed
		if p.flood.Load() {
			p.kill() // it waits for a reader of its output, not for input
		} else if p.hasExited(stopWait) {
			// It ended by itself.
		} else if terminate(p.cmd); !p.hasExited(stopWait) {
			p.kill()
		}
		<-p.exited
		_ = p.out.Close() // read only
	})
}

// kill kills the process with its children, unless it has exited: its number may then
// be that of another one.
func (p *process) kill() {
	if !p.hasExited(0) {
		killGroup(p.cmd)
	}
}

// hasExited waits for the end of the process for a time.
func (p *process) hasExited(wait time.Duration) bool {
	select {
	case <-p.exited:
		return true
	case <-time.After(wait):
	}
	select { // both may have been ready
	case <-p.exited:
		return true
	default:
		return false
	}
}

// status describes the end of a process that has exited.
func (p *process) status() string { return p.cmd.ProcessState.String() }

// reason says why furl has closed the connection, "" if it has not.
func (p *process) reason() string {
	if p.flood.Load() {
		return fmt.Sprintf("the server sent a message of more than %d bytes", p.limit)
	}
	return ""
}

// stdout returns the output of the process. A line that is longer than the limit is an
// error, so a server cannot fill the memory.
func (p *process) stdout() io.ReadCloser { return &lines{p: p} }

type lines struct {
	p    *process
	size int // of the line so far
}

func (l *lines) Read(b []byte) (int, error) {
	n, err := l.p.out.Read(b)
	if err == io.EOF {
		l.p.eof.Store(true)
	}
	if i := bytes.LastIndexByte(b[:n], '\n'); i >= 0 {
		l.size = n - i - 1
	} else if l.size += n; l.size > l.p.limit {
		l.p.flood.Store(true)
		return 0, fmt.Errorf("message of more than %d bytes", l.p.limit)
	}
	return n, err
}

func (l *lines) Close() error { return nil } // process.Close closes it

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
}

// Limits of a tail.
const (
	maxTail  = 8 << 10 // bytes
	maxLines = 3
)

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, b[max(0, len(b)-maxTail):]...)
	if n := len(t.data) - maxTail; n > 0 {
		t.data = append(t.data[:0], t.data[n:]...)
	}
	return len(b), nil
}

// last returns the last lines that are not empty.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []string
	for line := range strings.SplitSeq(string(t.data), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return strings.Join(list[max(0, len(list)-maxLines):], "\n")
}

// inherited are the variables of the environment that a server gets. Keys and tokens
// are in others.
var inherited = []string{
	"HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
	// Windows
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS", "OS", "PATHEXT",
	"PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

// environment returns the environment of a server.
func environment(added map[string]string) []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(inherited, strings.ToUpper(name)) {
			env = append(env, kv)
		}
	}
	for name, value := range added {
		env = append(env, name+"="+value) // the last one counts
	}
	return env
}
