package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// stand is a client, furl and a provider, with a clock that the client sets.
type stand struct {
	setup
	o        *options
	out      *output
	under    under
	provider *httptest.Server
	front    *httptest.Server // nil with setup.transport
	dir      string
	requests int
	// restartAt is before which request another process takes over the store; 0: none.
	restartAt int
	// pause returns the time that passes before a request. If nil, 15 seconds.
	pause   func(request int) time.Duration
	serving sync.WaitGroup
	ids     []string // of sessions, in the order in which they appear

	mu   sync.Mutex
	now  time.Time
	sent []sent
}

// sent is a request that the provider has received.
type sent struct {
	line string // method and path
	head http.Header
	body []byte
}

func newStand(o *options, out *output, s *setup) (*stand, error) {
	st := &stand{setup: *s, o: o, out: out, now: start}
	var err error
	if st.dir, err = os.MkdirTemp(o.dir, "case-"); err != nil {
		return nil, err
	}
	st.provider = httptest.NewServer(st.tee(newProvider(s, st)))
	if err := st.under.openStore(s, st.dir); err != nil {
		return nil, err
	}
	return st, st.begin()
}

func (st *stand) begin() error {
	if err := st.under.begin(&st.setup, st, st.provider.URL); err != nil {
		return err
	}
	if st.front == nil && !st.setup.transport {
		// The client reads the end of a reply a moment before it is recorded.
		st.front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			st.serving.Add(1)
			defer st.serving.Done()
			defer st.under.wait(context.WithoutCancel(r.Context()))
			st.under.gateway.ServeHTTP(w, r)
		}))
	}
	return nil
}

func (st *stand) close() {
	if st.front != nil {
		st.front.Close()
	}
	st.under.close()
	st.provider.Close()
	_ = st.under.store.Close()
	_ = os.RemoveAll(st.dir)
}

func (st *stand) clock() time.Time {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.now
}

// tee notes what the provider receives.
func (st *stand) tee(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		st.mu.Lock()
		st.sent = append(st.sent, sent{r.Method + " " + r.URL.RequestURI(), r.Header.Clone(), body})
		st.mu.Unlock()
		h.ServeHTTP(w, r)
	})
}

