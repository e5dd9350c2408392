package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/tool"
)

// contexts returns the events of package event of one type.
func contexts[E event.Event](events []agent.Event) (list []E) {
	for _, e := range events {
		if c, ok := e.(agent.Context); ok {
			if e, ok := c.Event.(E); ok {
				list = append(list, e)
			}
		}
	}
	return list
}

// The run waits for a summary when the policy needs one. It replaces the old messages
// in the very next request, with the working memory, and the instructions are rebuilt.
func TestSummaries(t *testing.T) { t.Run("C3 C4 C6 a summary is awaited", testSummaries) }

func testSummaries(t *testing.T) {
	for i, m := range models {
		for _, cheaper := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/cheaper %t", m.Format, cheaper), func(t *testing.T) {
				p, url := provide(t, sim.Options{Window: 20_000, Player: sim.NewAgent(&sim.AgentOptions{Steps: 24, Parallel: 2})})
				s := newSession(t, session.Options{Policy: "compaction", Window: 20_000})
				rebuilt := 0
				o := agent.Options{
					System: "You are a test, number 0.", Tools: []tool.Tool{readTool(strings.Repeat("a line of a file\n", 200))},
					WorkingMemory: func() []string { return []string{"The plan: read on."} },
					RebuildSystem: func(context.Context) (string, error) {
						rebuilt++
						return fmt.Sprintf("You are a test, number %d.", rebuilt), nil
					},
				}
				if cheaper { // of the next format
					other := models[(i+1)%len(models)]
					other.BaseURL = url
					if other.ID = "claude-haiku-4-5"; other.Format != furl.FormatAnthropic {
						other.ID = "gpt-5-mini"
					}
					o.Summaries.Model = &other
				}
				events := collect(t, newAgent(t, s, m, url, o), agent.Text("Read the files."))
				summaries := contexts[event.Compacted](events)
				if len(summaries) < 2 || rebuilt != len(summaries) {
					t.Fatalf("%d summaries, the instructions rebuilt %d times", len(summaries), rebuilt)
				}
				if n := count[agent.SummaryStarted](events); n != len(summaries) || len(contexts[event.SummaryRequested](events)) != n {
					t.Errorf("%d summaries started", n)
				}
				for _, e := range p.Requests() {
					if e.Verdict != sim.VerdictOK {
						t.Errorf("request %d: %s", e.N, e.Error)
					}
				}
				body := string(p.Requests()[len(p.Requests())-1].Body)
				for _, want := range []string{"The plan: read on.", fmt.Sprintf("number %d.", rebuilt), fmt.Sprintf("[context_compaction %d:", len(summaries))} {
					if !strings.Contains(body, want) {
						t.Errorf("the last request lacks %q", want)
					}
				}
				for _, red := range s.Reductions() {
					if other := o.Summaries.Model; other != nil && !strings.HasPrefix(red.Model, other.ID) {
						t.Errorf("written by %s", red.Model)
					}
				}
				if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
					t.Errorf("check: %v, %v", problems, err)
				}
			})
		}
	}
}

// The size is checked before every request, also if only results have been added.
func TestCheckedBeforeEveryRequest(t *testing.T) {
	t.Run("C2 before every request", func(t *testing.T) {
		p, url := provide(t, sim.Options{Window: 20_000, Player: sim.NewAgent(&sim.AgentOptions{Steps: 30, Parallel: 3})})
		s := newSession(t, session.Options{Policy: "sliding-window", Window: 20_000})
		collect(t, newAgent(t, s, models[0], url, agent.Options{Tools: []tool.Tool{readTool(strings.Repeat("a line of a file\n", 250))}}), agent.Text("Read the files."))
		noRefusals(t, p, s)
		if len(s.Reductions()) == 0 {
			t.Error("nothing was hidden")
		}
	})
}

