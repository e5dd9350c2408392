package sim_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/sim"
)

// Requests that violate a rule get the provider's status, type and text.
func TestRefusals(t *testing.T) {
	const (
		messages  = "/v1/messages"
		chat      = "/v1/chat/completions"
		responses = "/v1/responses"
		hello     = `{"role":"user","content":"hi"}`
		fetch     = `{"type":"server_tool_use","id":"s1","name":"web_fetch","input":{"url":"https://x.example"}}`
		call      = `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}]}`
	)
	ask := func(more string) string { return `{"model":"claude-sonnet-4-5","max_tokens":100` + more + `}` }
	tests := []struct {
		name, path, body string
		headers          []string
		status           int
		typ, text        string
	}{
		{"no key", messages, ask(`,"messages":[` + hello + `]`), []string{"Authorization", ""}, 401, "authentication_error", "x-api-key header is required"},
		{"no key, OpenAI", chat, `{"model":"gpt-5.2","messages":[` + hello + `]}`, []string{"Authorization", ""}, 401, "invalid_request_error", "You didn't provide an API key"},
		{"no version", messages, ask(`,"messages":[` + hello + `]`), []string{"anthropic-version", ""}, 400, "invalid_request_error", "anthropic-version: header is required"},
		{"not JSON", messages, `{"model":`, nil, 400, "invalid_request_error", "not valid JSON"},
		{"not JSON, OpenAI", chat, `{"model":`, nil, 400, "invalid_request_error", "We could not parse the JSON body"},
		{"no messages", messages, ask(""), nil, 400, "invalid_request_error", "messages: Field required"},
		{"no max_tokens", messages, `{"model":"claude-sonnet-4-5","messages":[` + hello + `]}`, nil, 400, "invalid_request_error", "max_tokens: Field required"},
		{"too much output", messages, `{"model":"claude-sonnet-4-5","max_tokens":9999999,"messages":[` + hello + `]}`, nil, 400, "invalid_request_error", "max_tokens: 9999999 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5"},
		{"less than no output", messages, `{"model":"claude-sonnet-4-5","max_tokens":-1,"messages":[` + hello + `]}`, nil, 400, "invalid_request_error", "max_tokens: Input should be greater than or equal to 0"},
		{"a streamed request that only renews the cache", messages, `{"model":"claude-sonnet-4-5","max_tokens":0,"stream":true,"messages":[` + hello + `]}`, nil, 400, "invalid_request_error", "max_tokens: 0 is not supported with stream"},
		{"one with a thinking budget", messages, `{"model":"claude-sonnet-4-5","max_tokens":0,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[` + hello + `]}`, nil, 400, "invalid_request_error", "max_tokens: 0 is not supported with thinking"},
		{"one with a format", messages, `{"model":"claude-sonnet-4-5","max_tokens":0,"output_config":{"format":{"type":"json_schema"}},"messages":[` + hello + `]}`, nil, 400, "invalid_request_error", "max_tokens: 0 is not supported with output_config.format"},
		{"one with a forced call", messages, `{"model":"claude-sonnet-4-5","max_tokens":0,"tool_choice":{"type":"any"},"messages":[` + hello + `]}`, nil, 400, "invalid_request_error", "max_tokens: 0 is not supported with tool_choice"},
		{"unknown model", messages, `{"model":"claude-x","max_tokens":1,"messages":[` + hello + `]}`, nil, 404, "not_found_error", "model: claude-x"},
		{"unknown model, OpenAI", responses, `{"model":"gpt-x","input":"hi"}`, nil, 404, "invalid_request_error", "The model `gpt-x` does not exist"},
		{"unknown field", messages, ask(`,"foo":1,"messages":[` + hello + `]`), nil, 400, "invalid_request_error", "foo: Extra inputs are not permitted"},
		{"unknown field, OpenAI", chat, `{"model":"gpt-5.2","foo":1,"messages":[` + hello + `]}`, nil, 400, "invalid_request_error", "Unknown parameter: 'foo'."},
		{"a beta without its header", messages, ask(`,"context_management":{"edits":[]},"messages":[` + hello + `]`), nil, 400, "invalid_request_error", "context_management: Extra inputs are not permitted"},
		{"open call", messages, ask(`,"messages":[` + hello + `,` + call + `,` + hello + `]`), nil, 400, "invalid_request_error", "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1."},
		{"open call, OpenAI", chat, `{"model":"gpt-5.2","messages":[` + hello + `,{"role":"assistant","tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{}"}}]},` + hello + `]}`, nil, 400, "invalid_request_error", "An assistant message with 'tool_calls' must be followed by tool messages"},
		{"lone output", responses, `{"model":"gpt-5.2","input":[{"type":"function_call_output","call_id":"c9","output":"x"}]}`, nil, 400, "invalid_request_error", "No tool call found for function call output with call_id c9."},
		{"text while a server tool waits", messages, ask(`,"messages":[` + hello + `,{"role":"assistant","content":[` + fetch + `,{"type":"tool_use","id":"t1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"},{"type":"text","text":"and?"}]}]`), nil, 400, "invalid_request_error", "messages.1: `web_fetch` tool use with id `s1` was found without a corresponding `web_fetch_tool_result` block"},
		{"a server tool's result alone", messages, ask(`,"messages":[` + hello + `,{"role":"assistant","content":[{"type":"web_fetch_tool_result","tool_use_id":"s1","content":{}},{"type":"text","text":"x"}]},` + hello + `]`), nil, 400, "invalid_request_error", "unexpected `tool_use_id` found in `web_fetch_tool_result` blocks: s1."},
		{"five breakpoints", messages, ask(`,"messages":[{"role":"user","content":[` + strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},`, 5), ",") + `]}]`), nil, 400, "invalid_request_error", "A maximum of 4 blocks with cache_control may be provided. Found 5."},
		{"unsigned thinking", messages, ask(`,"messages":[` + hello + `,{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"abc"},{"type":"text","text":"x"}]},` + hello + `]`), nil, 400, "invalid_request_error", "messages.1.content.0: Invalid `signature` in `thinking` block"},
		{"budget", messages, ask(`,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[` + hello + `]`), nil, 400, "invalid_request_error", "`max_tokens` must be greater than `thinking.budget_tokens`"},
		{"temperature", messages, ask(`,"temperature":1.5,"messages":[` + hello + `]`), nil, 400, "invalid_request_error", "temperature: range: 0..1"},
		{"temperature with thinking", messages, ask(`,"temperature":0.5,"thinking":{"type":"adaptive"},"messages":[` + hello + `]`), nil, 400, "invalid_request_error", "`temperature` may only be set to 1 when thinking is enabled"},
		{"options of a stream that is none", chat, `{"model":"gpt-5.2","stream_options":{"include_usage":true},"messages":[` + hello + `]}`, nil, 400, "invalid_request_error", "The 'stream_options' parameter is only allowed when 'stream' is enabled."},
		{"a choice of no tools", chat, `{"model":"gpt-5.2","tool_choice":"auto","messages":[` + hello + `]}`, nil, 400, "invalid_request_error", "'tool_choice' is only allowed when 'tools' are specified."},
		{"no tools in parallel", chat, `{"model":"gpt-5.2","parallel_tool_calls":false,"messages":[` + hello + `]}`, nil, 400, "invalid_request_error", "'parallel_tool_calls' is only allowed when 'tools' are specified."},
		{"tool without schema", messages, ask(`,"tools":[{"name":"f"}],"messages":[` + hello + `]`), nil, 400, "invalid_request_error", "tools.0.custom.input_schema: Field required"},
		{"unknown path", "/v1/nothing", `{}`, []string{"anthropic-version", "2023-06-01"}, 404, "not_found_error", "Not found"},
		{"unknown path, OpenAI", "/v1/nothing", `{}`, nil, 404, "invalid_request_error", "Invalid URL (POST /v1/nothing)"},
		{"previous response", responses, `{"model":"gpt-5.2","previous_response_id":"resp_1","input":"hi"}`, nil, 400, "invalid_request_error", "Previous response with id 'resp_1' not found."},
		{"a fault that is none", messages, ask(`,"messages":[` + hello + `]`), []string{sim.FaultHeader, "explode"}, 400, "invalid_request_error", "expected a status"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, srv := serve(t, nil)
			a := post(t, srv, tt.path, tt.body, tt.headers...)
			var body struct {
				Type  string
				Error struct{ Type, Message string }
				ID    string `json:"request_id"`
			}
			mustJSON(t, a.body, &body)
			if a.status != tt.status || body.Error.Type != tt.typ || !strings.Contains(body.Error.Message, tt.text) {
				t.Errorf("status %d: %s\nwant %d %s: …%s…", a.status, a.body, tt.status, tt.typ, tt.text)
			}
			if tt.path == messages && (body.Type != "error" || body.ID == "" || body.ID != a.header.Get("request-id")) {
				t.Errorf("not Anthropic's shape: %s, request-id %s", a.body, a.header.Get("request-id"))
			}
			if b := s.Bill(); b.Refused != 1 || b.Cost != 0 {
				t.Errorf("bill %+v", b)
			}
			if r := s.Requests(); len(r) != 1 || r[0].Verdict != sim.VerdictRefused || r[0].Error != body.Error.Message || r[0].Status != tt.status {
				t.Errorf("journal %+v", r)
			}
		})
	}
}

func TestWindow(t *testing.T) {
	long := quote(strings.Repeat("several words of text ", 2000))
	tests := []struct{ name, path, body, text string }{
		{"anthropic", "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":` + long + `}]}`, "prompt is too long: "},
		{"chat", "/v1/chat/completions", `{"model":"gpt-5.2","messages":[{"role":"user","content":` + long + `}]}`, "This model's maximum context length is 5000 tokens. However, your messages resulted in "},
		{"responses", "/v1/responses", `{"model":"gpt-5.2","input":` + long + `}`, "Your input exceeds the context window of this model."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, srv := serve(t, &sim.Options{Window: 5000})
			a := post(t, srv, tt.path, tt.body)
			if a.status != http.StatusBadRequest || !strings.Contains(string(a.body), tt.text) {
				t.Errorf("status %d: %s", a.status, a.body)
			}
		})
	}
}

