package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
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
				st := newFixture(t, &sim.Options{Window: 16_000, AnyField: true, Player: sim.NewAgent(&sim.AgentOptions{Steps: 14, Thinking: 20})},
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

// A client forks its session after furl has hidden some of it: the fork has an
// id of its own and sends the whole history, with thinking that was bound to
// what is hidden. It is a session of its own in which the same must be hidden
// or the thinking left out, and the first goes on as it was.
func TestForkAfterReductions(t *testing.T) {
	for _, c := range clients {
		if c.headers == nil && c.fields == nil {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			st := newFixture(t, &sim.Options{Window: 16_000, AnyField: true, Player: sim.NewAgent(&sim.AgentOptions{Steps: 9, Thinking: 20})},
				&session.Options{Window: 16_000}, nil)
			a := c.agent(st)
			if a.format == furl.FormatAnthropic {
				a.model = "claude-opus-5-5" // binds thinking
			}
			as := func(a *agent, id string) {
				a.extra = func(body []byte) []byte { return c.with(thinks(t, body, a.format), id) }
				for a.step(t, st, output, c.of(id)...) {
				}
			}
			as(a, "44444444-dddd")
			if a.format == furl.FormatAnthropic && !bytes.Contains(mustJSON(a.history), []byte(`"signature"`)) {
				t.Error("the model has not thought")
			}
			fork := &agent{format: a.format, model: a.model, history: slices.Clone(a.history)}
			fork.say("Now another way.")
			as(fork, "55555555-eeee")
			a.say("Go on.")
			as(a, "44444444-dddd")
			infos := st.list(t)
			if len(infos) != 2 {
				t.Fatalf("%d sessions, want 2: %+v", len(infos), infos)
			}
			for _, info := range infos {
				st.branched(t, c.name, string(info.Session), 1)
				if s, err := st.sessions.Open(t.Context(), info.Session); err != nil || len(s.Reductions()) == 0 {
					t.Errorf("session %s has no reductions: %v", info.Session, err)
				}
			}
			if b := st.sim.Bill(); b.Refused > 0 {
				t.Errorf("%d requests were refused", b.Refused)
			}
		})
	}
}

// thinks adds to a request that the model may think.
func thinks(t *testing.T, body []byte, f furl.Format) []byte {
	t.Helper()
	if f != furl.FormatAnthropic {
		return body
	}
	var m map[string]any
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	m["thinking"] = map[string]any{"type": "adaptive"}
	return mustJSON(m)
}