// RoundTrip sends a request of the client, and notes what the provider has received and what the
// client gets.
func (st *stand) RoundTrip(req *http.Request) (*http.Response, error) {
	if st.requests++; st.requests == st.restartAt {
		if err := st.begin(); err != nil {
			return nil, err
		}
	}
	pause := 15 * time.Second
	if st.pause != nil {
		pause = st.pause(st.requests)
	}
	st.mu.Lock()
	st.now = st.now.Add(pause)
	st.mu.Unlock()
	to, by := st.provider, st.under.transport
	if by == nil {
		to, by = st.front, http.DefaultTransport
	}
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host = "http", strings.TrimPrefix(to.URL, "http://")
	resp, err := by.RoundTrip(req)
	if err != nil {
		st.note(nil, []byte(err.Error()), nil)
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	st.serving.Wait()
	st.note(resp, body, err)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// note prints what a request led to. err is that of reading the body.
func (st *stand) note(resp *http.Response, body []byte, err error) {
	if resp != nil {
		st.known(resp.Header.Get("X-Furl-Session"))
	}
	if st.summaries {
		st.settle()
	}
	st.mu.Lock()
	all := st.sent
	st.sent = nil
	st.mu.Unlock()
	for i, s := range all {
		st.put(fmt.Sprintf("sent %d header", i+1), []byte(s.line+"\n"+header(s.head)))
		st.put(fmt.Sprintf("sent %d", i+1), s.body)
	}
	if resp != nil {
		st.put("answer header", fmt.Appendf(nil, "%s %d\n%s%s", resp.Proto, resp.StatusCode, header(resp.Header), header(resp.Trailer)))
	}
	if err != nil {
		body = fmt.Appendf(body, "\n[%v]", err)
	}
	st.put("answer", body)
}

// settle waits until furl works on nothing: summaries are written after the reply.
func (st *stand) settle() {
	buf := make([]byte, 1<<20)
	for range 30_000 {
		if !working.Match(buf[:runtime.Stack(buf, true)]) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// working matches the stack of a goroutine that is in furl, stores apart, or is about to be.
var working = regexp.MustCompile(`(?m)^(github\.com/furlhq/furl/(gateway|session|furlhttp|internal)\b|sync\.\(\*WaitGroup\)\.Go)`)

// known remembers the id of a session, which is random.
func (st *stand) known(id string) {
	if id != "" && !slices.Contains(st.ids, id) {
		st.ids = append(st.ids, id)
	}
}

// numbered replaces the ids of sessions by numbers.
func (st *stand) numbered(text string) string {
	for i, id := range st.ids {
		text = strings.ReplaceAll(text, id, fmt.Sprintf("SESSION-%d", i+1))
	}
	return text
}

// put prints the digest of data without what differs in each run: ids of sessions, and the times
// at which a store was written to.
func (st *stand) put(what string, data []byte) {
	for i, id := range st.ids {
		data = bytes.ReplaceAll(data, []byte(id), fmt.Appendf(nil, "SESSION-%d", i+1))
	}
	for _, s := range []*httptest.Server{st.provider, st.front} {
		if s != nil {
			data = bytes.ReplaceAll(data, []byte(strings.TrimPrefix(s.URL, "http://")), []byte("ADDRESS"))
		}
	}
	data = times.ReplaceAllFunc(data, func(text []byte) []byte {
		if t, err := time.Parse(time.RFC3339Nano, string(text)); err != nil || time.Since(t).Abs() > 24*time.Hour {
			return text
		}
		return []byte("NOW")
	})
	st.out.put(st.requests, what, data)
}

var times = regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)

var durations = regexp.MustCompile(`dur=[0-9.]+`)

// header returns a header as text, without what differs in each run.
func header(h http.Header) string {
	var b strings.Builder
	for name, values := range h {
		if name == "Date" {
			continue
		}
		for _, v := range values {
			fmt.Fprintf(&b, "%s: %s\n", name, durations.ReplaceAllString(v, "dur="))
		}
	}
	lines := strings.SplitAfter(b.String(), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// get reads from furl's API.
func (st *stand) get(path string) []byte {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host, r.RemoteAddr = "127.0.0.1", "127.0.0.1:1"
	w := httptest.NewRecorder()
	st.under.gateway.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		return fmt.Appendf(nil, "%d %s", w.Code, w.Body)
	}
	return w.Body.Bytes()
}

// end prints what the store has: records, views and the other answers of furl's API, and with
// a store in a file what the program says.
func (st *stand) end() error {
	st.requests++
	list := st.get("/furl/v1/sessions")
	var found struct {
		Sessions []struct{ Session string }
	}
	if err := json.Unmarshal(list, &found); err != nil {
		return fmt.Errorf("list sessions: %w: %.300s", err, list)
	}
	slices.Reverse(found.Sessions) // oldest first
	for _, s := range found.Sessions {
		st.known(s.Session)
	}
	st.put("sessions", list)
	for n, s := range found.Sessions {
		at := "/furl/v1/sessions/" + s.Session
		for after := 0; ; {
			page := st.get(fmt.Sprintf("%s/records?after=%d", at, after))
			st.put(fmt.Sprintf("%d records after %d", n+1, after), page)
			var p struct {
				Records []json.RawMessage
				More    bool
			}
			if err := json.Unmarshal(page, &p); err != nil || !p.More || len(p.Records) == 0 {
				break
			}
			after += len(p.Records)
		}
		for _, what := range []string{"", "/view", "/view?request=1", "/view?request=7", "/context", "/reductions", "/branches", "/settings", "/summary", "/search?q=error&in=everywhere", "/blocks/furl:3.0"} {
			st.put(fmt.Sprintf("%d GET %s", n+1, what), st.get(at+what))
		}
	}
	st.put("savings", st.get("/furl/v1/savings"))
	st.put("metrics", metrics(st.get("/metrics")))
	if st.under.path == "" || st.o.furl == "" {
		return nil
	}
	st.under.close()
	st.under.close = func() {}
	if err := st.under.store.Close(); err != nil {
		return err
	}
	for i, s := range found.Sessions {
		for _, args := range [][]string{
			{"show", s.Session, "--json"}, {"show", s.Session, "--view", "--json"}, {"show", s.Session, "--request", "3", "--sent"}, {"export", s.Session},
			{"export", s.Session, "--format", "anthropic", "--view"}, {"export", s.Session, "--format", "markdown"}, {"context", s.Session, "--json"},
		} {
			st.command(fmt.Sprintf("%d furl", i+1), args)
		}
	}
	st.command("furl", []string{"sessions", "--json"})
	st.command("furl", []string{"stats", "--json"})
	return nil
}

// command prints what the program prints.
func (st *stand) command(what string, args []string) {
	cmd := exec.Command(st.o.furl, args...)
	config := filepath.Join(st.dir, "config.yaml")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		st.put("error", []byte(err.Error()))
	}
	cmd.Env = append(os.Environ(), "FURL_DATA="+st.dir, "FURL_STORE="+st.under.path, "FURL_CONFIG="+config, "TZ=UTC", "HOME="+st.dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		fmt.Fprintf(&out, "[%v]", err)
	}
	data := bytes.ReplaceAll(out.Bytes(), []byte(st.dir), []byte("FOLDER"))
	st.put(st.numbered(strings.Join(append([]string{what}, args...), " ")), data)
}

// metrics returns those of furl that do not measure time or memory.
func metrics(text []byte) []byte {
	var out []byte
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("furl_")) && !timed.Match(line) {
			out = append(out, line...)
		}
	}
	return out
}

var timed = regexp.MustCompile(`seconds|bytes|memory|_start_|build_info`)
