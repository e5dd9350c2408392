package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/furlhq/furl/internal/cli"
)

// The test binary is also the command. These tests are about a process, its files, its
// sockets and its exit.
const beFurl = "FURL_TEST_BE_FURL"

func TestMain(m *testing.M) {
	if os.Getenv(beAgent) != "" {
		os.Exit(runAgent())
	}
	if os.Getenv(beFurl) != "" {
		os.Exit(cli.Main(os.Args[1:], nil, os.Stdin, os.Stdout, os.Stderr))
	}
	code := m.Run()
	for _, f := range atExit {
		f()
	}
	os.Exit(code)
}

// atExit is what TestMain calls after all tests.
var atExit []func()

// soaking reports whether tests run with all of their loads (make soak), which take many
// minutes, and not only with the quickest ones.
var soaking = os.Getenv("FURL_SOAK") != ""

// quick is a list, or without soaking only its first n elements.
func quick[E any](list []E, n int) []E {
	if soaking {
		return list
	}
	return list[:n]
}

// furlCommand is the command with an empty environment. It stores its data in home.
func furlCommand(home string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	// With the race detector each command sleeps for a second before it exits, unless GORACE
	// says otherwise.
	cmd.Env = []string{"GORACE=atexit_sleep_ms=0 " + os.Getenv("GORACE"), beFurl + "=1", "HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + home, "FURL_DATA=" + home + "/data", "FURL_CONFIG=" + home + "/config.yaml", "NO_COLOR=1"}
	if err := os.WriteFile(home+"/config.yaml", nil, 0o600); err != nil {
		panic(err)
	}
	return cmd
}

// process is a running furl serve.
type process struct {
	url  string // of the gateway
	cmd  *exec.Cmd
	done chan struct{} // closed when it has exited and its output is read

	mu   sync.Mutex
	said bytes.Buffer
}

// serve starts furl serve on a free port and waits until it listens.
func serve(t testing.TB, home string, args ...string) *process {
	t.Helper()
	return start(t, furlCommand(home, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...))
}

func start(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, done: make(chan struct{})}
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = cmd.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listening := make(chan string, 1)
	go func() {
		defer close(p.done)
		in := bufio.NewReader(out)
		for {
			line, err := in.ReadString('\n')
			p.mu.Lock()
			p.said.WriteString(line)
			p.mu.Unlock()
			if who, url, ok := strings.Cut(strings.TrimSpace(line), " listens on "); ok && strings.HasPrefix(who, "furl") {
				listening <- url
			}
			if err != nil {
				_, _ = io.Copy(io.Discard, in)
				_ = cmd.Wait() // its state has the exit code
				return
			}
		}
	}()
	t.Cleanup(p.kill)
	select {
	case p.url = <-listening:
	case <-p.done:
		t.Fatalf("furl serve ended: %s\n%s", cmd.ProcessState, p.log())
	}
	return p
}

// kill kills the process and waits for its exit.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have exited
	<-p.done
}

// log returns the output of the process so far.
func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// run runs furl and returns its output.
func run(t *testing.T, home, file, in string, args ...string) string {
	t.Helper()
	cmd := furlCommand(home, append(args, "--config", file)...)
	cmd.Stdin = strings.NewReader(in)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("furl %v: %v\n%s", args, err, &errs)
	}
	return strings.TrimSpace(string(out))
}

// recorded starts a gateway with a configuration file in home, to which more settings are
// added, and sends a request through it. It returns the file, the store and the session.
func recorded(t *testing.T, home, more string) (file, store, id string) {
	t.Helper()
	provider, url := newHeld(t)
	provider.release()
	file, store = filepath.Join(home, "furl.yaml"), filepath.Join(home, "furl.db")
	settings(t, file, "gateway: {openai: none, anthropic: "+url+"}\n"+more)
	p := serve(t, home, "--store", store, "--config", file)
	resp := post(t, p.url+"/v1/messages", streamed)
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	if id = resp.Header.Get("X-Furl-Session"); id == "" {
		t.Fatal("the request has no session")
	}
	return file, store, id
}
