package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// clock is a time that only the test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func (p *gated) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked)
}

// until takes steps, waiting for each summary, until so many were asked for.
func (st *fixture) until(t testing.TB, a *agent, p *gated, asked int) {
	t.Helper()
	for p.count() < asked {
		if !a.step(t, st, few) {
			t.Fatalf("the agent ended, %d summaries were asked for, want %d", p.count(), asked)
		}
		st.gateway.WaitSummaries()
	}
}

// A summary of no use changes nothing, and is not asked for again on the next
// request.
func TestSummaryOfNoUse(t *testing.T) {
	fault := func(text string) sim.Reply {
		f, err := sim.ParseFault(text)
		if err != nil {
			t.Fatal(err)
		}
		r := sim.Text("a summary that does not arrive")
		r.Fault = &f
		return r
	}
	call := furl.Block{Kind: furl.KindCall, Name: "bash", Args: []byte(`{"command":"ls"}`)}
	text := furl.Block{Kind: furl.KindText, Text: "Let me look once more."}
	cut := sim.Text("They looked at")
	cut.Stop = "max_tokens"
	for _, tc := range []struct {
		name  string
		reply sim.Reply
		rest  time.Duration
		paid  bool
	}{
		{"C3 no text", sim.Reply{Blocks: []furl.Block{{Kind: furl.KindText, Text: " "}}}, 2 * time.Minute, true},
		{"C10 a call", sim.Reply{Blocks: []furl.Block{call}}, 2 * time.Minute, true},
		{"C10 a call beside words", sim.Reply{Blocks: []furl.Block{text, call}}, 2 * time.Minute, true},
		{"C10 cut off at a limit", cut, 2 * time.Minute, true},
		{"C10 cut off on its way", fault("cut=2"), 2 * time.Minute, true},
		{"C10 an error within", fault("error=2"), 2 * time.Minute, true},
		{"C10 no smaller", sim.Text(strings.Repeat("and then they looked at it again ", 2000)), 2 * time.Minute, true},
		{"C10 refused", fault("400"), 2 * time.Minute, false},
		{"C10 too much to do", fault("529 retry-after=600"), 10 * time.Minute, false},
		{"C10 too many requests", fault("429"), 2 * time.Minute, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := newClock()
			p := &gated{reply: func(*protocol.Request) (sim.Reply, error) { return tc.reply, nil }}
			st := compacting(t, p, &gateway.Options{Now: c.now})
			a := newAgent(furl.FormatAnthropic, true)
			st.until(t, a, p, 1)
			c.pass(tc.rest - time.Second)
			for range 12 { // beyond the size at which the policy acts, and on
				a.step(t, st, few)
				st.gateway.WaitSummaries()
			}
			if n := p.count(); n != 1 {
				t.Errorf("it was asked for %d times", n)
			}
			list := st.only(t).Reductions()
			for _, r := range list {
				if r.Stage == "compact" {
					t.Errorf("it was shown: %+v", r)
				}
			}
			if len(list) == 0 {
				t.Error("nothing was hidden otherwise")
			}
			if wasted := metricsOf(t, st)["furl_summaries_wasted_dollars_total"]; wasted > 0 != tc.paid {
				t.Errorf("$%f were wasted", wasted)
			}
			c.pass(2 * time.Second)
			st.until(t, a, p, 2)
		})
	}
}

// Another model gets a short request of its own, with no tools and nothing but
// what is to be summarized.
func TestSummaryByAnotherModel(t *testing.T) {
	for _, format := range []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses} {
		t.Run("C10 a cheaper model "+string(format), func(t *testing.T) {
			cheaper := map[furl.Format]string{furl.FormatAnthropic: "claude-haiku-4-5"}[format]
			if cheaper == "" {
				cheaper = "gpt-5-mini"
			}
			p := &gated{}
			st := compacting(t, p, &gateway.Options{Summaries: gateway.SummaryOptions{Model: cheaper}})
			a := newAgent(format, true)
			got := st.shown(t, a)
			if !strings.HasPrefix(got.Model, cheaper) || got.Cost.Own <= 0 {
				t.Errorf("recorded %+v", got)
			}
			st.gateway.WaitSummaries()
			found := false
			for _, r := range st.sim.Requests() {
				if r.Model != cheaper {
					continue
				}
				found = true
				body := string(r.Body)
				if strings.Contains(body, `"tools"`) || !strings.Contains(body, "about to outgrow") || !strings.Contains(body, `[call]\nbash {`) || !strings.Contains(body, `[user]\nLook at everything there is.`) {
					t.Errorf("it was asked %.500s", body)
				}
			}
			if !found {
				t.Error("it was not asked")
			}
			st.allOK(t)
		})
	}
}

