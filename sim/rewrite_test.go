package sim_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl/sim"
)

var agentID = regexp.MustCompile(`(?:toolu|call)_sim_[0-9a-f_]+`)

// withoutText removes what the assistant said next to its calls.
func withoutText(t *testing.T, back []json.RawMessage) (out []json.RawMessage) {
	t.Helper()
	for _, raw := range back {
		var m map[string]any
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		if m["type"] == "message" { // an item of Responses
			continue
		}
		if m["tool_calls"] != nil {
			m["content"] = nil
		} else if list, ok := m["parts"].([]any); ok {
			m["parts"] = slices.DeleteFunc(list, func(p any) bool { return p.(map[string]any)["functionCall"] == nil })
		} else if list, ok := m["content"].([]any); ok {
			var calls []any
			for _, b := range list {
				if b.(map[string]any)["type"] != "text" {
					calls = append(calls, b)
				}
			}
			m["content"] = calls
		}
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, raw)
	}
	return out
}

// Clients that give calls ids of their own, as some providers require, make the same
// steps as others, also if they drop the text next to the calls. A second task
// starts at its first step.
func TestAgentWithRewrittenIDs(t *testing.T) {
	for _, d := range dialects {
		for _, silent := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, silent %t", d.name, silent), func(t *testing.T) {
				_, srv := serve(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 4})})
				var list []json.RawMessage
				for task, want := range []string{"Done after 4 steps.", "Done after 8 steps."} {
					list = append(list, d.d.user(fmt.Sprintf("Task %d.", task+1)))
					requests, last := 0, ""
					for ; requests < 20; requests++ {
						a := post(t, srv, d.d.path(), d.d.body(d.model, list, false))
						if a.status != 200 {
							t.Fatalf("request %d: status %d: %s", requests+1, a.status, a.body)
						}
						back, calls, text := d.d.read(t, a.body, false)
						if last = text; len(calls) == 0 {
							list = append(list, back...)
							break
						}
						if silent {
							back = withoutText(t, back)
						}
						mine := fmt.Sprintf("id%07d", len(list))
						for _, raw := range back {
							list = append(list, agentID.ReplaceAll(raw, []byte(mine)))
						}
						results := []json.RawMessage{d.d.result(mine, "some/file.go:12")}
						if d.name == "anthropic" {
							results = []json.RawMessage{joinResults(results)}
						}
						list = append(list, results...)
					}
					if requests != 4 || !strings.HasPrefix(last, want) {
						t.Errorf("task %d: %d steps, then %q; want 4 and %q", task+1, requests, last, want)
					}
				}
			})
		}
	}
}

// An answer of a script with a call and without thinking is not refused in the next
// request, where thinking is on and required.
func TestScriptWithoutThinking(t *testing.T) {
	script, err := sim.ParseScript("s.txtar", []byte("-- 1 --\ntext: I read.\ncall: read_file {\"path\": \"a.txt\"}\n-- 2 --\ncall: read_file {\"path\": \"b.txt\"}\n-- 3 --\ntext: Done.\n"))
	if err != nil {
		t.Fatal(err)
	}
	d := anthropicDialect{extra: `,"thinking":{"type":"enabled","budget_tokens":2000}`}
	s, srv := serve(t, &sim.Options{Player: script})
	text, _ := loop(t, srv, d, "claude-sonnet-4-5", false, d.user("Read it."))
	if text != "Done." || s.Bill().Refused != 0 {
		t.Errorf("it ends with %q; %+v", text, s.Bill())
	}
	// Without thinking, the answer is as written.
	script, _ = sim.ParseScript("s.txtar", []byte("-- 1 --\ncall: read_file {\"path\": \"a.txt\"}\n"))
	_, srv = serve(t, &sim.Options{Player: script})
	a := post(t, srv, d.path(), anthropicDialect{}.body("claude-sonnet-4-5", toList(d.user("Read it.")), false))
	if strings.Contains(string(a.body), "thinking") {
		t.Errorf("thinking that was not requested: %s", a.body)
	}
}
