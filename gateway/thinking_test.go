package gateway_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// A session whose model binds its thinking to the prompt before it goes through
// a hundred reductions: no request is refused, no thinking reaches the provider
// that it has to drop, what furl
// leaves out it says, and all of it is still recorded.
func TestBoundThinking(t *testing.T) {
	for _, policy := range []string{"", "sliding-window"} {
		t.Run("policy="+policy, func(t *testing.T) {
			st := newFixture(t, &sim.Options{Window: 9_000, Player: sim.NewAgent(&sim.AgentOptions{Steps: 1000, Thinking: 25})},
				&session.Options{Window: 9_000, Policy: policy}, nil)
			left := 0 // the most that an answer told of
			c := sim.Client{
				HTTP: &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
					resp, err := http.DefaultTransport.RoundTrip(req)
					if err == nil {
						n, _ := strconv.Atoi(resp.Header.Get("X-Furl-Thinking-Left-Out"))
						left = max(left, n)
					}
					return resp, err
				})},
				URL: st.front.URL, Format: furl.FormatAnthropic, Model: "claude-opus-5-5", Stream: true,
				Fields: map[string]any{"max_tokens": 2000, "thinking": map[string]string{"type": "adaptive"}},
			}
			if err := c.Say("Look at everything there is."); err != nil {
				t.Fatal(err)
			}
			sendSteps(t, &c, 0, 120)
			if b := st.sim.Bill(); b.Refused != 0 || b.ThinkingDropped != 0 {
				t.Errorf("%d refused, %d thinking blocks were left to the provider to drop", b.Refused, b.ThinkingDropped)
			}
			s, err := st.sessions.Find(t.Context(), session.Latest)
			if err != nil {
				t.Fatal(err)
			}
			if n := countThinking(s); len(s.Reductions()) < 100 || n != 120 {
				t.Errorf("%d reductions, %d thinking blocks, want 100 or more and 120", len(s.Reductions()), n)
			}
			if left == 0 {
				t.Error("no answer told of thinking that was left out")
			}
			if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
				t.Errorf("the session: %v %v", problems, err)
			}
		})
	}
}

// sendSteps sends the requests from to to-1 of a client, and answers the calls of each
// reply with a long result.
func sendSteps(t *testing.T, c *sim.Client, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		reply, err := c.Send(t.Context())
		if err != nil {
			t.Fatalf("request %d: %v", n+1, err)
		}
		answerCalls(c, reply, func(furl.Block) string {
			return strings.Repeat(fmt.Sprintf("line of call %d: pkg/file_%d.go\n", n, n), 150)
		})
	}
}

// countThinking returns the number of recorded thinking blocks.
func countThinking(s *session.Session) (n int) {
	for _, r := range s.Records(0) {
		if m, ok := r.Body.(*furl.Message); ok {
			for i := range m.Blocks {
				if m.Blocks[i].Kind == furl.KindThinking {
					n++
				}
			}
		}
	}
	return n
}

// answerCalls takes the results of a reply's calls into the history of a client
// of Anthropic Messages.
func answerCalls(c *sim.Client, reply *protocol.Reply, output func(call furl.Block) string) {
	for _, m := range reply.Messages {
		for _, b := range m.Blocks {
			if b.Kind == furl.KindCall {
				c.History = append(c.History, mustJSON(map[string]any{"role": "user", "content": []any{
					map[string]any{"type": "tool_result", "tool_use_id": b.ID, "content": output(b)},
				}}))
			}
		}
	}
}
