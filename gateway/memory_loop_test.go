package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

var handlePattern = regexp.MustCompile(`furl:\d+\.\d+`)

// rememberer is a model that works step by step, and in between recalls what was
// hidden from it: it searches, gets what it found, and goes on, at times calling
// something of its client's in the same reply.
type rememberer struct {
	steps, task int // so many in all, done
	asked       int // the step before which it searched last
	found, got  int // what it searched for, and the original of that
}

func (m *rememberer) Play(_ context.Context, req *protocol.Request) (sim.Reply, error) {
	think := furl.Block{Kind: furl.KindThinking, Text: fmt.Sprintf("hm, step %d", m.task)}
	reply := sim.Reply{Blocks: []furl.Block{think}}
	call := func(name, args string) {
		reply.Blocks = append(reply.Blocks, furl.Block{Kind: furl.KindCall, Name: name, Args: json.RawMessage(args)})
	}
	text := func(s string) {
		reply.Blocks = append(reply.Blocks, furl.Block{Kind: furl.KindText, Text: s})
	}
	var newest strings.Builder
	for i := len(req.Messages) - 1; i >= 0 && req.Messages[i].Role != furl.RoleAssistant; i-- {
		for _, b := range req.Messages[i].Blocks {
			newest.WriteString(b.Text)
		}
	}
	if want := fmt.Sprintf("step_%d_line_1 of what", max(1, m.asked-13)); strings.HasPrefix(newest.String(), "[furl:") && strings.Contains(newest.String(), want) {
		m.got++
	}
	handle := handlePattern.FindString(newest.String())
	switch {
	case strings.HasPrefix(newest.String(), "Search results") && handle != "":
		m.found++
		call(exchange.ToolGet, `{"handle":"`+handle+`","to_line":3}`)
	case m.task >= m.steps:
		text("All done.")
	case m.task%5 == 4 && m.asked != m.task:
		m.asked = m.task
		old := max(1, m.task-13)
		text(fmt.Sprintf("What was in step %d?", old))
		call(exchange.ToolSearch, fmt.Sprintf(`{"query":"step_%d_line_7"}`, old))
		if m.task%2 == 0 {
			m.task++
			m.asked = m.task
			call("bash", fmt.Sprintf(`{"command":"step %d"}`, m.task))
		}
	default:
		m.task++
		if m.task%3 == 0 {
			text(fmt.Sprintf("Step %d.", m.task))
		}
		call("bash", fmt.Sprintf(`{"command":"step %d"}`, m.task))
	}
	return reply, nil
}

// A loop of forty steps in a window that holds ten, in which the model again and
// again recalls what was hidden, and the gateway is replaced in the middle: no
// request is refused, what is recalled is what was there, and prompts change at
// reductions alone.
func TestRecallInALongLoop(t *testing.T) {
	type model struct {
		format furl.Format
		name   string
		fields map[string]any
	}
	adaptive := map[string]any{"max_tokens": 1000, "thinking": map[string]string{"type": "adaptive"}}
	enabled := map[string]any{"max_tokens": 3000, "thinking": map[string]any{"type": "enabled", "budget_tokens": 1024}}
	for _, m := range []model{
		{furl.FormatAnthropic, "claude-sonnet-4-5", enabled},
		{furl.FormatAnthropic, "claude-opus-5-5", adaptive},
		{furl.FormatChat, "gpt-5", nil},
		{furl.FormatResponses, "gpt-5", map[string]any{"store": false, "include": []string{"reasoning.encrypted_content"}}},
	} {
		for _, stream := range []bool{false, true} {
			for _, policy := range []string{"", "rolling"} {
				if gateway.RaceDetector && (!stream || policy != "") {
					continue
				}
				t.Run(fmt.Sprintf("%s,stream=%t,policy=%s", m.name+" "+string(m.format), stream, policy), func(t *testing.T) {
					player := &rememberer{steps: 40}
					sess := &session.Options{Window: 16_000, Policy: policy}
					opts := &gateway.Options{Recall: true, Summaries: gateway.SummaryOptions{Off: true}}
					st := newFixture(t, &sim.Options{Window: 16_000, Player: player}, sess, opts)
					c := &sim.Client{URL: st.front.URL, Format: m.format, Model: m.name, Stream: stream, Fields: m.fields}
					if err := c.Say("Look at everything there is."); err != nil {
						t.Fatal(err)
					}
					ran := 0
					_, err := c.Work(t.Context(), func(call furl.Block) string {
						if ran++; ran%7 == 0 {
							st.restart(t, sess, opts)
							c.URL = st.front.URL
						}
						step := regexp.MustCompile(`\d+`).FindString(string(call.Args))
						var b strings.Builder
						for i := range 60 {
							fmt.Fprintf(&b, "step_%s_line_%d of what a command printed, pkg/file_%d.go\n", step, i, i)
						}
						return b.String()
					})
					if err != nil {
						t.Error(err)
					}
					if player.found < 3 || player.got != player.found {
						t.Errorf("the model found something %d times and got it %d times", player.found, player.got)
					}
					judgeRecall(t, st, m.format)
					for _, raw := range c.History {
						if bytes.Contains(raw, []byte(`"memory_`)) {
							t.Errorf("the client has %s", raw)
						}
					}
				})
			}
		}
	}
}

// judgeRecall checks a session that was recalled from: nothing was refused, each
// prompt but those after reductions is the one before and more, every call has
// its result in the log, and that is whole.
func judgeRecall(t *testing.T, st *fixture, format furl.Format) {
	t.Helper()
	s := st.only(t)
	breaks := 0
	var before []string
	a := &agent{format: format}
	for _, r := range st.sim.Requests() {
		if r.Verdict != sim.VerdictOK || r.ThinkingDropped > 0 {
			t.Errorf("request %d: %s %s, %d thinking blocks dropped", r.N, r.Verdict, r.Error, r.ThinkingDropped)
		}
		now := a.sent(t, r.Body)
		if len(now) < len(before) || !slices.Equal(now[:len(before)], before) {
			breaks++
		}
		before = now
	}
	if reds := len(s.Reductions()); breaks > reds || reds < 2 {
		t.Errorf("%d prompts do not go on from the one before, with %d reductions", breaks, reds)
	}
	answers := 0
	for _, r := range s.Records(0) {
		if m, ok := r.Body.(*furl.Message); ok && m.HasOwn() && r.By == furl.Furl {
			answers++
		}
	}
	if answers < 8 {
		t.Errorf("%d answers of recall are recorded", answers)
	}
	if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the session: %v %v", problems, err)
	}
}
