package gateway_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"hash/maphash"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/internal/rebuild"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/transcript"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire"
)

// followed is a way to send recordings again: whose client it is, the window of the model,
// and the policy, which if empty is the default.
type followed struct {
	client string // in clients
	stream bool
	window int // 0: the model's own
	policy string
}

// judged are recordings of one agent and the ways in which they are sent again.
type judged struct {
	files []string
	most  int // requests of each
	ways  []followed
}

const (
	// smallWindow is one in which every long recording is reduced many times.
	smallWindow = 48_000
	// replyRoom is what clients ask for as the longest reply.
	replyRoom = 8_000
)

var judgedRecordings = []judged{
	{[]string{"entire-cli/37-*.gz", "entire-cli/6d-*.gz", "entire-cli/98-*.gz", "entire-cli/aa-*.gz", "entire-cli/c1-*.gz", "entire-cli/e9-*.gz", "entire-cli/5e-*.gz"},
		120, []followed{{client: "claude", stream: true}, {client: "claude", window: smallWindow}}},
	{[]string{"agentv/*.codex.jsonl.gz"}, 50, []followed{{client: "codex"}, {client: "codex", stream: true, window: smallWindow}}},
	{[]string{"nimbus/*.gz"}, 73, []followed{{client: "opencode"}, {client: "opencode", stream: true, window: smallWindow}}},
	{[]string{"pi-mono/*.gz"}, 100, []followed{{client: "pi-responses", stream: true}, {client: "pi-responses", window: smallWindow}, {client: "pi-chat", stream: true, window: smallWindow}}},
}

// TestRecordings sends real sessions through the gateway as their clients
// would, and directly; in small windows the gateway is replaced by another
// one over the same store in the middle. No request is refused, the client gets
// what the provider sent, each recording is one session, everything can be had
// back, and what both could send costs no more.
//
// That holds for each recording in the model's own window. In small ones it
// holds for all of an agent's together: a direct session that ends right after
// the first reduction has not paid for it, nor gained by it. The table in
// docs/internals/cost-model.md is what it logs with FURL_WINDOWS=32000,48000,64000,100000,0.
func TestRecordings(t *testing.T) {
	for i, j := range judgedRecordings {
		files := recordings.Files(t, j.files...)
		if gateway.RaceDetector {
			files, j.ways, j.most = files[:1], j.ways[i%2:][:1], 20
		}
		j.ways = waysIn(t, j.ways)
		sums := make([]bills, len(j.ways))
		for _, file := range files {
			rec, err := transcript.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			direct := make(map[furl.Format][]sim.Entry)
			for i, way := range j.ways {
				t.Run(fmt.Sprintf("%s,window=%d,stream=%t/%s", way.client, way.window, way.stream, filepath.Base(file)), func(t *testing.T) {
					s, format := rec.Sessions[0], clientOf(way).format
					if direct[format] == nil {
						direct[format] = followDirectly(t, s, way, j.most)
					}
					if n := longestStep(direct[format]); way.window > 0 && n > way.window {
						t.Skipf("a step of %d tokens fits no window of %d", n, way.window)
					}
					sums[i].join(judge(t, s, way, j.most, direct[format]))
				})
			}
		}
		for i, way := range j.ways {
			if t.Logf("%+v: %v", way, sums[i]); sums[i].both.ratio() > 1 {
				t.Errorf("%+v: what both could send costs %.3f of direct", way, sums[i].both.ratio())
			}
		}
	}
}

// waysIn gives the ways, or the first of them in other windows where
// FURL_WINDOWS lists some.
func waysIn(t *testing.T, ways []followed) []followed {
	list := os.Getenv("FURL_WINDOWS")
	if list == "" {
		return ways
	}
	var out []followed
	for word := range strings.SplitSeq(list, ",") {
		window, err := strconv.Atoi(word)
		if err != nil {
			t.Fatalf("FURL_WINDOWS: %v", err)
		}
		way := ways[0]
		way.window = window
		out = append(out, way)
	}
	return out
}

func clientOf(way followed) *client {
	return &clients[slices.IndexFunc(clients, func(c client) bool { return c.name == way.client })]
}

