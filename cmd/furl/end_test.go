package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/sqlite"
)

// held is a provider that pauses in the middle of every stream until it is released.
type held struct {
	sim  *sim.Sim
	stop chan struct{} // receives when a stream pauses
	free chan struct{} // closed to continue all streams
}

func newHeld(t testing.TB) (*held, string) {
	h := &held{sim: sim.New(nil), stop: make(chan struct{}, 16), free: make(chan struct{})}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	t.Cleanup(h.release)
	return h, srv.URL
}

func (h *held) release() {
	select {
	case <-h.free:
	default:
		close(h.free)
	}
}

// messages counts the requests to a model. furl also asks about the model, at a time of its
// own.
func (h *held) messages() (n int) {
	for _, r := range h.sim.Requests() {
		if r.Method == http.MethodPost {
			n++
		}
	}
	return n
}

func (h *held) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.sim.ServeHTTP(&heldWriter{ResponseWriter: w, held: h}, r)
}

type heldWriter struct {
	http.ResponseWriter
	held  *held
	wrote int
}

func (w *heldWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *heldWriter) Write(p []byte) (int, error) {
	if w.wrote++; w.wrote == 4 {
		w.held.stop <- struct{}{}
		<-w.held.free
	}
	return w.ResponseWriter.Write(p)
}

const streamed = `{"model":"claude-sonnet-4-5","max_tokens":200,"stream":true,"messages":[{"role":"user","content":"Tell me of furled sails."}]}`

func post(t testing.TB, url, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "k")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// tell sends a signal and waits until the gateway accepts no more connections.
func (p *process) tell(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	for {
		c, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			return
		}
		c.Close()
		time.Sleep(time.Millisecond)
	}
}

// After a signal, the gateway waits for streams to end, records them, and exits with
// code 0. Readers of events do not delay it.
func TestEnd(t *testing.T) {
	provider, url := newHeld(t)
	home := t.TempDir()
	p := serve(t, home, "--store", home+"/furl.db", "--anthropic", url, "--openai", "none")
	resp := post(t, p.url+"/v1/messages", streamed)
	<-provider.stop
	events, err := http.Get(p.url + "/furl/v1/sessions/" + resp.Header.Get("X-Furl-Session") + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()

	p.tell(t, syscall.SIGTERM)
	select {
	case <-p.done:
		t.Fatalf("it did not wait for the stream: %s\n%s", p.cmd.ProcessState, p.log())
	default:
	}
	if _, err := io.ReadAll(events.Body); err != nil {
		t.Errorf("the events were cut off: %v", err)
	}
	provider.release()
	body, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Contains(body, []byte("message_stop")) {
		t.Errorf("the stream ended early: %v\n%s", err, body)
	}
	if <-p.done; p.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("it ended with %s\n%s", p.cmd.ProcessState, p.log())
	}

	store, err := sqlite.Open(home+"/furl.db", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	sessions, err := session.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sessions.Find(t.Context(), session.Latest)
	if err != nil {
		t.Fatal(err)
	}
	path, err := pathOf(s)
	if err != nil || len(path) != 2 || path[1].Role != furl.RoleAssistant || !bytes.Contains(body, []byte(strings.Fields(path[1].Blocks[0].Text)[0])) {
		t.Errorf("the session holds %v, %v", path, err)
	}
}

// After a second signal, it does not wait.
func TestEndAtOnce(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		provider, url := newHeld(t)
		home := t.TempDir()
		p := serve(t, home, "--store", home+"/furl.db", "--anthropic", url, "--openai", "none")
		post(t, p.url+"/v1/messages", streamed)
		<-provider.stop
		p.tell(t, s)
		if err := p.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		<-p.done // the provider still pauses the stream
		if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != s {
			t.Errorf("it ended with %s", p.cmd.ProcessState)
		}
	}
}
