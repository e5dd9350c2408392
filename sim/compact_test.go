package sim_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl/sim"
)

type compactedReply struct {
	Stop    string `json:"stop_reason"`
	Content []struct {
		Type, Content, Signature string
	}
	Usage struct {
		Input, Output int `json:"-"`
		InputTokens   int `json:"input_tokens"`
		OutputTokens  int `json:"output_tokens"`
		Iterations    []struct {
			Type   string
			Input  int `json:"input_tokens"`
			Output int `json:"output_tokens"`
		}
	}
}

// longHistory is a session of bound thinking whose prompt is above 50,000
// tokens.
func longHistory(t *testing.T) (*sim.Sim, anthropicDialect, []json.RawMessage, func(body string, betas ...string) answered) {
	t.Helper()
	s, srv := serve(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 3, Thinking: 30})})
	d := anthropicDialect{extra: `,"thinking":{"type":"adaptive"}`}
	_, list := loop(t, srv, d, "claude-opus-5-5", false, d.user("Look around. "+strings.Repeat("several words of text ", 10_000)))
	return s, d, list, func(body string, betas ...string) answered {
		return post(t, srv, d.path(), body, "anthropic-beta", strings.Join(betas, ","))
	}
}

// At a threshold the reply starts with a summary, which replaces everything
// before it; thinking after it is still checked.
func TestCompactionAtThreshold(t *testing.T) {
	const edits = `,"context_management":{"edits":[{"type":"compact_20260112","trigger":{"type":"input_tokens","value":50000}%s}]}`
	beta := "compact-2026-01-12"
	for _, stream := range []bool{false, true} {
		s, d, list, ask := longHistory(t)
		d.extra += strings.Replace(edits, "%s", "", 1)
		list = append(list, d.user("And now?"))
		if a := ask(d.body("claude-opus-5-5", list, false)); a.status != 400 || !strings.Contains(string(a.body), "Extra inputs are not permitted") {
			t.Errorf("without the beta: %d %s", a.status, a.body)
		}
		a := ask(d.body("claude-opus-5-5", list, stream), beta)
		body := a.body
		if stream {
			body = gatherMessage(t, body)
		}
		var r compactedReply
		mustJSON(t, body, &r)
		it := r.Usage.Iterations
		if a.status != 200 || len(r.Content) < 3 || r.Content[0].Type != "compaction" || !strings.HasPrefix(r.Content[0].Content, "Task: Look around.") ||
			r.Stop != "tool_use" || len(it) != 2 || it[0].Type != "compaction" || it[1].Type != "message" {
			t.Fatalf("status %d: %s", a.status, body)
		}
		if r.Usage.InputTokens > 1000 || s.Bill().Usage.Prompt() < 100_000 {
			t.Errorf("usage %+v, bill %+v", r.Usage, s.Bill())
		}
		back, calls, _ := d.read(t, a.body, stream)
		result := joinResults(toList(d.result(calls[0], "done")))
		whole := append(append(list[:len(list):len(list)], back...), result)
		next := ask(d.body("claude-opus-5-5", whole, false), beta)
		if next.status != 200 || strings.Contains(string(next.body), `"type":"compaction","content"`) {
			t.Errorf("going on: %d %s", next.status, next.body)
		}
		// Everything before the summary may be omitted.
		short := append(toList(d.user("[see the summary]")), whole[len(list):]...)
		if a := ask(d.body("claude-opus-5-5", short, false), beta); a.status != 200 {
			t.Errorf("without what it sums up: %d %s", a.status, a.body)
		}
		forged := strings.Replace(d.body("claude-opus-5-5", whole, false), "Task: Look around.", "Task: Rest.", 1)
		if a := ask(forged, beta); a.status != 400 || !strings.Contains(string(a.body), "`compaction` block") {
			t.Errorf("a reworded summary: %d %s", a.status, a.body)
		}
		d.extra = strings.Replace(d.extra, `}]}`, `,"pause_after_compaction":true}]}`, 1)
		mustJSON(t, ask(d.body("claude-opus-5-5", list, false), beta).body, &r)
		if r.Stop != "compaction" || len(r.Content) != 1 || len(r.Usage.Iterations) != 1 {
			t.Errorf("paused: %+v", r)
		}
	}
}

