package openai

import (
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

func TestResponsesEncodeMessage(t *testing.T) {
	const parts = `{"type":"message","role":"user","content":[ {"type":"input_text","text":"a"} , {"type":"input_image","image_url":"https://e.com/i","prompt_cache_breakpoint":{"mode":"explicit"}} ],"x":1.0}`
	const local = `{"type":"local_shell_call","id":"l","call_id":"c","action":{"type":"exec","command":["cat","<long>"],"env":{}},"status":"completed"}`
	const shell = `{"type":"shell_call","call_id":"c","action":{"commands":["cat long"],"timeout_ms":1000}}`
	const patch = `{"type":"apply_patch_call","call_id":"c","operation":{"type":"update_file","path":"a.go","diff":"long"}}`
	all := func(text string) func(*furl.Shown) { return func(s *furl.Shown) { edit(s, 0, text) } }
	tests := []struct {
		name, raw string
		change    func(*furl.Shown)
		want      string // "": all blocks are hidden
	}{
		{"as recorded", parts, func(*furl.Shown) {}, parts},
		{"a string", `"hi"`, func(*furl.Shown) {}, `{"type":"message","role":"user","content":"hi"}`},
		{"a string, edited", `"hi"`, all("ho"), `{"type":"message","role":"user","content":"ho"}`},
		{"string content", `{"role":"user","content":"a"}`, all("b"), `{"role":"user","content":"b"}`},
		{"no content", `{"role":"user"}`, all("b"), `{"role":"user","content":"b"}`},
		{"text part", parts, all("A"), strings.Replace(parts, `"text":"a"`, `"text":"A"`, 1)},
		{"X6 image", parts, func(s *furl.Shown) { edit(s, 1, "[image hidden]") },
			strings.Replace(parts, `{"type":"input_image","image_url":"https://e.com/i",`, `{"type":"input_text","text":"[image hidden]",`, 1)},
		{"part hidden", parts, func(s *furl.Shown) { hide(s, 1) }, `{"type":"message","role":"user","content":[ {"type":"input_text","text":"a"} ],"x":1.0}`},
		{"all hidden", parts, func(s *furl.Shown) { hide(s, 0, 1) }, ""},
		{"refusal", `{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`, all("[no]"), `{"role":"assistant","content":[{"type":"refusal","refusal":"[no]"}]}`},
		{"thinking hidden", `{"type":"reasoning","id":"rs_1","summary":[]}`, func(s *furl.Shown) { hide(s, 0) }, ""},
		{"X5 arguments", `{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{\"a\":\"long\"}"}`, all(`{"a":"[short]"}`),
			`{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{\"a\":\"[short]\"}"}`},
		{"X5 arguments that are not JSON", `{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`, all(`short`),
			`{"type":"function_call","call_id":"c","name":"f","arguments":"{\"furl_shortened\":\"short\"}"}`},
		{"X5 free-form input", `{"type":"custom_tool_call","call_id":"c","name":"f","input":"long"}`, all(`"short"`), `{"type":"custom_tool_call","call_id":"c","name":"f","input":"short"}`},
		{"X5 free-form input, given as text", `{"type":"custom_tool_call","call_id":"c","name":"f","input":"long"}`, all(`short`), `{"type":"custom_tool_call","call_id":"c","name":"f","input":"short"}`},
		{"X5 local shell", local, all(`{"type":"exec","command":["cat","[short]"],"env":{}}`), strings.Replace(local, `"<long>"`, `"[short]"`, 1)},
		{"X5 local shell with another structure", local, all(`{"type":"exec","command":"cat"}`), strings.Replace(local, `["cat","<long>"]`, `["{\"type\":\"exec\",\"command\":\"cat\"}"]`, 1)},
		{"X5 shell, given as text", shell, all(`short`), strings.Replace(shell, `["cat long"]`, `["short"]`, 1)},
		{"X5 patch", patch, all(`{"type":"update_file","path":"a.go","diff":"[short]"}`), strings.Replace(patch, `"long"`, `"[short]"`, 1)},
		{"X5 patch, given as text", patch, all(`short`), strings.Replace(patch, `"long"`, `"short"`, 1)},
		{"X5 patch that has nothing to shorten", strings.Replace(patch, `,"diff":"long"`, ``, 1), all(`short`), strings.Replace(patch, `,"diff":"long"`, ``, 1)},
		{"M8 output", `{"type":"function_call_output","call_id":"c","output":"long"}`, all("[masked]"), `{"type":"function_call_output","call_id":"c","output":"[masked]"}`},
		{"M8 output in parts", `{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"long"},{"type":"input_image","image_url":"https://e.com/i"}]}`, all("[masked]"), `{"type":"function_call_output","call_id":"c","output":"[masked]"}`},
		{"M8 marked output", `{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"long","prompt_cache_breakpoint":{"mode":"explicit"}}]}`, all("[masked]"),
			`{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"[masked]","prompt_cache_breakpoint":{"mode":"explicit"}}]}`},
		{"M8 shell output", `{"type":"shell_call_output","call_id":"c","max_output_length":9,"output":[{"stdout":"long","stderr":"","outcome":{"type":"exit","exit_code":0}},{"stdout":"","stderr":"x","outcome":{"type":"exit","exit_code":2}}]}`, all("[masked]"),
			`{"type":"shell_call_output","call_id":"c","max_output_length":9,"output":[{"stdout":"[masked]","stderr":"","outcome":{"type":"exit","exit_code":2}}]}`},
		{"M8 patch output without text", `{"type":"apply_patch_call_output","call_id":"c","status":"completed"}`, all("[masked]"), `{"type":"apply_patch_call_output","call_id":"c","status":"completed","output":"[masked]"}`},
		{"output hidden", `{"type":"function_call_output","call_id":"c","output":"long"}`, func(s *furl.Shown) { hide(s, 0) }, ""},
		{"opaque", `{"type":"compaction","encrypted_content":"QUJD"}`, func(*furl.Shown) {}, `{"type":"compaction","encrypted_content":"QUJD"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := message(t, Responses, tt.raw)
			s := shown(m, 0)
			tt.change(&s)
			got, err := Responses.EncodeMessage(s)
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == "" {
				sameElements(t, got)
				return
			}
			sameElements(t, got, tt.want)
		})
	}
}

func TestResponsesEncodeForeign(t *testing.T) {
	tests := []struct {
		name string
		msg  *furl.Message
		want []string
	}{
		{"marker", furl.TextMessage(furl.RoleUser, "m"), []string{`{"type":"message","role":"user","content":[{"type":"input_text","text":"m"}]}`}},
		{"thinking, text and calls", foreign(furl.RoleAssistant, furl.Block{Kind: furl.KindThinking, Text: "hm"}, text("a"), text("b"), call("t1", "f", `{"a": 1}`), text("c"), call("t2", "g", `"free"`)),
			[]string{`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]}`,
				`{"type":"function_call","call_id":"t1","name":"f","arguments":"{\"a\": 1}"}`,
				`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"c"}]}`,
				`{"type":"function_call","call_id":"t2","name":"g","arguments":"{\"input\":\"free\"}"}`}},
		{"results, then text", foreign(furl.RoleUser, result("t1", "one"), result("t2", ""), text("go on")),
			[]string{`{"type":"function_call_output","call_id":"t1","output":"one"}`, `{"type":"function_call_output","call_id":"t2","output":"(no output)"}`, `{"type":"message","role":"user","content":[{"type":"input_text","text":"go on"}]}`}},
		{"from Chat Completions", message(t, Chat, `{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"c1","type":"custom","custom":{"name":"p","input":"x"}}]}`),
			[]string{`{"type":"function_call","call_id":"c1","name":"p","arguments":"{\"input\":\"x\"}"}`}},
		{"nothing that can be encoded", foreign(furl.RoleAssistant, furl.Block{Kind: furl.KindThinking, Text: "hm"}), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Responses.EncodeMessage(shown(tt.msg, 0))
			if err != nil {
				t.Fatal(err)
			}
			sameElements(t, got, tt.want...)
		})
	}
}

// steps is an input with reasoning: two responses of the model and their
// calls.
var steps = []string{
	`{"role":"user","content":"u"}`,                                                   // 0
	`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"QUJD"}`,        // 1
	`{"type":"message","id":"msg_1","role":"assistant","content":"a"}`,                // 2
	`{"id":"fc_1","type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`, // 3
	`{"type":"function_call","call_id":"c2","name":"f","arguments":"{}","id":"fc_2"}`, // 4
	`{"type":"function_call_output","call_id":"c1","output":"one"}`,                   // 5
	`{"type":"function_call_output","call_id":"c2","output":"two","id":"fco_2"}`,      // 6
	`{"type":"function_call","call_id":"c3","name":"f","arguments":"{}","id":"fc_3"}`, // 7, without reasoning
	`{"type":"function_call_output","call_id":"c3","output":"three"}`,                 // 8
	`{"type":"reasoning","id":"rs_2","summary":[]}`,                                   // 9
	`{"type":"web_search_call","id":"ws_1","status":"completed"}`,                     // 10
	`{"type":"image_generation_call","id":"ig_1","status":"completed","result":null}`, // 11
	`{"type":"message","id":"msg_2","role":"assistant","content":"done"}`,             // 12
	`{"role":"user","content":"v"}`,                                                   // 13
}

