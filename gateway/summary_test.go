package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// gated is the built-in agent, whose summaries wait at a gate.
type gated struct {
	*sim.Agent
	gate  chan struct{} // nil: open
	reply func(req *protocol.Request) (sim.Reply, error)

	mu    sync.Mutex
	asked []*protocol.Request
}

// asks reports whether a request is furl's for a summary.
func asks(req *protocol.Request) bool {
	last := &req.Messages[len(req.Messages)-1]
	for i := range last.Blocks {
		if strings.Contains(last.Blocks[i].Text, "about to outgrow the context window") {
			return true
		}
	}
	return false
}

func (p *gated) Play(ctx context.Context, req *protocol.Request) (sim.Reply, error) {
	if !asks(req) {
		return p.Agent.Play(ctx, req)
	}
	p.mu.Lock()
	p.asked = append(p.asked, req)
	p.mu.Unlock()
	if p.gate != nil {
		select {
		case <-p.gate:
		case <-ctx.Done():
			return sim.Reply{}, ctx.Err()
		}
	}
	if p.reply != nil {
		return p.reply(req)
	}
	return sim.Text("They looked at everything, and it was good."), nil
}

// compacting is a gateway whose policy shows summaries.
func compacting(t testing.TB, p *gated, o *gateway.Options, change ...func(*session.Options)) *fixture {
	t.Helper()
	if p.Agent == nil {
		p.Agent = sim.NewAgent(&sim.AgentOptions{Steps: 60})
	}
	so := &session.Options{Window: 12_000, Policy: "compaction"}
	for _, f := range change {
		f(so)
	}
	st := newFixture(t, &sim.Options{Window: 12_000, Player: p}, so, o)
	t.Cleanup(st.gateway.Close)
	return st
}

func newAgent(format furl.Format, stream bool) *agent {
	a := &agent{format: format, stream: stream, model: modelOf(format)}
	a.say("Look at everything there is.")
	return a
}

// only gives the one session there is.
func (st *fixture) only(t testing.TB) *session.Session {
	t.Helper()
	infos := st.list(t)
	if len(infos) != 1 {
		t.Fatalf("%d sessions, want 1", len(infos))
	}
	s, err := st.sessions.Open(t.Context(), infos[0].Session)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// few is what a command prints: enough for some steps between the size from
// which a summary is prepared and the one at which the policy acts.
func few(call furl.Block) string {
	return strings.Join(strings.SplitAfter(output(call), "\n")[:14], "")
}

// due takes steps until a summary is being written.
func (st *fixture) due(t testing.TB, a *agent, headers ...string) {
	t.Helper()
	for st.gateway.Summarizing() == 0 {
		if !a.step(t, st, few, headers...) {
			t.Fatal("the agent ended before a summary was due")
		}
	}
}

// shown takes steps until the session shows a summary, and gives the record.
func (st *fixture) shown(t testing.TB, a *agent) session.Recorded {
	t.Helper()
	for a.step(t, st, few) {
		for _, r := range st.only(t).Reductions() {
			if r.Stage == "compact" {
				return r
			}
		}
		st.gateway.WaitSummaries()
	}
	t.Fatal("the agent ended before a summary was shown")
	return session.Recorded{}
}

func (st *fixture) allOK(t testing.TB) {
	t.Helper()
	for _, r := range st.sim.Requests() {
		if r.Verdict != sim.VerdictOK {
			t.Errorf("request %d was refused: %s", r.N, r.Error)
		}
	}
}

// A summary is written by the conversation's own model beside the requests,
// none of which waits for it, and shows up in a later one.
func TestSummaries(t *testing.T) {
	for _, format := range []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("C10 no request waits %s stream=%v", format, stream), func(t *testing.T) {
				p := &gated{gate: make(chan struct{})}
				st := compacting(t, p, nil)
				a := newAgent(format, stream)
				st.due(t, a)
				a.step(t, st, few) // while the summary is held back
				if s := st.only(t); st.sessions.Stats().ReadySummaries > 0 || len(s.Reductions()) > 0 {
					t.Fatal("something was shown before it was written")
				}
				close(p.gate)
				st.gateway.WaitSummaries()
				if s := st.only(t); st.sessions.Stats().ReadySummaries != 1 || len(s.Reductions()) > 0 {
					t.Fatalf("the summary is not ready, or recorded too early: %+v", s.Reductions())
				}
				before := st.only(t).Head()
				got := st.shown(t, a)
				t.Run("C4 number, time and sizes are recorded", func(t *testing.T) {
					if got.Number != 1 || got.Time.IsZero() || got.Archived < 4 || got.Before <= got.After || got.Summary != "They looked at everything, and it was good." {
						t.Errorf("recorded %+v", got)
					}
				})
				sent := st.sim.Requests()
				last := sent[len(sent)-1]
				if !strings.Contains(string(last.Body), got.Summary) || !strings.Contains(string(last.Body), "[context_compaction 1: ") {
					t.Errorf("the model does not see the summary: %s", last.Body)
				}
				s := st.only(t)
				t.Run("C3 request, reply and usage are recorded", func(t *testing.T) {
					red, _ := s.Records(got.Seq - 1)[0].Body.(*furl.Reduction)
					if red == nil || !strings.Contains(red.Summary.Request, "Do not call any tools") || red.Summary.Usage.Prompt() == 0 || red.Summary.Usage.Output == 0 {
						t.Errorf("recorded %+v", red)
					}
				})
				t.Run("C7 the events tell of it", func(t *testing.T) {
					moments, err := event.Timeline(sessiontest.Log(t, s), 0, s.Head(), s.Context("").Limit)
					if err != nil {
						t.Fatal(err)
					}
					var names []string
					for _, m := range moments {
						for _, e := range m.Events {
							names = append(names, e.Name())
						}
					}
					if all := strings.Join(names, " "); !strings.Contains(all, "summary_requested context_compacted") {
						t.Errorf("the events are %s", all)
					}
				})
				t.Run("C5 what is archived stays stored", func(t *testing.T) {
					hits, err := s.Search(t.Context(), "step-1", session.SearchOptions{})
					if err != nil || len(hits) == 0 {
						t.Errorf("nothing hidden is found: %v", err)
					}
				})
				if _, err := s.Restore(t.Context(), session.RestoreOptions{Reduction: got.Seq}); err != nil || s.Head() <= before {
					t.Errorf("it cannot be lifted: %v", err)
				}
				a.step(t, st, few)
				st.gateway.WaitSummaries()
				st.allOK(t)
				if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
					t.Errorf("the session: %v %v", problems, err)
				}
			})
		}
	}
}