// If prompt and requested output together exceed the window, older models
// refuse; newer ones stop when it is full. Any prompt can be counted.
func TestOutputBeyondWindow(t *testing.T) {
	_, srv := serve(t, &sim.Options{Window: 120, Player: sim.NewAgent(&sim.AgentOptions{Words: 300})})
	body := func(model string) string {
		return `{"model":"` + model + `","max_tokens":1000,"tools":[` + readTool + `],"messages":[{"role":"user","content":"hi"}]}`
	}
	old := post(t, srv, "/v1/messages", body("claude-sonnet-4"))
	if old.status != 400 || !strings.Contains(string(old.body), "input length and `max_tokens` exceed context limit: ") {
		t.Errorf("%d %s", old.status, old.body)
	}
	newer := post(t, srv, "/v1/messages", body("claude-sonnet-4-5"))
	if newer.status != 200 || !strings.Contains(string(newer.body), `"stop_reason":"model_context_window_exceeded"`) {
		t.Errorf("%d %s", newer.status, newer.body)
	}
	long := strings.Replace(body("claude-sonnet-4-5"), `"hi"`, quote(strings.Repeat("word ", 500)), 1)
	if a := post(t, srv, "/v1/messages/count_tokens", long); a.status != 200 {
		t.Errorf("count: %d %s", a.status, a.body)
	}
}

