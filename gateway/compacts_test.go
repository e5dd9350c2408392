package gateway_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// A client that asks for a summary of its own, with or without tools, after
// furl has hidden most of its history: what it asks with has the same hidden,
// and nothing is refused. What it goes on from is a new root of the session.
func TestClientCompactsAfterReductions(t *testing.T) {
	for _, c := range clients {
		if c.headers == nil && c.fields == nil {
			continue // without an id it begins a session anew
		}
		for _, recall := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s recall=%v", c.name, recall), func(t *testing.T) {
				st := newStand(t, &sim.Options{Window: 16_000, AnyField: true, Player: sim.NewAgent(&sim.AgentOptions{Steps: 14, Thinking: 20})},
					&session.Options{Window: 16_000}, &gateway.Options{Recall: recall})
				const id = "33333333-cccc"
				a := c.agent(st)
				a.extra = func(body []byte) []byte { return c.with(body, id) }
				for a.step(t, st, output, c.of(id)...) {
				}
				summary := forSummary(t, a.body(), a.format)
				headers := c.of(id)
				if c.name == "codex" {
					headers = []string{"Session-Id", id, "Thread-Id", id, "X-Codex-Turn-Metadata", `{"request_kind":"compaction"}`}
				}
				resp, answer := st.post(t, a.path(), summary, headers...)
				if resp.StatusCode != 200 {
					t.Fatalf("the summary: %d %s", resp.StatusCode, answer)
				}
				in := resp.Header.Get("X-Furl-Session")
				a.history = nil
				a.say("Look at everything there is.")
				a.say("It was worked on before, and this was left: look on.")
				for a.step(t, st, output, c.of(id)...) {
				}
				infos := st.list(t)
				if len(infos) != 1 || string(infos[0].Session) != in {
					t.Fatalf("the summary was asked for in session %q, of %d: %+v", in, len(infos), infos)
				}
				st.branched(t, c.name, in, 2)
				if b := st.sim.Bill(); b.Refused > 0 {
					t.Errorf("%d requests were refused", b.Refused)
				}
			})
		}
	}
}

// forSummary makes of a request one for a summary: without tools, where its
// provider takes that.
func forSummary(t *testing.T, body []byte, f furl.Format) []byte {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	messages := "messages"
	if f == furl.FormatResponses {
		messages = "input"
	}
	if f != furl.FormatAnthropic {
		delete(m, "tools")
	}
	m[messages] = append(m[messages].([]any), map[string]any{"role": "user", "content": "Write a summary of this for another model."})
	return mustJSON(m)
}