// Wire invariant 20: items whose reasoning is not shown are sent without the
// id that the provider would check.
func TestResponsesReasoningGone(t *testing.T) {
	const none = ""
	tests := []struct {
		name   string
		change func(v *furl.View)
		want   map[int]string // items that differ; none: not sent
	}{
		{"nothing", func(*furl.View) {}, nil},
		{"the first", func(v *furl.View) { hide(&v.Messages[1], 0) }, map[int]string{
			1: none,
			2: `{"type":"message","role":"assistant","content":"a"}`,
			3: `{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`,
			4: `{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"}`,
		}},
		{"the first, not in the view at all", func(v *furl.View) { v.Messages = append(v.Messages[:1:1], v.Messages[2:]...) }, map[int]string{
			1: none,
			2: `{"type":"message","role":"assistant","content":"a"}`,
			3: `{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`,
			4: `{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"}`,
		}},
		{"the second; an item that needs its id keeps it", func(v *furl.View) { hide(&v.Messages[9], 0) }, map[int]string{
			9:  none,
			10: `{"type":"web_search_call","status":"completed"}`,
			12: `{"type":"message","role":"assistant","content":"done"}`,
		}},
		{"with an edit", func(v *furl.View) { hide(&v.Messages[1], 0); edit(&v.Messages[3], 0, `{"a":1}`) }, map[int]string{
			1: none,
			2: `{"type":"message","role":"assistant","content":"a"}`,
			3: `{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":1}"}`,
			4: `{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"}`,
		}},
		{"reasoning without its product", func(v *furl.View) { hide(&v.Messages[2], 0) }, map[int]string{
			1: none, 2: none,
			3: `{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`,
			4: `{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"}`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := request(t, Responses, `{"input":[`+strings.Join(steps, ",")+`]}`)
			v := identity(req)
			tt.change(v)
			var want []string
			for i, item := range steps {
				if changed, ok := tt.want[i]; ok {
					item = changed
				}
				if item != none {
					want = append(want, item)
				}
			}
			got, err := Responses.EncodeRequest(req, v)
			if err != nil {
				t.Fatal(err)
			}
			if want := `{"input":[` + strings.Join(want, ",") + `]}`; string(got) != want {
				t.Errorf("request\ngot  %s\nwant %s", got, want)
			}
			items, err := EncodeResponses(v)
			if err != nil {
				t.Fatal(err)
			}
			sameElements(t, items, want...)
			sent := request(t, Responses, string(got))
			if err := Responses.Validate(sent, furl.Model{}); err != nil {
				t.Error(err)
			}
			of := ReasoningOf(req.Messages)
			delete(of, "ig_1") // cannot be avoided
			if err := CheckReasoning(sent.Messages, of); err != nil {
				t.Error(err)
			}
		})
	}
}