// An answer ends at a token limit or a stop sequence.
func TestLimits(t *testing.T) {
	_, srv := serve(t, &sim.Options{Player: sim.PlayerFunc(func(context.Context, *protocol.Request) (sim.Reply, error) {
		return sim.Text("one two three STOP " + strings.Repeat("four ", 500)), nil
	})})
	tests := []struct{ path, body, want string }{
		{"/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":50,"messages":[{"role":"user","content":"hi"}]}`, `"stop_reason":"max_tokens"`},
		{"/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":50,"stop_sequences":["STOP"],"messages":[{"role":"user","content":"hi"}]}`, `"text":"one two three "}],"stop_reason":"stop_sequence","stop_sequence":"STOP"`},
		{"/v1/chat/completions", `{"model":"gpt-5.2","max_completion_tokens":50,"messages":[{"role":"user","content":"hi"}]}`, `"finish_reason":"length"`},
		{"/v1/chat/completions", `{"model":"gpt-5.2","stop":"STOP","messages":[{"role":"user","content":"hi"}]}`, `"content":"one two three "`},
		{"/v1/responses", `{"model":"gpt-5.2","max_output_tokens":50,"input":"hi"}`, `"status":"incomplete","background":false,"error":null,"incomplete_details":{"reason":"max_output_tokens"}`},
	}
	for _, tt := range tests {
		if a := post(t, srv, tt.path, tt.body); a.status != 200 || !strings.Contains(string(a.body), tt.want) {
			t.Errorf("%s: %d %s\nwant %s", tt.body, a.status, a.body, tt.want)
		}
	}
}

