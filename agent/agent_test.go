package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/tool"
)

// models are a model for each format.
var models = []agent.Model{
	{Format: furl.FormatAnthropic, ID: "claude-sonnet-4-5", Key: "k"},
	{Format: furl.FormatChat, ID: "gpt-5.2", Key: "k"},
	{Format: furl.FormatResponses, ID: "gpt-5.2", Key: "k"},
}

// provide starts a provider that keeps the bodies of requests.
func provide(t *testing.T, o sim.Options) (*sim.Sim, string) {
	t.Helper()
	o.KeepBodies = true
	s := sim.New(&o)
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return s, srv.URL
}

func newSession(t *testing.T, o session.Options) *session.Session {
	t.Helper()
	all, err := session.New(inmem.New(), &o)
	if err != nil {
		t.Fatal(err)
	}
	return all.Create(storage.Meta{})
}

func newAgent(t *testing.T, s *session.Session, m agent.Model, url string, o agent.Options) *agent.Agent {
	t.Helper()
	m.BaseURL = url
	a, err := agent.New(s, m, &o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// readTool returns a text.
func readTool(text string) tool.Tool {
	return tool.Tool{
		Name: "read_file", Description: "Reads a file, \"whole\".", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
		Run: func(context.Context, json.RawMessage) (tool.Result, error) { return tool.Text(text), nil },
	}
}

// collect runs an agent to its end.
func collect(t *testing.T, a *agent.Agent, input ...agent.Input) []agent.Event {
	t.Helper()
	var events []agent.Event
	for e, err := range a.Run(t.Context(), input...) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

func count[E agent.Event](events []agent.Event) (n int) {
	for _, e := range events {
		if _, ok := e.(E); ok {
			n++
		}
	}
	return n
}

func last[E agent.Event](t *testing.T, events []agent.Event) E {
	t.Helper()
	for _, e := range slices.Backward(events) {
		if e, ok := e.(E); ok {
			return e
		}
	}
	t.Fatalf("no %T among %d events", *new(E), len(events))
	panic("unreachable")
}

// noRefusals checks that the provider has accepted every request, and that the log
// has the body of each.
func noRefusals(t *testing.T, s *sim.Sim, of *session.Session) {
	t.Helper()
	var sent [][]byte
	for _, e := range s.Requests() {
		if e.Verdict == sim.VerdictRefused {
			t.Errorf("request %d was refused: %s", e.N, e.Error)
		}
		if e.Status == 200 {
			sent = append(sent, e.Body)
		}
	}
	n := 0
	for _, r := range of.Records(0) {
		if _, ok := r.Body.(*furl.Exchange); !ok {
			continue
		}
		body, err := of.SentBody(t.Context(), r.Seq)
		if err != nil {
			t.Fatal(err)
		}
		if n >= len(sent) || string(body) != string(sent[n]) {
			t.Errorf("exchange %d: the log has another body than the provider received", n)
		}
		n++
	}
	if n != len(sent) {
		t.Errorf("%d exchanges for %d requests", n, len(sent))
	}
	if problems, err := of.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("check: %v, %v", problems, err)
	}
}

func TestLoop(t *testing.T) {
	for _, m := range models {
		t.Run(string(m.Format), func(t *testing.T) {
			p, url := provide(t, sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 6, Parallel: 3, Thinking: 20})})
			s := newSession(t, session.Options{Policy: "rolling-mask-5"})
			m.Thinking = "medium"
			a := newAgent(t, s, m, url, agent.Options{System: "You are a test.", Tools: []tool.Tool{readTool("a line of a file\n")}})
			events := collect(t, a, agent.Text("Read the files."))
			if n := count[agent.Replied](events); n != 7 {
				t.Errorf("%d replies", n)
			}
			if a, b := count[agent.CallStarted](events), count[agent.CallResult](events); a != b || a < 6 {
				t.Errorf("%d calls, %d results", a, b)
			}
			var text strings.Builder
			for _, e := range events {
				if d, ok := e.(agent.TextDelta); ok {
					text.WriteString(d.Text)
				}
			}
			if end := last[agent.Replied](t, events); end.Text == "" || !strings.HasSuffix(text.String(), end.Text) || end.Usage.Output == 0 {
				t.Errorf("the deltas do not end with the reply %+v", end)
			}
			if count[agent.Context](events) == 0 {
				t.Error("no events of the context")
			}
			noRefusals(t, p, s)
			// There is nothing more to send.
			if events := collect(t, a); len(events) != 1 || events[0] != (agent.Done{}) {
				t.Errorf("continued: %v", events)
			}
			collect(t, a, agent.Text("Once more."))
			noRefusals(t, p, s)
		})
	}
}

