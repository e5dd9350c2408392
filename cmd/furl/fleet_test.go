package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/postgres"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
)

// fleetSize is a number of a fleet test: n, or the environment variable.
func fleetSize(t *testing.T, name string, n int) int {
	text := os.Getenv(name)
	if text == "" {
		return n
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s: invalid number %q", name, text)
	}
	return n
}

// Four gateways share a store. Each request of each conversation goes to the next
// gateway, as soon as the client has the reply. No request is refused; each message is
// recorded once, all on one path; the usage of each reply counts once.
//
// FURL_FLEET_SESSIONS=200 FURL_FLEET_REQUESTS=50000 go test -run TestFleet$ ./cmd/furl
// is the long form (make fleet).
func TestFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: it starts a database server")
	}
	store := pgtest.URL(t)
	f := newFleet(t)
	for range 4 {
		f.gateways = append(f.gateways, f.serve(t, store))
	}
	agents, length := 24, 20
	if raceDetector { // all kinds of clients and refusals still occur
		agents, length = 12, 10
	}
	requests := fleetSize(t, "FURL_FLEET_REQUESTS", agents*length/2)
	f.work(t, fleetSize(t, "FURL_FLEET_SESSIONS", agents), length, func() bool { return f.sent.Load() < int64(requests) })()
	f.checkMetrics(t)
	for _, g := range f.gateways {
		g.stop(t)
	}
	f.check(t, store)
}

// checkMetrics checks that counters of all gateways add up to what the agents have sent. A
// request is counted a moment after its response has ended.
func (f *fleet) checkMetrics(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		all, accepted, busy := int64(0), int64(0), 0
		for _, g := range f.gateways {
			n, ok := requestsOf(t, g.url)
			all, accepted = all+n, accepted+ok
			if n > 0 {
				busy++
			}
		}
		sent := f.sent.Load()
		switch {
		case all == sent && accepted == sent-f.retried.Load() && busy == len(f.gateways):
			return
		case time.Now().After(deadline):
			t.Errorf("%d gateways count %d requests, %d of them accepted; the agents have sent %d, of which %d were refused", busy, all, accepted, sent, f.retried.Load())
			return
		}
	}
}

// requestsOf reads how many requests to models a gateway has counted, and how many of them a
// provider has accepted.
func requestsOf(t *testing.T, url string) (all, accepted int64) {
	t.Helper()
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if !strings.HasPrefix(name, "furl_requests_total{") {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if all += n; strings.Contains(name, `status="2xx"`) {
			accepted += n
		}
	}
	return all, accepted
}

// fleetLoad is what the agents of a fleet do while its gateways are replaced or killed.
type fleetLoad struct {
	agents, length int   // concurrent conversations, and their requests
	between        int64 // requests from one change of the fleet to the next
}

// usualLoad is smaller under the race detector, where a request takes many times as long.
func usualLoad() fleetLoad {
	if raceDetector {
		return fleetLoad{agents: 6, length: 6, between: 12}
	}
	return fleetLoad{agents: 8, length: 12, between: 40}
}

// fleet is gateways on one store, and agents that use all of them.
type fleet struct {
	sim      *sim.Sim
	provider *httptest.Server
	gateways []*process
	next     atomic.Uint64 // the gateway of the next request
	sent     atomic.Int64  // requests
	retried  atomic.Int64  // requests sent again after the provider refused them
	// url, if set, is the address of a load balancer.
	url string
	// mayFail is set while connections may break.
	mayFail atomic.Bool

	mu     sync.Mutex
	failed []string
	ended  []*fleetAgent
}

func newFleet(t *testing.T) *fleet {
	f := new(fleet)
	f.sim = sim.New(&sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Parallel: 2, Lines: 8}), Keep: 1, NoAuth: true})
	f.provider = httptest.NewServer(f.sim)
	t.Cleanup(f.provider.Close)
	return f
}

// work starts so many agents, each with one conversation after the other. The returned
// function waits for their end, which is when more returns false.
func (f *fleet) work(t *testing.T, agents, length int, more func() bool) (wait func()) {
	var work sync.WaitGroup
	for n := range agents {
		work.Go(func() {
			for turn := 0; more() && !f.hasFailed(); turn++ {
				f.converse(t.Context(), n, turn, length)
			}
		})
	}
	return work.Wait
}

// serve starts a gateway with a home of its own.
func (f *fleet) serve(t *testing.T, store string, args ...string) *process {
	t.Helper()
	return serve(t, t.TempDir(), append([]string{"--store", store, "--anthropic", f.provider.URL, "--openai", f.provider.URL, "--window", "24k", "--log", "warn"}, args...)...)
}