func TestBodyTooLarge(t *testing.T) {
	_, srv := serve(t, nil)
	a := post(t, srv, "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":1,"messages":[{"role":"user","content":"`+strings.Repeat("x", 33<<20)+`"}]}`)
	if a.err == nil && (a.status != http.StatusRequestEntityTooLarge || !strings.Contains(string(a.body), "request_too_large")) {
		t.Errorf("status %d: %.200s", a.status, a.body)
	}
}

// Bound thinking is refused, or dropped if requested, after anything before
// it has changed; it is accepted after changes that keep it valid.
func TestBoundThinking(t *testing.T) {
	const model = "claude-opus-5-5"
	d := anthropicDialect{extra: `,"thinking":{"type":"adaptive"}`}
	_, srv := serve(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 4, Thinking: 30})})
	_, history := loop(t, srv, d, model, true, d.user("Look around."))
	next := append(history, d.user("And now?"))
	edit := func(f func(list []map[string]any) []map[string]any) string {
		var list []map[string]any
		mustJSON(t, []byte(listOf(next)), &list)
		b, err := json.Marshal(f(list))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	tools := readTool
	content := func(m map[string]any) []any { return m["content"].([]any) }
	tests := []struct {
		name string
		edit func(list []map[string]any) []map[string]any
		want string // of the refusal; "" if none
	}{
		{"nothing changed", func(l []map[string]any) []map[string]any { return l }, ""},
		{"one more cache breakpoint", func(l []map[string]any) []map[string]any {
			content(l[2])[0].(map[string]any)["cache_control"] = map[string]any{"type": "ephemeral"}
			return l
		}, ""},
		{"a result masked", func(l []map[string]any) []map[string]any {
			content(l[2])[0].(map[string]any)["content"] = "[hidden]"
			return l
		}, "messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."},
		{"a result masked, later thinking removed", func(l []map[string]any) []map[string]any {
			content(l[2])[0].(map[string]any)["content"] = "[hidden]"
			for i := 3; i < len(l); i += 2 {
				if c := content(l[i]); c[0].(map[string]any)["type"] == "thinking" {
					l[i]["content"] = c[1:]
				}
			}
			return l
		}, ""},
		{"a deferred tool more", func(l []map[string]any) []map[string]any {
			tools = readTool + `,{"name":"later","input_schema":{"type":"object"},"defer_loading":true}`
			return l
		}, ""},
		{"a tool more", func(l []map[string]any) []map[string]any {
			tools = readTool + `,{"name":"now","input_schema":{"type":"object"}}`
			return l
		}, "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound"},
		{"the oldest thinking removed", func(l []map[string]any) []map[string]any {
			l[1]["content"] = content(l[1])[1:]
			return l
		}, ""},
		{"thinking removed from the middle", func(l []map[string]any) []map[string]any {
			l[3]["content"] = content(l[3])[1:]
			return l
		}, "messages.5.content.0: Invalid `signature`"},
		{"thinking reworded", func(l []map[string]any) []map[string]any {
			content(l[1])[0].(map[string]any)["thinking"] = "I thought otherwise."
			return l
		}, "messages.1.content.0: Invalid `signature` in `thinking` block"},
		{"a text added to an earlier message", func(l []map[string]any) []map[string]any {
			l[2]["content"] = append(content(l[2]), map[string]any{"type": "text", "text": "Reminder."})
			return l
		}, "messages.3.content.0: Invalid `signature`"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tools = readTool
			list := edit(tt.edit)
			body := `{"model":"` + model + `","max_tokens":4000,"system":"You are a test.","tools":[` + tools + `],"thinking":{"type":"adaptive"},"messages":` + list + `}`
			a := post(t, srv, "/v1/messages", body)
			if tt.want == "" && a.status != 200 || tt.want != "" && (a.status != 400 || !strings.Contains(string(a.body), tt.want)) {
				t.Errorf("status %d: %s\nwant %q", a.status, a.body, tt.want)
			}
			count := post(t, srv, "/v1/messages/count_tokens", body)
			if (count.status == 200) != (tt.want == "") {
				t.Errorf("count_tokens: status %d: %s", count.status, count.body)
			}
			if !strings.Contains(tt.want, "bound") {
				return
			}
			body = strings.Replace(body, `"type":"adaptive"`, `"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}`, 1)
			a = post(t, srv, "/v1/messages", body, "anthropic-beta", "thinking-binding-controls-2026-08-01")
			if a.status != 200 || !strings.Contains(string(a.body), `"input_transformations":[{"type":"thinking_dropped","path":"`+tt.want[:len("messages.3.content.0")]+`","reason":"prefix_binding_mismatch"}`) {
				t.Errorf("drop_block: status %d: %s", a.status, a.body)
			}
			if a = post(t, srv, "/v1/messages", body); a.status != 400 {
				t.Errorf("block_binding without its beta: status %d", a.status)
			}
		})
	}
}