// A step hidden under a marker includes its reasoning and leaves everything
// else unchanged.
func TestResponsesStepHidden(t *testing.T) {
	req := request(t, Responses, `{"input":[`+strings.Join(steps, ",")+`]}`)
	v := identity(req)
	v.Messages = append(append(v.Messages[:1:1], mark("[1 step hidden]")), v.Messages[7:]...)
	got, err := Responses.EncodeRequest(req, v)
	if err != nil {
		t.Fatal(err)
	}
	note := `{"type":"message","role":"user","content":[{"type":"input_text","text":"[1 step hidden]"}]}`
	want := `{"input":[` + steps[0] + `,` + note + `,` + strings.Join(steps[7:], ",") + `]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if err := Responses.Validate(request(t, Responses, string(got)), furl.Model{}); err != nil {
		t.Error(err)
	}
}

func TestResponsesEncodeString(t *testing.T) {
	body := `{"model":"m", "input" : "hi \u0041" , "store":false}`
	tests := []struct {
		name   string
		change func(v *furl.View)
		want   string
	}{
		{"nothing", func(*furl.View) {}, body},
		{"edited", func(v *furl.View) { edit(&v.Messages[0], 0, "ho") }, strings.Replace(body, `"hi \u0041"`, `"ho"`, 1)},
		{"with a marker", func(v *furl.View) { v.Messages = append(v.Messages, mark("m")) },
			strings.Replace(body, `"hi \u0041"`, `[{"type":"message","role":"user","content":"hi \u0041"},{"type":"message","role":"user","content":[{"type":"input_text","text":"m"}]}]`, 1)},
		{"hidden under a marker", func(v *furl.View) { v.Messages[0] = mark("m") },
			strings.Replace(body, `"hi \u0041"`, `[{"type":"message","role":"user","content":[{"type":"input_text","text":"m"}]}]`, 1)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := request(t, Responses, body)
			v := identity(req)
			tt.change(v)
			got, err := Responses.EncodeRequest(req, v)
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}

// Wire invariant 20: nothing is hidden in a request whose history is stored
// by the provider.
func TestResponsesStatefulIsLeftAlone(t *testing.T) {
	req := request(t, Responses, `{"previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"c1","output":"long"}]}`)
	v := identity(req)
	edit(&v.Messages[0], 0, "[masked]")
	got, err := Responses.EncodeRequest(req, v)
	if err != nil || &got[0] != &req.Body[0] {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestResponsesNewMessage(t *testing.T) {
	tests := []struct {
		name   string
		role   furl.Role
		blocks []furl.Block
		want   string // "": an error
	}{
		{"words", furl.RoleAssistant, []furl.Block{text("a")}, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}`},
		{"a call", furl.RoleAssistant, []furl.Block{call("c1", "f", `{"x":1}`)}, `{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"x\":1}"}`},
		{"a result", furl.RoleTool, []furl.Block{{Kind: furl.KindResult, ID: "c1", Text: "no", Error: true}}, `{"type":"function_call_output","call_id":"c1","output":"no"}`},
		{"thinking", furl.RoleAssistant, []furl.Block{{Kind: furl.KindThinking, ID: "rs_1", Text: "hm"}}, `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}]}`},
		{"text and a call", furl.RoleAssistant, []furl.Block{text("a"), call("c1", "f", `{}`)}, ""},
		{"nothing", furl.RoleUser, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Responses.NewMessage(tt.role, tt.blocks)
			if tt.want == "" {
				if err == nil {
					t.Errorf("got %s, want an error", m.Raw)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(m.Raw) != tt.want || m.Role != tt.role {
				t.Errorf("got %s\nwant %s", m.Raw, tt.want)
			}
			sameBlocks(t, m.Blocks, tt.blocks)
		})
	}
}