// stop sends SIGTERM and waits until the gateway has recorded all replies.
func (p *process) stop(t *testing.T) {
	t.Helper()
	_ = p.cmd.Process.Signal(os.Interrupt)
	<-p.done
	if text := p.log(); !p.cmd.ProcessState.Success() || strings.Contains(text, "level=ERROR") || strings.Contains(text, "panic") {
		t.Errorf("the gateway ended with %s:\n%s", p.cmd.ProcessState, text)
	}
}

func (f *fleet) fail(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.failed) < 20 {
		f.failed = append(f.failed, fmt.Sprintf(format, args...))
	}
}

func (f *fleet) hasFailed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.failed) > 0
}

// fleetAgent is one conversation. It is its client's transport, which chooses the
// gateway.
type fleetAgent struct {
	*fleet
	name     string
	client   sim.Client
	session  string
	fault    string // of the next request
	requests int
	replies  map[string]bool // ids of the replies that the client has
}

// fleetFaults are refusals of the provider. Nothing of such a request is recorded.
var fleetFaults = []string{"500", "503", "429 retry-after=1"}

// converse runs a conversation of so many requests. Some clients send an id; others
// start with the same words as others.
func (f *fleet) converse(ctx context.Context, n, turn, requests int) {
	format := []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses}[n%3]
	a := &fleetAgent{fleet: f, name: fmt.Sprintf("conversation %d.%d", n, turn), replies: make(map[string]bool)}
	a.client = sim.Client{URL: "http://gateway", Format: format, Model: "gpt-5", Stream: n%4 != 3, System: "You work on a repository.", HTTP: &http.Client{Transport: a}, Header: http.Header{"Authorization": {"Bearer k"}}}
	if format == furl.FormatAnthropic {
		a.client.Model = "claude-sonnet-4-5"
	}
	words := "I am " + a.name + "."
	switch n / 3 % 3 {
	case 0:
		a.client.Header.Set("Session-Id", strings.ReplaceAll(a.name, " ", "-"))
	case 1:
		words = "hi"
	}
	if err := a.client.Say(words); err != nil {
		f.fail("%s: %v", a.name, err)
		return
	}
	for a.requests < requests {
		reply, err := a.send(ctx)
		if err == nil {
			err = a.answer(reply)
		}
		if err != nil {
			if ctx.Err() == nil {
				f.fail("%s, request %d: %v", a.name, a.requests, err)
			}
			return
		}
	}
	// The end of the history is in no request yet.
	a.client.History = a.client.History[:a.known()]
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = append(f.ended, a)
}

// known is the length of the history up to the last reply.
func (a *fleetAgent) known() int {
	for n := len(a.client.History); n > 0; n-- {
		if m, err := codecOf(a.client.Format).DecodeMessage(a.client.History[n-1]); err == nil && m.Role == furl.RoleAssistant {
			return n
		}
	}
	return 0
}

// send sends the history until there is a reply.
func (a *fleetAgent) send(ctx context.Context) (*protocol.Reply, error) {
	for try := 0; ; try++ {
		n := a.fleet.sent.Add(1)
		a.requests++
		a.fault = ""
		if try == 0 && n%16 == 0 {
			a.fault = fleetFaults[n/16%3]
		}
		reply, err := a.client.Send(ctx)
		refused, _ := errors.AsType[*protocol.Refusal](err)
		switch {
		case err == nil:
			a.replies[reply.ID] = true
			return reply, nil
		case a.fault != "" && refused != nil:
			a.retried.Add(1)
		case a.mayFail.Load() && try < 50 && ctx.Err() == nil:
			a.retried.Add(1)
			time.Sleep(20 * time.Millisecond) // as clients do
		default:
			return nil, err
		}
	}
}

// answer adds the results of the reply's calls, or the next task.
func (a *fleetAgent) answer(reply *protocol.Reply) error {
	var results []furl.Block
	for _, m := range reply.Messages {
		for _, b := range m.Blocks {
			if b.Kind == furl.KindCall {
				results = append(results, furl.Block{Kind: furl.KindResult, ID: b.ID, Text: strings.Repeat(b.ID+" prints a line\n", 40)})
			}
		}
	}
	if len(results) == 0 {
		return a.client.Say(fmt.Sprintf("Go on, %d.", len(a.client.History)))
	}
	return a.client.Results(results)
}