// Where the prompt is cached, the client's own request is sent once more with
// the words that ask after it, and read from the cache.
func TestSummaryFromTheCache(t *testing.T) {
	p := &gated{}
	st := compacting(t, p, nil)
	a := newAgent(furl.FormatAnthropic, false)
	a.extra = func(body []byte) []byte {
		return append([]byte(`{"cache_control":{"type":"ephemeral"},"stop_sequences":["never"],`), body[1:]...)
	}
	got := st.shown(t, a)
	st.gateway.WaitSummaries()
	red := st.only(t).Records(got.Seq - 1)[0].Body.(*furl.Reduction)
	if u := red.Summary.Usage; u.CacheRead*10 < u.Prompt()*8 {
		t.Errorf("C10 only %d of %d tokens came from the cache", u.CacheRead, u.Prompt())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	req := p.asked[0]
	var before []byte // the request of the client that it follows
	for _, r := range st.sim.Requests() {
		if !bytes.Contains(r.Body, []byte("about to outgrow")) {
			before = r.Body
		} else {
			break
		}
	}
	var theirs, own struct {
		Tools, Messages []json.RawMessage
		Stop            []string `json:"stop_sequences"`
	}
	if err := json.Unmarshal(before, &theirs); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(req.Body, &own); err != nil {
		t.Fatal(err)
	}
	n := len(theirs.Messages)
	if len(own.Messages) != n+1 || fmt.Sprintf("%s", own.Messages[:n]) != fmt.Sprintf("%s", theirs.Messages) || fmt.Sprintf("%s", own.Tools) != fmt.Sprintf("%s", theirs.Tools) || own.Stop != nil {
		t.Errorf("C3 it was asked\n%.500s\nbehind\n%.500s", req.Body, before)
	}
	st.allOK(t)
}

// When the provider's cache is cold anyway, a summary takes its place at once.
func TestSummaryWhenTheCacheIsCold(t *testing.T) {
	c := newClock()
	p := &gated{}
	st := compacting(t, p, nil, func(o *session.Options) { o.Now = c.now })
	a := newAgent(furl.FormatAnthropic, true)
	st.until(t, a, p, 1)
	if n := len(st.only(t).Reductions()); n != 0 {
		t.Fatalf("C10 %d reductions while the cache is warm", n)
	}
	c.pass(time.Hour)
	a.step(t, st, few)
	if list := st.only(t).Reductions(); len(list) != 1 || list[0].Stage != "compact" {
		t.Errorf("the reductions are %+v", list)
	}
	st.allOK(t)
}

// The credential is in no log and no store.
func TestSummaryKeepsNoCredential(t *testing.T) {
	var log bytes.Buffer
	var mu sync.Mutex
	logger := slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(b)
	}), &slog.HandlerOptions{Level: slog.LevelDebug}))
	fail := true
	p := &gated{reply: func(*protocol.Request) (sim.Reply, error) {
		if fail {
			return sim.Reply{}, &protocol.Refusal{Status: 401, Type: "authentication_error", Message: "invalid key planted-secret-key"}
		}
		return sim.Text("They looked at everything."), nil
	}}
	c := newClock()
	st := compacting(t, p, &gateway.Options{Logger: logger, Now: c.now}, func(o *session.Options) { o.Logger = logger })
	a := newAgent(furl.FormatChat, true)
	st.until(t, a, p, 1)
	fail = false
	c.pass(time.Hour)
	st.shown(t, a)
	st.gateway.WaitSummaries()
	mu.Lock()
	defer mu.Unlock()
	if text := log.String(); strings.Contains(text, "planted-secret") || !strings.Contains(text, "summary ready") || !strings.Contains(text, "summary failed") || strings.Contains(text, "looked at everything") {
		t.Errorf("the log:\n%s", text)
	}
	for _, r := range st.only(t).Records(0) {
		if b := mustJSON(r.Body); bytes.Contains(b, []byte("planted-secret")) {
			t.Errorf("record %d: %s", r.Seq, b)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// A gateway that ends gives up what is being written, and asks for nothing any
// more from when it drains.
func TestSummariesEnd(t *testing.T) {
	p := &gated{gate: make(chan struct{})}
	st := compacting(t, p, nil)
	a := newAgent(furl.FormatResponses, true)
	st.due(t, a)
	st.gateway.Close() // the gate is shut
	if st.sessions.Stats().ReadySummaries > 0 || st.gateway.Summarizing() != 0 {
		t.Error("something is left of it")
	}
	for range 8 {
		a.step(t, st, few)
		if st.gateway.Summarizing() != 0 {
			t.Fatal("another one is asked for")
		}
	}
	q := &gated{}
	st = compacting(t, q, nil)
	st.gateway.Drain()
	a = newAgent(furl.FormatAnthropic, false)
	for range 20 {
		a.step(t, st, few)
	}
	st.gateway.WaitSummaries()
	if q.count() != 0 {
		t.Error("one was asked for while the gateway drains")
	}
}

// A session that is deleted while its summary is written is nothing special.
func TestSummaryOfDeletedSession(t *testing.T) {
	p := &gated{gate: make(chan struct{})}
	st := compacting(t, p, nil)
	a := newAgent(furl.FormatChat, false)
	st.due(t, a)
	if err := st.sessions.Delete(t.Context(), st.only(t).ID()); err != nil {
		t.Fatal(err)
	}
	close(p.gate)
	st.gateway.WaitSummaries()
	if n := len(st.list(t)); n != 0 {
		t.Errorf("%d sessions are back", n)
	}
	for range 3 {
		a.step(t, st, few)
	}
	st.gateway.WaitSummaries()
	st.allOK(t)
	if s := st.only(t); s.Meta().Title == "" {
		t.Error("the client's history was not taken in anew")
	}
}

// What a gateway forgets when it starts again is written anew.
func TestSummaryAfterRestart(t *testing.T) {
	p := &gated{}
	st := compacting(t, p, nil)
	a := newAgent(furl.FormatAnthropic, true)
	st.until(t, a, p, 1)
	if st.sessions.Stats().ReadySummaries != 1 {
		t.Fatal("no summary is ready")
	}
	st.sessions.Drop() // as if it had ended
	if st.sessions.Stats().ReadySummaries > 0 {
		t.Fatal("it was remembered")
	}
	st.until(t, a, p, 2)
	st.shown(t, a)
	st.allOK(t)
}

// C10: the client compacts by itself while a summary is written. What that
// would represent is not on the path any more, so it is not shown there.
func TestSummaryAndClientsOwn(t *testing.T) {
	for _, when := range []string{"while it is written", "while it waits"} {
		t.Run("C10 "+when, func(t *testing.T) {
			p := &gated{gate: make(chan struct{})}
			st := compacting(t, p, nil)
			a := newAgent(furl.FormatAnthropic, false)
			hint := []string{"X-Session-Id", "one"}
			st.due(t, a, hint...)
			if when == "while it waits" {
				close(p.gate)
				st.gateway.WaitSummaries()
			}
			a.history = nil
			a.say("Go on from this summary: all is well.")
			a.step(t, st, few, hint...)
			if when != "while it waits" {
				close(p.gate)
				st.gateway.WaitSummaries()
			}
			p.reply = func(*protocol.Request) (sim.Reply, error) { return sim.Text("The second summary."), nil }
			for len(st.only(t).Reductions()) == 0 {
				if !a.step(t, st, few, hint...) {
					t.Fatal("nothing was hidden")
				}
				st.gateway.WaitSummaries()
			}
			if got := st.only(t).Reductions()[0]; got.Summary != "The second summary." || got.Number != 1 {
				t.Errorf("shown %+v", got)
			}
			st.allOK(t)
		})
	}
}

// So many are written at the same time, and no more.
func TestSummariesAtOnce(t *testing.T) {
	p := &gated{gate: make(chan struct{})}
	st := compacting(t, p, &gateway.Options{Summaries: gateway.SummaryOptions{AtOnce: 1}})
	a, b := newAgent(furl.FormatChat, false), newAgent(furl.FormatResponses, false)
	b.history = nil
	b.say("Something else.")
	st.due(t, a)
	for range 12 {
		b.step(t, st, few)
		if n := st.gateway.Summarizing(); n != 1 {
			t.Fatalf("%d are being written", n)
		}
	}
	close(p.gate)
	st.gateway.WaitSummaries()
	st.allOK(t)
}

func switchName(on *bool) string {
	switch {
	case on == nil:
		return "default"
	case *on:
		return "on"
	}
	return "off"
}

// Which policies show summaries by default, and which when it is turned on.
func TestWhoShowsSummaries(t *testing.T) {
	for _, tc := range []struct {
		policy string
		on     *bool
		want   bool
	}{
		{"compaction", nil, true},
		{"safeguard", nil, true},
		{"compaction", new(false), false},
		{"rolling", nil, true}, // nobody can call recall
		{"sliding-window", nil, false},
		{"sliding-window", new(true), true},
		{"auto", nil, false},
		{"auto:faithful", new(true), true},
		{"graduated", nil, false},
		{"none", new(true), false},
	} {
		t.Run(fmt.Sprintf("C10 %s %s", tc.policy, switchName(tc.on)), func(t *testing.T) {
			t.Parallel()
			p := &gated{}
			st := compacting(t, p, nil, func(o *session.Options) {
				summary := policy.SummaryOptions{Summary: tc.on, TailTokens: 1000}
				o.Policy = tc.policy
				o.Policies = policy.NewSet(policy.SlidingWindow{SummaryOptions: summary}, policy.Compaction{SummaryOptions: summary}, policy.Auto{SummaryOptions: summary})
				if tc.policy == "none" {
					o.Window = 40_000 // furl's; nothing would be hidden
				}
			})
			a := newAgent(furl.FormatChat, true)
			long := tc.policy == "auto:faithful" // whose own reductions come first
			for range 32 {
				result := few
				if long {
					result = output
				}
				if tc.policy == "none" && p.count() == 0 && len(a.history) > 30 {
					break
				}
				a.step(t, st, result)
				st.gateway.WaitSummaries()
			}
			if got := p.count() > 0; got != tc.want {
				t.Errorf("a summary was asked for: %v", got)
			}
			shown := false
			for _, r := range st.only(t).Reductions() {
				shown = shown || r.Stage == "compact"
			}
			if shown != tc.want {
				t.Errorf("a summary was shown: %v", shown)
			}
			st.allOK(t)
		})
	}
}

// A dry run has nothing to be summarized for.
func TestNoSummaryForDryRuns(t *testing.T) {
	p := &gated{}
	st := compacting(t, p, nil)
	a := newAgent(furl.FormatChat, false)
	for range 12 {
		a.step(t, st, few, "X-Furl-Dry-Run", "true")
	}
	st.gateway.WaitSummaries()
	if p.count() != 0 {
		t.Error("one was asked for")
	}
}

// On a model that binds its thinking to the prompt, the request for a summary
// and the prompts after one keep to its rules.
func TestSummariesAndBoundThinking(t *testing.T) {
	p := &gated{Agent: sim.NewAgent(&sim.AgentOptions{Steps: 200, Thinking: 25})}
	st := compacting(t, p, nil)
	c := sim.Client{
		URL: st.front.URL, Format: furl.FormatAnthropic, Model: "claude-opus-5-5", Stream: true,
		Fields: map[string]any{"max_tokens": 2000, "thinking": map[string]string{"type": "adaptive"}, "cache_control": map[string]string{"type": "ephemeral"}},
	}
	if err := c.Say("Look at everything there is."); err != nil {
		t.Fatal(err)
	}
	for n := range 60 {
		reply, err := c.Send(t.Context())
		if err != nil {
			t.Fatalf("request %d: %v", n+1, err)
		}
		answerCalls(&c, reply, few)
		st.gateway.WaitSummaries()
	}
	if b := st.sim.Bill(); b.Refused != 0 || b.ThinkingDropped != 0 {
		t.Errorf("%d refused, %d thinking blocks were left to the provider to drop", b.Refused, b.ThinkingDropped)
	}
	n := 0
	for _, r := range st.only(t).Reductions() {
		if r.Stage == "compact" {
			n++
		}
	}
	if n < 2 {
		t.Errorf("%d summaries were shown", n)
	}
	st.allOK(t)
}

// Many sessions at once, each compacted again and again.
func TestManySummaries(t *testing.T) {
	p := &gated{}
	st := compacting(t, p, &gateway.Options{Summaries: gateway.SummaryOptions{AtOnce: 2}})
	var agents sync.WaitGroup
	formats := []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses}
	for i := range 3 {
		a := newAgent(formats[i%3], i%2 == 0)
		a.history = nil
		a.say(fmt.Sprintf("Task %d.", i))
		agents.Go(func() {
			for range 45 {
				a.step(t, st, few)
			}
		})
	}
	agents.Wait()
	st.gateway.WaitSummaries()
	st.allOK(t)
	for _, info := range st.list(t) {
		s, err := st.sessions.Open(t.Context(), info.Session)
		if err != nil {
			t.Fatal(err)
		}
		if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("session %s: %v %v", info.Session, problems, err)
		}
		n := 0
		for _, r := range s.Reductions() {
			if r.Number > 0 && r.Number <= n {
				t.Errorf("C6 the numbers are not in order: %+v", r)
			}
			n = max(n, r.Number)
		}
	}
}