func TestPlayback(t *testing.T) {
	t.Run("C9 the agent never compacts", func(t *testing.T) {
		p, url := provide(t, sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 12})})
		s := newSession(t, session.Options{Policy: "compaction", Window: 10_000})
		collect(t, newAgent(t, s, models[0], url, agent.Options{Playback: true, Tools: []tool.Tool{readTool(strings.Repeat("a line of a file\n", 250))}}), agent.Text("Read the files."))
		noRefusals(t, p, s)
		if n := len(s.Reductions()); n != 0 {
			t.Errorf("%d reductions", n)
		}
	})
}

// The user is asked before a summary, and may change or discard it.
func TestReview(t *testing.T) {
	for _, tc := range []struct {
		name           string
		ask, use       bool
		started, shown int
	}{
		{"C10 declined", false, false, 0, 0},
		{"C10 discarded", true, false, 1, 0},
		{"C10 edited", true, true, 1, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, url := provide(t, sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 8})})
			s := newSession(t, session.Options{Policy: "compaction", Window: 20_000})
			o := agent.Options{Tools: []tool.Tool{readTool(strings.Repeat("a line of a file\n", 400))}}
			asked := 0
			o.Summaries.Ask = func(_ context.Context, size, window int) bool {
				if asked++; size < 16_000 || window != 20_000 {
					t.Errorf("asked at %d of %d tokens", size, window)
				}
				return tc.ask
			}
			o.Summaries.Review = func(_ context.Context, text string) (string, bool) {
				if text == "" {
					t.Errorf("an empty summary")
				}
				return "Edited by a person.", tc.use
			}
			events := collect(t, newAgent(t, s, models[0], url, o), agent.Text("Read the files."))
			if asked == 0 || count[agent.SummaryStarted](events) < tc.started || tc.started == 0 && count[agent.SummaryStarted](events) > 0 {
				t.Errorf("asked %d times, started %d", asked, count[agent.SummaryStarted](events))
			}
			edited := slices.ContainsFunc(s.Reductions(), func(r session.Recorded) bool { return r.Summary == "Edited by a person." })
			if edited != (tc.shown > 0) {
				t.Errorf("the edited summary is recorded: %t", edited)
			}
			if tc.ask && !tc.use && count[agent.SummaryFailed](events) == 0 {
				t.Error("no event for a discarded summary")
			}
		})
	}
}

// With the session's setting ask_first, a summary is prepared and waits.
func TestAskFirst(t *testing.T) {
	_, url := provide(t, sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 8})})
	s := newSession(t, session.Options{Policy: "compaction", Window: 20_000})
	if err := s.Set(t.Context(), "ask_first", "on"); err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, s, models[0], url, agent.Options{Tools: []tool.Tool{readTool(strings.Repeat("a line of a file\n", 300))}})
	for _, err := range a.Run(t.Context(), agent.Text("Read the files.")) {
		if err != nil {
			t.Fatal(err)
		}
		if s.WaitingSummary() != nil {
			break
		}
	}
	if s.WaitingSummary() == nil {
		t.Fatal("no summary waits")
	}
	if _, err := s.DecideSummary(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	collect(t, a)
}

// Compact summarizes on request.
func TestCompact(t *testing.T) {
	p, url := provide(t, sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 5})})
	s := newSession(t, session.Options{})
	a := newAgent(t, s, models[0], url, agent.Options{Tools: []tool.Tool{readTool(strings.Repeat("a line of a file\n", 100))}})
	collect(t, a, agent.Text("Read the files."))
	var events []agent.Event
	for e, err := range a.Compact(t.Context(), "the weather") {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	if n := len(contexts[event.Compacted](events)); n != 1 {
		t.Errorf("%d summaries", n)
	}
	if body := p.Requests()[len(p.Requests())-1].Body; !strings.Contains(string(body), "the weather") {
		t.Error("the request lacks what the user wants")
	}
	collect(t, a, agent.Text("Go on."))
	for _, err := range a.Compact(t.Context(), "") {
		if err != nil {
			return // there may be too little to summarize
		}
	}
}