// judge sends one recording and gives the bills.
func judge(t *testing.T, s *transcript.Session, way followed, most int, direct []sim.Entry) bills {
	st := newJudge(t, s, way, way.window)
	if way.window > 0 {
		st.restartAt = len(direct) / 2
	}
	through := st.follow(t, s, way, most)
	if st.err != nil && (s.Compactions == 0 || !strings.Contains(st.err.Error(), "the recording continues with")) {
		// After a compaction nothing may tell two places of a recording apart.
		t.Errorf("after %d requests: %v", len(through), st.err)
	}
	if len(through) != len(direct) {
		t.Errorf("%d requests reached the provider, %d directly", len(through), len(direct))
	}
	for _, e := range through {
		if e.Verdict != sim.VerdictOK {
			t.Errorf("request %d: %s %d: %s", e.N, e.Verdict, e.Status, e.Error)
		}
	}
	var sum bills
	for i := range min(len(direct), len(through)) {
		sum.all.add(direct[i], through[i])
		if way.window == 0 || promptOf(direct[i]) <= way.window {
			sum.both.add(direct[i], through[i])
		}
		if way.window == 0 || promptOf(direct[i])+replyRoom <= way.window {
			sum.roomy.add(direct[i], through[i])
		}
	}
	sessions, reductions := st.check(t)
	t.Logf("%d requests, %d reductions; %v", len(through), reductions, sum)
	if sessions != 1 {
		t.Errorf("%d sessions, want 1", sessions)
	}
	if way.window == 0 && sum.both.ratio() > 1 {
		t.Errorf("costs %.3f of direct", sum.both.ratio())
	}
	return sum
}

func promptOf(e sim.Entry) int { return e.Usage.Input + e.Usage.CacheRead + e.Usage.CacheWrite }

// bills of a recording: of what both could send, which to these models is a
// prompt that fits the window however short that leaves the reply; of what
// leaves room for the longest reply besides; of all, with any window for the
// direct session.
type bills struct{ both, roomy, all bill }

func (b *bills) join(c bills) {
	b.both.join(c.both)
	b.roomy.join(c.roomy)
	b.all.join(c.all)
}

func (b bills) String() string {
	return fmt.Sprintf("what both could send: %v; with room for %d more: %v; all, with any window for direct: %v", b.both, replyRoom, b.roomy, b.all)
}

// longestStep is the most that a prompt grew by from one request to the next.
func longestStep(direct []sim.Entry) int {
	longest := 0
	for i := 1; i < len(direct); i++ {
		longest = max(longest, promptOf(direct[i])-promptOf(direct[i-1]))
	}
	return longest
}

type bill struct {
	n               int
	direct, through float64
}

func (b *bill) add(d, g sim.Entry) {
	b.n++
	b.direct += d.Cost
	b.through += g.Cost
}

func (b *bill) join(c bill) {
	b.n += c.n
	b.direct += c.direct
	b.through += c.through
}

func (b bill) ratio() float64 {
	if b.direct == 0 {
		return 1
	}
	return b.through / b.direct
}

func (b bill) String() string {
	return fmt.Sprintf("%d requests $%.3f / $%.3f = %.3f", b.n, b.through, b.direct, b.ratio())
}

// followDirectly sends a recording to a provider whose window is as large as
// need be, and gives what each request cost.
func followDirectly(t *testing.T, s *transcript.Session, way followed, most int) []sim.Entry {
	t.Helper()
	st := newJudge(t, s, way, 10_000_000)
	st.front = st.provider
	return st.follow(t, s, way, most)
}

// judgeStand is a provider, the gateway before it, and between them what
// compares the bytes that one sends and the client gets.
type judgeStand struct {
	sim      *sim.Sim
	provider *httptest.Server
	front    *httptest.Server
	store    *inmem.Store
	up       *upstream.Client
	options  session.Options
	sessions *session.Sessions
	client   sim.Client
	err      error // with which the client ended

	requests int
	answers  [][]byte // what the client got
	// restartAt is before which request another gateway takes over; 0: none.
	restartAt int
	t         *testing.T
	seed      maphash.Seed
	spoken    map[uint64]bool // every message that the client had, hashed
	bodies    map[string]bool // of requests, hashed: what the client sent, and what the provider got

	// With definitions, the only check of a request is that the provider got its definitions.
	// defined counts the requests that define something among their messages.
	definitions bool
	defined     int

	// compare, if not nil, replaces the check of the bytes: it gets each request of the client,
	// what the provider got, and its reply.
	compare func(asked []byte, got [][]byte, reply []byte)
	// noSummaries turns off the gateway's own requests for summaries.
	noSummaries bool

	mu       sync.Mutex
	now      time.Time
	got      [][]byte  // what the provider got since the client's newest request
	answered hash.Hash // of what it answered
}