// hasInterruptedResult reports whether a result of the last step is that of a failed
// call. Chat Completions does not mark these.
func hasInterruptedResult(s *session.Session, f furl.Format) bool {
	r := s.Records(0)
	for i := len(r) - 1; i >= 0; i-- {
		m, ok := r[i].Body.(*furl.Message)
		if !ok || m.Blocks[0].Kind != furl.KindResult {
			return false
		}
		for k := range m.Blocks {
			if b := &m.Blocks[k]; b.Kind == furl.KindResult && (b.Error || f != furl.FormatAnthropic) {
				return true
			}
		}
	}
	return false
}

// If a run is interrupted, every call has a result, and the session can be continued.
func TestInterruption(t *testing.T) {
	stop := errors.New("stop")
	for _, m := range models {
		for _, at := range []string{"text", "call", "result", "retry"} {
			t.Run(string(m.Format)+"/"+at, func(t *testing.T) {
				o := sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 3, Parallel: 4, Words: 30})}
				if at == "retry" {
					o.Faults = []sim.Fault{{First: 1, Status: 529}}
				}
				p, url := provide(t, o)
				s := newSession(t, session.Options{})
				var started atomic.Int32
				slow := readTool("text")
				slow.Run = func(ctx context.Context, _ json.RawMessage) (tool.Result, error) {
					if started.Add(1) == 1 && at == "call" {
						<-ctx.Done()
						return tool.Result{}, ctx.Err()
					}
					return tool.Text("text"), nil
				}
				a := newAgent(t, s, m, url, agent.Options{Tools: []tool.Tool{slow}})
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				var got error
				for e, err := range a.Run(ctx, agent.Text("Read the files.")) {
					if err != nil {
						got = err
						break
					}
					name := map[string]bool{}
					switch e.(type) {
					case agent.TextDelta:
						name["text"] = true
					case agent.CallStarted:
						name["call"] = true
					case agent.CallResult:
						name["result"] = true
					case agent.Retry:
						name["retry"] = true
					}
					if name[at] {
						cancel(stop)
					}
				}
				if !errors.Is(got, stop) {
					t.Fatalf("error %v", got)
				}
				if at == "call" && !hasInterruptedResult(s, m.Format) {
					t.Error("no result of an interrupted call is recorded")
				}
				collect(t, a, agent.Text("Go on."))
				for _, e := range p.Requests() {
					if e.Verdict == sim.VerdictRefused {
						t.Errorf("request %d was refused: %s", e.N, e.Error)
					}
				}
			})
		}
	}
}

// Calls that change something run alone, in order, and only if they are approved.
func TestApproval(t *testing.T) {
	var order []string
	step := 0
	player := sim.PlayerFunc(func(context.Context, *protocol.Request) (sim.Reply, error) {
		if step++; step > 1 {
			return sim.Text("Done."), nil
		}
		var r sim.Reply
		for i, name := range []string{"read", "write", "read", "write", "nothing"} {
			r.Blocks = append(r.Blocks, furl.Block{Kind: furl.KindCall, Name: name, ID: fmt.Sprintf("toolu_%d", i), Args: fmt.Appendf(nil, `{"n":%d}`, i)})
		}
		return r, nil
	})
	p, url := provide(t, sim.Options{Player: player})
	s := newSession(t, session.Options{})
	run := func(_ context.Context, input json.RawMessage) (tool.Result, error) {
		order = append(order, "run "+string(input))
		return tool.Text("ok"), nil
	}
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	tools := []tool.Tool{
		{Name: "read", Schema: schema, Run: run},
		{Name: "write", Schema: schema, Run: run, Changes: true, Preview: func(_ context.Context, input json.RawMessage) (tool.Preview, error) {
			return tool.Preview{Title: "Write " + string(input)}, nil
		}},
	}
	a := newAgent(t, s, models[0], url, agent.Options{Tools: tools, Approve: func(_ context.Context, c agent.Call, p tool.Preview) agent.Decision {
		order = append(order, "ask "+p.Title)
		return agent.Decision{Allow: c.ID == "toolu_1", Reason: "Not twice."}
	}})
	events := collect(t, a, agent.Text("Write."))
	want := `run {"n":0}, ask Write {"n":1}, run {"n":1}, run {"n":2}, ask Write {"n":3}`
	if got := strings.Join(order, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var results []string
	for _, e := range events {
		if r, ok := e.(agent.CallResult); ok {
			results = append(results, r.Result.Text())
		}
	}
	if got := strings.Join(results, " | "); got != `ok | ok | ok | The call was refused and had no effect. Reason: Not twice. | Error: unknown tool "nothing"` {
		t.Errorf("results: %s", got)
	}
	if n := count[agent.ApprovalNeeded](events); n != 2 {
		t.Errorf("asked %d times", n)
	}
	noRefusals(t, p, s)
}