// An extract was faster than the summary: it is shown at the next request all
// the same, as if it had been in time.
func TestSummaryOvertaken(t *testing.T) {
	p := &gated{gate: make(chan struct{})}
	st := compacting(t, p, nil)
	a := newAgent(furl.FormatAnthropic, true)
	st.due(t, a)
	for len(st.only(t).Reductions()) == 0 {
		a.step(t, st, few)
	}
	close(p.gate)
	st.gateway.WaitSummaries()
	a.step(t, st, few)
	list := st.only(t).Reductions()
	if last := list[len(list)-1]; last.Stage != "compact" || list[0].Stage != "extract" || !list[0].Lifted {
		t.Errorf("C10 the reductions are %+v", list)
	}
	if m := metricsOf(t, st); m["furl_summaries_late_total"] != 0 || m["furl_summaries_wasted_dollars_total"] != 0 {
		t.Error("C10 it counts as wasted")
	}
	for range 10 {
		a.step(t, st, few)
		st.gateway.WaitSummaries()
	}
	st.allOK(t)
	if problems, err := st.only(t).Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the session: %v %v", problems, err)
	}
}

// What was paid for outlasts the gateway.
func TestSummaryOutlastsTheGateway(t *testing.T) {
	t.Run("C10 a summary that is ready is recorded at the end", func(t *testing.T) {
		p := &gated{}
		st := compacting(t, p, nil)
		a := newAgent(furl.FormatAnthropic, true)
		st.until(t, a, p, 1)
		if s := st.only(t); st.sessions.Stats().ReadySummaries != 1 || len(s.Reductions()) > 0 {
			t.Fatalf("no summary waits: %+v", s.Reductions())
		}
		st.gateway.Close()
		st.restart(t, &session.Options{Window: 12_000, Policy: "compaction"}, nil)
		a.step(t, st, few)
		sent := st.sim.Requests()
		if last := string(sent[len(sent)-1].Body); !strings.Contains(last, "[context_compaction 1: ") || p.count() != 1 {
			t.Errorf("behind it, %d summaries were asked for, and the model sees %.500s", p.count(), last)
		}
		st.allOK(t)
	})
}