func newJudge(t *testing.T, s *transcript.Session, way followed, window int) *judgeStand {
	t.Helper()
	st := &judgeStand{t: t, seed: maphash.MakeSeed(), spoken: make(map[uint64]bool), bodies: make(map[string]bool), answered: sha256.New(), now: time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)}
	st.sim = sim.New(&sim.Options{Player: sim.NewPlayback(s), Window: window, Now: st.clock})
	st.provider = httptest.NewServer(st.tee(st.sim))
	t.Cleanup(st.provider.Close)
	st.store = inmem.New()
	t.Cleanup(func() { _ = st.store.Close() })
	var err error
	if st.up, err = upstream.New(st.provider.URL, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.up.Close)
	st.options = session.Options{Window: way.window, Policy: way.policy, Now: st.clock}
	st.start(t)
	return st
}

// start begins a gateway over the store, as a restart does.
func (st *judgeStand) start(t *testing.T) {
	t.Helper()
	var err error
	if st.sessions, err = session.New(st.store, &st.options); err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(st.sessions, gateway.Upstreams{Anthropic: st.up, OpenAI: st.up}, &gateway.Options{Now: st.clock, Summaries: gateway.SummaryOptions{Off: st.noSummaries}})
	if err != nil {
		t.Fatal(err)
	}
	if st.front != nil {
		st.front.Close()
	}
	st.front = httptest.NewServer(patient{g})
	t.Cleanup(st.front.Close)
}

func (st *judgeStand) clock() time.Time {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.now
}

// tee notes what a provider sends, before it is sent.
func (st *judgeStand) tee(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		st.mu.Lock()
		st.got = append(st.got, body)
		st.answered.Reset()
		st.bodies["sent "+st.recorded(body)] = true
		st.mu.Unlock()
		h.ServeHTTP(&teeWriter{w, st}, r)
	})
}

type teeWriter struct {
	http.ResponseWriter
	st *judgeStand
}

func (w *teeWriter) Write(p []byte) (int, error) {
	w.st.mu.Lock()
	_, _ = w.st.answered.Write(p) // a hash takes all
	w.st.mu.Unlock()
	return w.ResponseWriter.Write(p)
}

