package gateway_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
)

// talk says something and has it answered.
func talk(t testing.TB, c *sim.Client, words string) *protocol.Reply {
	t.Helper()
	if err := c.Say(words); err != nil {
		t.Fatal(err)
	}
	reply, err := c.Send(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// client is the agent as one of the sim's.
func (a *agent) client(st *fixture) *sim.Client {
	return &sim.Client{URL: st.front.URL, Format: a.format, Model: a.model, Stream: a.stream}
}

// asking is a model that speaks, asks memory for the first words, speaks again
// and calls something of its client's. One of its answers is struck by a fault.
type asking struct {
	way   string // "": as above; "silent": it asks without a word; "mixed": it asks and calls at once
	fault string
	at    int64 // which answer, after a greeting

	n atomic.Int64
}

func (p *asking) Play(_ context.Context, req *protocol.Request) (sim.Reply, error) {
	var greets, leaves, recalled, ran bool
	for i := len(req.Messages) - 1; i >= 0 && req.Messages[i].Role != furl.RoleAssistant; i-- {
		for _, b := range req.Messages[i].Blocks {
			recalled = recalled || strings.Contains(b.Text, "[furl:1.0]")
			ran = ran || b.Kind == furl.KindResult && b.Text == "file.go"
			greets = greets || strings.HasPrefix(b.Text, "hello")
			leaves = leaves || strings.HasPrefix(b.Text, "bye")
		}
	}
	text := func(s string) furl.Block { return furl.Block{Kind: furl.KindText, Text: s} }
	get := furl.Block{Kind: furl.KindCall, Name: exchange.ToolGet, Args: []byte(`{"handle":"furl:1.0"}`)}
	bash := furl.Block{Kind: furl.KindCall, Name: "bash", Args: []byte(`{"command":"echo 'naïve 🙂' \"ü\""}`)}
	var reply sim.Reply
	switch {
	case greets:
		return sim.Text("Hello."), nil
	case leaves:
		return sim.Text("Bye."), nil
	case ran:
		reply.Blocks = []furl.Block{text("Ende gut.")}
	case recalled:
		reply.Blocks = []furl.Block{text("Здравствуйте, it was naïve 🙂."), bash}
	case p.way == "silent":
		reply.Blocks = []furl.Block{get}
	case p.way == "mixed":
		reply.Blocks = []furl.Block{text("Grüße, 日本語 🙂: beides."), get, bash}
	default:
		reply.Blocks = []furl.Block{text("Grüße, 日本語 🙂: let me look."), get}
	}
	if p.n.Add(1) == p.at && p.fault != "" {
		f, err := sim.ParseFault(p.fault)
		if err != nil {
			return reply, err
		}
		reply.Fault = &f
	}
	return reply, nil
}

// kept keeps what came of a client's last answer.
type kept struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (k *kept) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	k.status, k.header = resp.StatusCode, resp.Header
	k.body.Reset()
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(resp.Body, &k.body), resp.Body}
	return resp, nil
}

// struck is a model's answer with a fault, and the client it is for.
type struck struct {
	*asking
	agent   *agent
	fixture *fixture
	kept
	client *sim.Client
}