// RoundTrip implements http.RoundTripper: each request goes to another gateway.
func (a *fleetAgent) RoundTrip(r *http.Request) (*http.Response, error) {
	url := a.url
	if url == "" {
		a.mu.Lock()
		url = a.gateways[a.fleet.next.Add(1)%uint64(len(a.gateways))].url
		a.mu.Unlock()
	}
	r.URL.Host = strings.TrimPrefix(url, "http://")
	if a.fault != "" {
		r.Header.Set(sim.FaultHeader, a.fault)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if note := resp.Header.Get("X-Furl-Note"); note != "" {
		a.fail("%s, request %d: %s", a.name, a.requests, note)
	}
	if id := resp.Header.Get("X-Furl-Session"); resp.StatusCode == http.StatusOK {
		if a.session != "" && id != a.session {
			a.fail("%s: request %d is in session %s, those before in %s", a.name, a.requests, id, a.session)
		}
		a.session = id
	}
	return resp, nil
}

// check compares the store with what the agents have sent and received.
func (f *fleet) check(t *testing.T, url string) {
	t.Helper()
	for _, text := range f.failed {
		t.Error(text)
	}
	store, err := postgres.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	all, err := session.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	var count fleetCount
	sessions := make(map[string]bool)
	for _, a := range f.ended {
		if sessions[a.session] {
			t.Errorf("%s shares session %s with another conversation", a.name, a.session)
		}
		sessions[a.session] = true
		a.check(t, all, &count)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d requests, %d retried, %d conversations, %d messages, %d exchanges, of which %d were recorded after the client's next request", f.sent.Load(), f.retried.Load(), len(sessions), count.messages, count.exchanges, count.late)
	stored := make(map[string]bool)
	for info, err := range all.List(t.Context(), storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		stored[string(info.Session)] = true
	}
	if len(f.failed) == 0 && !f.mayFail.Load() && !maps.Equal(stored, sessions) {
		t.Errorf("the store has %d sessions for %d conversations", len(stored), len(sessions))
	}
	if len(f.ended) == 0 || count.exchanges == 0 {
		t.Error("no conversation has ended")
	}
}

type fleetCount struct{ messages, exchanges, late int }

// check compares a session with the client's history. The session may have further
// replies if connections have failed: those whose end the client has not received.
func (a *fleetAgent) check(t *testing.T, all *session.Sessions, count *fleetCount) {
	s, err := all.Open(t.Context(), furl.SessionID(a.session))
	if err != nil {
		t.Errorf("%s: %v", a.name, err)
		return
	}
	var want furl.Digest
	for _, raw := range a.client.History {
		m, err := codecOf(a.client.Format).DecodeMessage(raw)
		if err != nil {
			t.Fatal(err)
		}
		want = m.Extend(want)
	}
	log := furl.NewLog()
	if err := log.Load(s.Records(0)); err != nil {
		t.Fatal(err)
	}
	st := log.State()
	if got := st.Chain(st.Len()); got != want {
		t.Errorf("%s: the path of session %s has %d messages and differs from the client's history of %d elements", a.name, a.session, st.Len(), len(a.client.History))
	}
	if n := len(s.Branches()); n != 1 {
		t.Errorf("%s: session %s has %d branches", a.name, a.session, n)
	}
	messages, replies := 0, make(map[string]int)
	onPath := make(map[furl.Seq]bool)
	for _, r := range log.Path(log.Head()) {
		onPath[r.Seq] = true
	}
	for _, r := range s.Records(0) {
		switch b := r.Body.(type) {
		case *furl.Message:
			messages++
		case *furl.Exchange:
			if replies[b.ResponseID]++; replies[b.ResponseID] > 1 {
				t.Errorf("%s: session %s has the usage of reply %s twice", a.name, a.session, b.ResponseID)
			}
			if count.exchanges++; !onPath[r.Seq] {
				count.late++
			}
		}
	}
	count.messages += messages
	for id := range a.replies {
		if replies[id] == 0 && !a.mayFail.Load() {
			t.Errorf("%s: session %s lacks the usage of reply %s", a.name, a.session, id)
		}
	}
	if a.mayFail.Load() {
		return
	}
	if messages != st.Len() {
		t.Errorf("%s: session %s has %d messages, %d of them on its path", a.name, a.session, messages, st.Len())
	}
	if n := s.Meta().Ledger.Total().Requests; n != len(a.replies) || len(replies) != n {
		t.Errorf("%s: session %s counts %d requests and has %d exchanges, the client has %d replies", a.name, a.session, n, len(replies), len(a.replies))
	}
}