func (w *teeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// RoundTrip sends what the client sends, compares what it gets with what the
// provider sent, and has time pass.
func (st *judgeStand) RoundTrip(req *http.Request) (*http.Response, error) {
	st.requests++
	if st.requests == st.restartAt {
		st.start(st.t)
	}
	st.mu.Lock()
	st.now = st.now.Add(15 * time.Second)
	st.got = nil
	st.mu.Unlock()
	asked, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	whole, err := io.ReadAll(asked)
	if err != nil {
		return nil, err
	}
	st.bodies["received "+st.recorded(whole)] = true
	for _, raw := range st.client.History {
		st.spoken[maphash.Bytes(st.seed, raw)] = true
	}
	req.URL.Host = strings.TrimPrefix(st.front.URL, "http://")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // only read from
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.definitions {
		st.sameDefinitions(whole)
	} else if st.compare != nil {
		st.compare(whole, st.got, body)
	} else if want := st.answered.Sum(nil); !bytes.Equal(want, sum(body)) {
		return nil, fmt.Errorf("request %d: the client gets %d bytes that are not what the provider sent", st.requests, len(body))
	}
	st.answers = append(st.answers, body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

func sum(b []byte) []byte {
	h := sha256.Sum256(b)
	return h[:]
}

// follow sends the recording and gives what the provider noted.
func (st *judgeStand) follow(t *testing.T, s *transcript.Session, way followed, most int) []sim.Entry {
	t.Helper()
	c := clientOf(way)
	st.client = sim.Client{
		URL: st.front.URL, Format: c.format, Model: "claude-sonnet-4-5", Stream: way.stream, System: "You are an agent that works on code.",
		HTTP: &http.Client{Transport: st}, Header: http.Header{"Authorization": {"Bearer judge"}},
	}
	if c.format != furl.FormatAnthropic {
		st.client.Model = "gpt-5"
	} else {
		st.client.Fields = map[string]any{"max_tokens": replyRoom}
	}
	headers := c.of("0f5d7a0e")
	for i := 0; i+1 < len(headers); i += 2 {
		st.client.Header.Set(headers[i], headers[i+1])
	}
	if c.fields != nil {
		if st.client.Fields == nil {
			st.client.Fields = map[string]any{}
		}
		maps.Copy(st.client.Fields, c.fields("0f5d7a0e"))
	}
	st.err = st.client.Follow(t.Context(), s, most)
	return st.sim.Requests()
}

// check holds what was recorded, as it is read from the store anew, against
// what was said, and gives how many sessions and reductions there are.
func (st *judgeStand) check(t *testing.T) (sessions, reductions int) {
	t.Helper()
	own := agent{format: st.client.Format, stream: st.client.Stream}
	for _, answer := range st.answers {
		for _, m := range own.understand(t, answer).Messages {
			st.spoken[maphash.Bytes(st.seed, m.Raw)] = true
		}
	}
	fresh, err := session.New(st.store, &st.options)
	if err != nil {
		t.Fatal(err)
	}
	for info, err := range st.sessions.List(t.Context(), storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		sessions++
		held, err := st.sessions.Open(t.Context(), info.Session)
		if err != nil {
			t.Fatal(err)
		}
		if problems, err := held.Check(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("the session: %v %v", problems[:min(len(problems), 3)], err)
		}
		s, err := fresh.Open(t.Context(), info.Session)
		if err != nil {
			t.Fatal(err)
		}
		st.checkBodies(t, s)
		chains := make(map[furl.Digest]furl.Seq)
		for _, r := range s.Records(0) {
			if red, ok := r.Body.(*furl.Reduction); ok && red.Stage != "client" {
				reductions++
			}
			m, ok := r.Body.(*furl.Message)
			if !ok {
				continue
			}
			if was, again := chains[r.Chain]; again && m.Blocks[0].Kind != furl.KindThinking {
				t.Errorf("record %d is recorded twice, as %d too", was, r.Seq)
			}
			chains[r.Chain] = r.Seq
			whole, err := s.Get(recall.Handle{Msg: r.Seq, Block: -1}.String())
			if err != nil || !st.spoken[maphash.Bytes(st.seed, whole.Raw)] && m.Role != furl.RoleSystem {
				t.Errorf("record %d cannot be had back as it was said: %v", r.Seq, err)
				continue
			}
			for i := range m.Blocks {
				one, err := s.Get(recall.HandleOf(furl.Pos{Msg: r.Seq, Block: i}).String())
				if err != nil || !bytes.Contains(whole.Raw, one.Raw) || one.Text == "" && m.Blocks[i].Text != "" {
					t.Errorf("block %d of record %d cannot be had back: %v", i, r.Seq, err)
				}
			}
		}
	}
	return sessions, reductions
}

// recorded identifies a body as it is recorded: without ids of users.
func (st *judgeStand) recorded(body []byte) string {
	return string(sum(rebuild.Redact(body, wire.For(st.client.Format).List())))
}

// checkBodies rebuilds the bodies of all requests of a session and compares
// them with those that the client sent and the provider got, ids of users apart. It logs what they
// take up in the store.
func (st *judgeStand) checkBodies(t *testing.T, s *session.Session) {
	t.Helper()
	requests, scripts, records, messages := 0, 0, 0, 0
	for _, r := range s.Records(0) {
		if m, ok := r.Body.(*furl.Message); ok {
			messages += len(m.Raw)
		}
		ex, ok := r.Body.(*furl.Exchange)
		if !ok {
			continue
		}
		requests++
		scripts += len(ex.Request.Received) + len(ex.Request.Sent)
		without := r
		bare := *ex
		bare.Request = furl.RequestParts{}
		without.Body = &bare
		records += encodedSize(t, r) - encodedSize(t, without)
		for name, rebuild := range map[string]func(context.Context, furl.Seq) ([]byte, error){"received ": s.ReceivedBody, "sent ": s.SentBody} {
			body, err := rebuild(t.Context(), r.Seq)
			if err != nil || !st.bodies[name+string(sum(body))] {
				t.Errorf("the body of record %d as %sdiffers: %v", r.Seq, name, err)
			}
		}
	}
	contents, err := s.Contents(t.Context(), furl.Seq(len(s.Records(0))))
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, c := range contents {
		size += len(c)
	}
	t.Logf("bodies of %d requests: %d bytes in records, %d of them scripts, %d contents of %d bytes, beside %d bytes of messages", requests, records, scripts, len(contents), size, messages)
}

// encodedSize is how many bytes a record takes up in a store.
func encodedSize(t *testing.T, r furl.Record) int {
	t.Helper()
	head, body, err := record.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return len(head) + len(body)
}