func strike(t testing.TB, a *agent, way, fault string, at int64) *struck {
	t.Helper()
	s := &struck{asking: &asking{way: way, fault: fault, at: at}, agent: a}
	s.fixture = newFixture(t, &sim.Options{Player: s.asking}, nil, &gateway.Options{Recall: true})
	s.client = a.client(s.fixture)
	s.client.HTTP = &http.Client{Transport: &s.kept, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	talk(t, s.client, "hello 🙂")
	if err := s.client.Say("Look at naïve things."); err != nil {
		t.Fatal(err)
	}
	return s
}

// recallFaults are those that an answer is struck by, a part of them with the
// race detector.
func recallFaults(stream bool) []string {
	faults := []string{"429 retry-after=2", "529 retry-after=1", "500", "redirect=http://127.0.0.1:9/", "overflow", "slow=5ms", "cut=1"}
	if !gateway.RaceDetector {
		faults = append(faults, "503", "400")
	}
	if !stream {
		return faults
	}
	faults = append(faults, "overflow=stream", "ping", "split=utf8", "split=lines", "split=bytes", "args=odd", "args=interleaved")
	for n := 1; n < 22; n++ {
		if !gateway.RaceDetector || n%8 == 2 {
			faults = append(faults, fmt.Sprintf("cut=%d", n+1), fmt.Sprintf("error=%d", n))
		}
	}
	return faults
}

// Whatever goes wrong with an answer of a model that asks memory, in the first
// request or in the one after the call: what only comes otherwise is the same
// reply; what is refused is told as the provider tells it; what breaks off is
// told to have, in the format's own way, after what came. The log holds what
// was delivered, trying again gives the whole reply in the same session, and the
// session goes on. R4
func TestRecallFaults(t *testing.T) {
	for _, tt := range []struct {
		way string
		at  int64
	}{{"", 1}, {"", 2}, {"silent", 1}, {"silent", 2}, {"mixed", 1}} {
		if gateway.RaceDetector && tt.way == "silent" && tt.at == 1 {
			continue
		}
		t.Run(fmt.Sprintf("%s,request=%d", cmp.Or(tt.way, "speaking"), tt.at), func(t *testing.T) {
			eachFormat(t, func(t *testing.T, a *agent) {
				want, err := strike(t, a, tt.way, "", 0).client.Send(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, fault := range recallFaults(a.stream) {
					t.Run(fault, func(t *testing.T) { strike(t, a, tt.way, fault, tt.at).judge(t, want) })
				}
			})
		})
	}
}

// judge sends, and sends again where that failed, and goes on.
func (s *struck) judge(t *testing.T, want *protocol.Reply) {
	reply, err := s.client.Send(t.Context())
	hit := s.fixture.sim.Requests()[s.at] // what the fault struck
	if hit.Fault == "" {
		t.Fatalf("the fault struck nothing: %+v", hit)
	}
	if bytes.Contains(s.body.Bytes(), []byte("furl:1.0")) && (s.agent.stream || json.Valid(s.body.Bytes())) {
		t.Errorf("the client sees a call of furl's:\n%s", s.body.Bytes())
	}
	delivered := s.words()
	switch {
	case hit.Verdict == sim.VerdictOK:
		if err != nil {
			t.Fatal(err)
		}
	case err == nil:
		t.Fatalf("the client takes %q for whole, whose fault is %s", said(reply), s.fault)
	case s.at == 1 && hit.Status >= 300 || s.at == 2 && hit.Status >= 300 && !s.agent.stream:
		// The provider's own words.
		if s.status != hit.Status || !bytes.Equal(s.body.Bytes(), hit.Answer) || s.header.Get("Content-Type") != "application/json" && hit.Status >= 400 {
			t.Errorf("the client is told %d %v %s\nwant %d %s", s.status, s.header, s.body.Bytes(), hit.Status, hit.Answer)
		}
		if _, to, ok := strings.Cut(s.fault, "redirect="); ok && s.header.Get("Location") != to {
			t.Errorf("the client is to go to %q, want %s", s.header.Get("Location"), to)
		}
		if _, after, ok := strings.Cut(s.fault, "retry-after="); ok && s.header.Get("Retry-After") != after {
			t.Errorf("the client is to try again after %q, want %s", s.header.Get("Retry-After"), after)
		}
	default:
		refusal, ok := errors.AsType[*protocol.Refusal](err)
		if s.agent.stream && (!ok || s.status != http.StatusOK) {
			t.Errorf("the stream, status %d, is told to be broken by %v: %s", s.status, err, s.body.Bytes())
		}
		if !s.agent.stream && !errors.Is(err, io.ErrUnexpectedEOF) && (!ok || s.status < 500) {
			t.Errorf("the client is told %d %v (%v): %s", s.status, err, refusal, s.body.Bytes())
		}
	}
	if all := strings.Join(wordsOf(want), ""); !strings.HasPrefix(all, delivered) {
		t.Errorf("the client got the words %q of %q", delivered, all)
	}
	s.recorded(t, delivered)
	if err != nil {
		if reply, err = s.client.Send(t.Context()); err != nil {
			t.Fatalf("at the second try: %v", err)
		}
	}
	if s.way == "silent" && s.at == 2 && hit.Status >= 500 && s.n.Load() != s.at+1 {
		t.Errorf("the model answered %d times: what it had asked memory was asked again", s.n.Load())
	}
	if !slices.Equal(said(reply), said(want)) || reply.Stop != want.Stop {
		t.Errorf("the client has %q and %q, want %q and %q", said(reply), reply.Stop, said(want), want.Stop)
	}
	s.goOn(t, reply)
}

// words are those that the client got.
func (s *struck) words() string {
	reply := new(protocol.Reply)
	if s.agent.stream {
		asm, events := s.agent.codec().NewAssembler(), new(sse.Scanner)
		for e, err := range events.Feed(s.body.Bytes()) {
			if err == nil {
				_ = asm.Feed(e.Type, e.Data) // the client has said what it thinks of it
			}
		}
		reply, _ = asm.Reply()
	} else if s.status == http.StatusOK {
		reply, _ = s.agent.codec().DecodeReply(s.status, s.body.Bytes())
	}
	if reply == nil {
		return ""
	}
	return strings.Join(wordsOf(reply), "")
}

func wordsOf(reply *protocol.Reply) (words []string) {
	for _, m := range reply.Messages {
		for _, b := range m.Blocks {
			if b.Kind == furl.KindText {
				words = append(words, strings.ReplaceAll(b.Text, "\n\n", ""))
			}
		}
	}
	return words
}

// recorded checks that the log holds the words that the client got.
func (s *struck) recorded(t *testing.T, delivered string) {
	t.Helper()
	var log strings.Builder
	for info := range s.fixture.sessions.List(t.Context(), storage.SessionQuery{}) {
		session, err := s.fixture.sessions.Open(t.Context(), info.Session)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range session.Records(0) {
			if m, ok := r.Body.(*furl.Message); ok && m.Role == furl.RoleAssistant {
				for _, b := range m.Blocks {
					log.WriteString(b.Text)
				}
			}
		}
	}
	if !strings.Contains(log.String(), delivered) {
		t.Errorf("the client got %q, and the log holds %q", delivered, log.String())
	}
}

// goOn answers the calls of a reply and says something, and looks at what came
// of the session.
func (s *struck) goOn(t *testing.T, reply *protocol.Reply) {
	t.Helper()
	var results []furl.Block
	for _, m := range reply.Messages {
		for _, b := range m.Blocks {
			if b.Kind == furl.KindCall {
				results = append(results, furl.Block{Kind: furl.KindResult, ID: b.ID, Text: "file.go"})
			}
		}
	}
	if err := s.client.Results(results); err != nil {
		t.Fatal(err)
	}
	end, err := s.client.Send(t.Context())
	if err != nil || !slices.Equal(said(end), []string{"Ende gut."}) {
		t.Fatalf("then the client has %v, %v", end, err)
	}
	talk(t, s.client, "bye")
	for _, r := range s.fixture.sim.Requests() {
		if r.Verdict == sim.VerdictRefused && r.Fault == "" {
			t.Errorf("request %d was refused: %s\n%s", r.N, r.Error, r.Body)
		}
	}
	list := s.fixture.sim.Requests()
	last := list[len(list)-1].Body
	// Who says overflow without a number is taken at their word: nothing more fits.
	if !bytes.Contains(last, []byte("[furl:1.0]")) && !strings.HasPrefix(s.fault, "overflow") {
		t.Errorf("what memory gave is not in the last request: %s", last)
	}
	sess := s.fixture.only(t)
	if problems, err := sess.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the session: %v %v", problems, err)
	}
	var path, history []string
	st := sessiontest.Log(t, sess).State()
	for i := range st.Len() {
		_, m := st.Message(i)
		path = append(path, theirs(m)...)
	}
	req, err := s.agent.codec().DecodeRequest(s.client.Body())
	if err != nil {
		t.Fatal(err)
	}
	for i := range req.Messages {
		history = append(history, theirs(&req.Messages[i])...)
	}
	if got, want := strings.Join(path, ""), strings.Join(history, ""); got != want {
		t.Errorf("the log holds\n%s\nthe client\n%s", got, want)
	}
}

// theirs is what of a message the client knows.
func theirs(m *furl.Message) (parts []string) {
	for i := range m.Blocks {
		if b := &m.Blocks[i]; !b.Own {
			parts = append(parts, strings.ReplaceAll(b.Text, "\n\n", ""), b.Name, b.ID, string(b.Args))
		}
	}
	return parts
}

// A client that leaves while the model recalls is not gone on for, and finds
// the answer in its session when it asks again.
func TestRecallForAClientThatLeft(t *testing.T) {
	eachFormat(t, func(t *testing.T, a *agent) {
		ctx, leave := context.WithCancel(t.Context())
		var n atomic.Int64
		left := make(chan struct{})
		st := newFixture(t, &sim.Options{Player: sim.PlayerFunc(func(_ context.Context, req *protocol.Request) (sim.Reply, error) {
			if n.Add(1) == 1 {
				leave()
				<-left // the gateway may notice at any time
				return sim.Reply{Blocks: []furl.Block{{Kind: furl.KindCall, Name: exchange.ToolGet, Args: []byte(`{"handle":"furl:1.0"}`)}}}, nil
			}
			return sim.Text("It was hello."), nil
		})}, nil, &gateway.Options{Recall: true})
		c := a.client(st)
		if err := c.Say("hello there"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Send(ctx); err == nil {
			t.Fatal("a client that left has a reply")
		}
		close(left)
		st.restart(t, nil, &gateway.Options{Recall: true})
		c.URL = st.front.URL
		reply, err := c.Send(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := said(reply); !slices.Equal(got, []string{"It was hello."}) {
			t.Errorf("the client has %q", got)
		}
		for _, r := range st.sim.Requests() {
			if r.Verdict == sim.VerdictRefused {
				t.Errorf("request %d was refused: %s", r.N, r.Error)
			}
		}
	})
}
