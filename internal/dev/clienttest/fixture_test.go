package clienttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/furlhq/furl/sim"
)

// fixture is furl serve, as a process with a store in a file, between a client
// and a sim; and a home and a folder for the client to work in.
type fixture struct {
	sim       *sim.Sim
	home, dir string
	store     string
	url       string // for the client: of the gateway, the same after each start, or of what captures requests
	window    int
	recall    bool

	provider *httptest.Server
	address  string
	mu       sync.Mutex
	gateway  *exec.Cmd
	log      lockedBuffer
}

// options configure a fixture.
type options struct {
	window int  // of the model; tokens
	steps  int  // in each task of the agent
	recall bool // the model remembers in between, with furl's tools
}

func newFixture(t *testing.T, o options) *fixture {
	t.Helper()
	model := func(dir string) sim.Player {
		return &player{dir: dir, agent: sim.NewAgent(&sim.AgentOptions{Steps: o.steps, Thinking: 60})}
	}
	if !o.recall {
		return newFixtureOf(t, o.window, model)
	}
	r := new(rememberer)
	st := fixtureOf(t, o.window, true, func(dir string) sim.Player {
		r.Player = model(dir)
		return r
	})
	t.Cleanup(func() {
		if r.asked.Load() < 4 && !t.Failed() {
			t.Errorf("the model has remembered %d times", r.asked.Load())
		}
	})
	return st
}

// newFixtureOf is a fixture whose model, by the folder that the client works in,
// is somebody else.
func newFixtureOf(t *testing.T, window int, model func(dir string) sim.Player) *fixture {
	t.Helper()
	return fixtureOf(t, window, false, model)
}

func fixtureOf(t *testing.T, window int, recall bool, model func(dir string) sim.Player) *fixture {
	t.Helper()
	st := &fixture{home: t.TempDir(), window: window, recall: recall}
	st.dir = filepath.Join(st.home, "work")
	st.store = filepath.Join(st.home, "furl.db")
	st.sim = sim.New(&sim.Options{Window: window, KeepBodies: true, AnyField: true, Player: model(st.dir)})
	st.provider = httptest.NewServer(st.sim)
	t.Cleanup(st.provider.Close)
	st.write(t, "step.sh", stepScript)
	for n := range pieces {
		st.write(t, fmt.Sprintf("piece-%d.txt", n), stepText(n))
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	st.address = ln.Addr().String()
	st.url = "http://" + st.address
	ln.Close()
	st.start(t)
	st.capture(t)
	t.Cleanup(func() {
		st.stop(t, syscall.SIGKILL)
		if t.Failed() {
			t.Logf("the gateway said:\n%s", st.log.String())
		}
	})
	return st
}

func (st *fixture) write(t testing.TB, name, content string) {
	t.Helper()
	name = filepath.Join(st.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// env is what the client's process and furl's see: nothing of this machine's
// but where its programs are.
func (st *fixture) env(more ...string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + st.home, "TMPDIR=" + st.home, "SHELL=/bin/sh", "TERM=dumb", "CI=1",
		"XDG_CONFIG_HOME=" + filepath.Join(st.home, "config"), "XDG_DATA_HOME=" + filepath.Join(st.home, "data"),
		"XDG_STATE_HOME=" + filepath.Join(st.home, "state"), "XDG_CACHE_HOME=" + filepath.Join(st.home, "cache"),
		"DO_NOT_TRACK=1", "NO_UPDATE_NOTIFIER=1", "GIT_CEILING_DIRECTORIES=" + st.home,
	}, more...)
}

// furl is a furl command on the store of the fixture.
func (st *fixture) furl(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = st.env(asFurl+"=1", "FURL_STORE="+st.store)
	cmd.Dir = st.dir
	return cmd
}

// serveArgs are those that put furl in front of the sim.
func (st *fixture) serveArgs() []string {
	args := []string{"--anthropic", st.provider.URL, "--openai", st.provider.URL, "--gemini", st.provider.URL, "--chatgpt", st.provider.URL + "/v1", "--window", fmt.Sprint(st.window), "--log", "warn"}
	if st.recall {
		args = append(args, "--recall")
	}
	return args
}

func (st *fixture) start(t testing.TB) {
	t.Helper()
	cmd := st.furl(context.Background(), append([]string{"serve", "--listen", st.address}, st.serveArgs()...)...)
	cmd.Stderr, cmd.Stdout = &st.log, &st.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	st.mu.Lock()
	st.gateway = cmd
	st.mu.Unlock()
	for range 1000 {
		resp, err := http.Get(st.url + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode < 300 {
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("the gateway does not start:\n%s", st.log.String())
}

func (st *fixture) stop(t testing.TB, how os.Signal) {
	t.Helper()
	st.mu.Lock()
	cmd := st.gateway
	st.gateway = nil
	st.mu.Unlock()
	if cmd == nil {
		return
	}
	if err := cmd.Process.Signal(how); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil && how == syscall.SIGTERM {
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 130 {
			t.Errorf("the gateway, told to end: %v", err)
		}
	}
}

// losing kills the gateway while the client is at piece n, starts it again on
// the same address and store, and lets the client go on.
func (st *fixture) losing(t testing.TB, n int, run func()) {
	t.Helper()
	st.write(t, "hold", fmt.Sprint(n))
	held, done := filepath.Join(st.dir, "held"), make(chan struct{})
	lost := make(chan bool, 1)
	go func() {
		for {
			if _, err := os.Stat(held); err == nil {
				st.stop(t, syscall.SIGKILL)
				st.start(t)
				lost <- os.Remove(held) == nil
				return
			}
			select {
			case <-done:
				lost <- false
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	run()
	close(done)
	if !<-lost {
		t.Errorf("the client was never at piece %d", n)
	}
}

// run runs a client to its end and gives what it printed.
func (st *fixture) run(t testing.TB, env []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = st.env(env...)
	cmd.Dir = st.dir
	killGroup(cmd)
	cmd.WaitDelay = 5 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v\n%s\n%s", filepath.Base(name), err, out.String(), errs.String())
		t.Errorf("requests: %s", st.requests())
		t.FailNow()
	}
	return out.String() + "\n" + errs.String()
}

// requests lists what reached the sim.
func (st *fixture) requests() string {
	var b bytes.Buffer
	for _, r := range st.sim.Requests() {
		fmt.Fprintf(&b, "%d %s %s %s %s stream=%v messages=%d %s %s %s\n", r.N, r.At.Format("04:05.000"), r.Method, r.Path, r.Model, r.Stream, r.Messages, r.Verdict, r.Stop, r.Error)
	}
	return b.String()
}

// get asks furl's API.
func (st *fixture) get(t testing.TB, path string, query url.Values, to any) {
	t.Helper()
	resp, err := http.Get(st.url + "/furl/v1" + path + "?" + query.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s %v", path, resp.StatusCode, body, err)
	}
	if err := json.Unmarshal(body, to); err != nil {
		t.Fatalf("%s: %v in %s", path, err, body)
	}
}

// lockedBuffer is a buffer that a process writes to while others read it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
