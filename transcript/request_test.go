package transcript

import (
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

func TestAnthropicRequest(t *testing.T) {
	rec := fixture(t, "anthropic-request.json")
	s := only(t, rec)
	if rec.Format != "anthropic-request" || s.Model != "claude-opus-4-6" || s.Wire != furl.FormatAnthropic || s.ID != "anthropic-request.json" {
		t.Errorf("format %q, model %q, wire %q, id %q", rec.Format, s.Model, s.Wire, s.ID)
	}
	wantShown(t, s, "user What is in a.txt?", "assistant call:c1", "user result:c1", "assistant Apples.", "user And in b.txt?")
	if len(s.Preamble) != 2 || s.Preamble[0].Text != "You keep a shop." || s.Preamble[1].Kind != furl.KindOpaque {
		t.Errorf("preamble %+v, want the system text and the tool", s.Preamble)
	}
	list, _ := exchanges(s)
	if len(list) != 2 || list[0].Model != "claude-opus-4-6" || list[0].Usage != (furl.Usage{}) {
		t.Errorf("requests %+v, want the two implied", list)
	}
	_, m := s.Log.State().Message(1)
	if want := `{"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "Read", "input": {"file": "a.txt"}}]}`; string(m.Raw) != want {
		t.Errorf("the call was sent as %s, want %s", m.Raw, want)
	}
}

// A truncated body gives its complete messages.
func TestAnthropicRequestBroken(t *testing.T) {
	rec, err := Read("x", strings.NewReader(`{"model":"claude-x","max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":7},{"role":"assistant","content":"b"},{"role":"us`))
	if err != nil {
		t.Fatal(err)
	}
	if rec.Format != "anthropic-request" || len(rec.Skipped) != 2 {
		t.Fatalf("read as %s, skipped %v; want two", rec.Format, rec.Skipped)
	}
	wantShown(t, rec.Sessions[0], "user a", "assistant b")
	if rec.Sessions[0].Model != "claude-x" {
		t.Errorf("model %q", rec.Sessions[0].Model)
	}
}

func TestAnthropicRequestDetection(t *testing.T) {
	tests := []struct {
		name, body string
		want       bool
	}{
		{"text for Claude", `{"model":"claude-3","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`, true},
		{"text for another model", `{"model":"gpt-4o","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`, false},
		{"a separate system text", `{"model":"m","system":"s","messages":[{"role":"user","content":"hi"}]}`, true},
		{"a result", `{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}]}`, true},
		{"OpenAI's roles", `{"model":"claude-3","max_tokens":1,"messages":[{"role":"system","content":"s"},{"role":"tool","content":"hi","tool_call_id":"a"}]}`, false},
		{"OpenAI's calls", `{"model":"claude-3","max_tokens":1,"messages":[{"role":"assistant","tool_calls":[]}]}`, false},
		{"another document", `{"messages":["a","b"]}`, false},
	}
	for _, tt := range tests {
		if got := detectRequest(newProbe([]byte(tt.body))); got != tt.want {
			t.Errorf("%s: detected %v, want %v", tt.name, got, tt.want)
		}
	}
}