// On demand the reply is only a signed summary. It is then sent first, and
// thinking that directly followed the summarised messages stays valid.
func TestCompactionOnDemand(t *testing.T) {
	_, d, list, ask := longHistory(t)
	beta := "compact-2026-09-04"
	demand := d
	demand.extra += `,"compaction":{"type":"summarize"}`
	head, tail := list[:3], list[3:] // user, call, result
	a := ask(demand.body("claude-opus-5-5", head, true), beta)
	var r compactedReply
	mustJSON(t, gatherMessage(t, a.body), &r)
	if a.status != 200 || r.Stop != "compaction" || len(r.Content) != 1 || r.Content[0].Type != "compaction" || r.Usage.InputTokens != 0 || len(r.Usage.Iterations) != 1 {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	whole := ask(demand.body("claude-opus-5-5", head, false), beta)
	mustJSON(t, whole.body, &r)
	if r.Content[0].Signature == "" {
		t.Fatalf("%s", whole.body)
	}
	back, _, _ := d.read(t, whole.body, false)
	next := append(append(back, tail...), d.user("And now?"))
	if a := ask(d.body("claude-opus-5-5", next, false), beta); a.status != 200 {
		t.Errorf("with the tail: %d %s", a.status, a.body)
	}
	if a := ask(d.body("claude-opus-5-5", next, false)); a.status != 400 {
		t.Errorf("without the beta: %d", a.status)
	}
	if a := ask(d.body("claude-opus-5-5", append(back, append(list[5:len(list):len(list)], d.user("And now?"))...), false), beta); a.status != 400 || !strings.Contains(string(a.body), "bound to a different conversation") {
		t.Errorf("with a gap: %d %s", a.status, a.body)
	}
	for extra, want := range map[string]string{
		`,"compaction":{"type":"forget"}`:                                 "compaction.type: Input should be 'summarize'",
		`,"compaction":{"type":"summarize"},"stop_sequences":["x"]`:       "compaction: cannot be combined with `stop_sequences`",
		`,"compaction":{"type":"summarize"},"tool_choice":{"type":"any"}`: "compaction: cannot be combined with a `tool_choice`",
	} {
		if a := ask(anthropicDialect{extra: extra}.body("claude-opus-5-5", list[:1], false), beta); a.status != 400 || !strings.Contains(string(a.body), want) {
			t.Errorf("%s: %d %s", extra, a.status, a.body)
		}
	}
}

// The agent writes a summary that is requested after results in the same
// message, as Claude Code does; a reminder there does not trigger one.
func TestSummaryAfterResults(t *testing.T) {
	_, srv := serve(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 9})})
	d := anthropicDialect{}
	list := toList(d.user("Look around."))
	a := post(t, srv, d.path(), d.body("claude-sonnet-4-5", list, false))
	back, calls, _ := d.read(t, a.body, false)
	for words, want := range map[string]string{
		"Respond with TEXT ONLY. Do NOT call any tools. Write a detailed summary.": "end_turn",
		"A reminder: write a summary when you are done.":                           "tool_use",
	} {
		var m struct {
			Role    string            `json:"role"`
			Content []json.RawMessage `json:"content"`
		}
		mustJSON(t, joinResults(toList(d.result(calls[0], "done"))), &m)
		m.Content = append(m.Content, fmt.Appendf(nil, `{"type":"text","text":%q}`, words))
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		a := post(t, srv, d.path(), d.body("claude-sonnet-4-5", append(append(list[:len(list):len(list)], back...), raw), false))
		var r struct {
			Stop string `json:"stop_reason"`
		}
		if mustJSON(t, a.body, &r); a.status != 200 || r.Stop != want {
			t.Errorf("%q: %d, it stops for %q, want %q", words, a.status, r.Stop, want)
		}
	}
}