// On models that do not bind thinking, it stays valid after edits before it.
func TestUnboundThinking(t *testing.T) {
	d := anthropicDialect{extra: `,"thinking":{"type":"enabled","budget_tokens":1024}`}
	_, srv := serve(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 3, Thinking: 30})})
	_, history := loop(t, srv, d, "claude-sonnet-4-5", false, d.user("Look around."))
	history[0] = d.user("Something else was asked.")
	a := post(t, srv, d.path(), d.body("claude-sonnet-4-5", append(history, d.user("And now?")), false))
	if a.status != 200 {
		t.Errorf("status %d: %s", a.status, a.body)
	}
}

func TestContextEditing(t *testing.T) {
	d := anthropicDialect{extra: `,"context_management":{"edits":[{"type":"clear_tool_uses_20250919","trigger":{"type":"input_tokens","value":900},"keep":{"type":"tool_uses","value":2}}]}`}
	_, srv := serve(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 12})})
	plain := anthropicDialect{}
	_, history := loop(t, srv, plain, "claude-sonnet-4-5", false, d.user("Look around."))
	history = append(history, d.user("And now?"))
	beta := []string{"anthropic-beta", "context-management-2025-06-27"}
	for _, stream := range []bool{false, true} {
		a := post(t, srv, d.path(), d.body("claude-sonnet-4-5", history, stream), beta...)
		body := a.body
		want := `"context_management":{"applied_edits":[{"type":"clear_tool_uses_20250919","cleared_tool_uses":10,"cleared_input_tokens":`
		if a.status != 200 || !strings.Contains(string(body), want) {
			t.Fatalf("status %d: %s", a.status, body)
		}
	}
	body := strings.Replace(d.body("claude-sonnet-4-5", history, false), `"max_tokens":64000,"stream":false,`, "", 1)
	a := post(t, srv, "/v1/messages/count_tokens", body, beta...)
	var count struct {
		Input   int `json:"input_tokens"`
		Context struct {
			Original int `json:"original_input_tokens"`
		} `json:"context_management"`
	}
	mustJSON(t, a.body, &count)
	if count.Input == 0 || count.Input >= count.Context.Original {
		t.Errorf("%s", a.body)
	}
}
