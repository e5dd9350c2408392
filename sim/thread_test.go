package sim_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl/sim"
)

// A thread holds the conversation, system and tools included; each reply is continued once.
func TestMessageThread(t *testing.T) {
	s, srv := serve(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 3})})
	ask := func(fields string) (answered, string) {
		a := post(t, srv, "/v1/messages", `{"model":"claude-opus-5-5","max_tokens":500,`+fields+`}`, "anthropic-beta", "message-threads-2026-08-12")
		var r struct{ ID string }
		_ = json.Unmarshal(a.body, &r)
		return a, r.ID
	}
	const start = `"system":"Be brief.","tools":[{"name":"read","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"Look around."}]`
	a, id := ask(start + `,"thread":{"type":"create"}`)
	if a.status != 200 || !strings.Contains(string(a.body), `"tool_use"`) {
		t.Fatalf("%d %s", a.status, a.body)
	}
	var r struct {
		Content []struct{ ID, Type string }
	}
	if err := json.Unmarshal(a.body, &r); err != nil {
		t.Fatal(err)
	}
	before := s.Bill().Usage.Prompt()
	result := fmt.Sprintf(`"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":"a file"}]}]`, r.Content[len(r.Content)-1].ID)
	next := fmt.Sprintf(`%s,"thread":{"type":"continue","previous_message_id":%q}`, result, id)
	if a, _ := ask(next); a.status != 200 || s.Bill().Usage.Prompt()-before <= before {
		t.Errorf("continue: %d %s, %d tokens after %d", a.status, a.body, s.Bill().Usage.Prompt()-before, before)
	}
	for fields, want := range map[string]string{
		next: "thread_already_continued",
		result + `,"thread":{"type":"continue","previous_message_id":"msg_x"}`:     "thread_not_found",
		start + `,"thread":{"type":"continue","previous_message_id":"` + id + `"}`: "system: ",
		start + `,"thread":{"type":"create"},"context_management":{"edits":[]}`:    "thread_unsupported_request",
		start + `,"thread":{"type":"fork"}`:                                        "thread.type",
	} {
		if a, _ := ask(fields); a.status < 400 || !strings.Contains(string(a.body), want) {
			t.Errorf("%s: %d %s, want %s", fields, a.status, a.body, want)
		}
	}
	if a := post(t, srv, "/v1/messages", `{"model":"claude-opus-5-5","max_tokens":500,"thread":{"type":"create"},`+start+`}`); a.status != 400 {
		t.Errorf("without the beta: %d %s", a.status, a.body)
	}
}
