package openai

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
)

// refusal converts an error to a refusal, nil for no error.
func refusal(t *testing.T, err error) *protocol.Refusal {
	t.Helper()
	if err == nil {
		return nil
	}
	var r *protocol.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("%v is not a refusal", err)
	}
	return r
}

func bad(code, param, message string) *protocol.Refusal {
	return &protocol.Refusal{Status: 400, Type: "invalid_request_error", Code: code, Param: param, Message: message}
}

const (
	preceeding = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
	unanswered = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
)

func TestChatValidate(t *testing.T) {
	asks := func(ids ...string) string {
		var calls []string
		for _, id := range ids {
			calls = append(calls, `{"id":"`+id+`","type":"function","function":{"name":"f","arguments":"{}"}}`)
		}
		return `{"role":"assistant","content":null,"tool_calls":[` + strings.Join(calls, ",") + `]}`
	}
	tool := func(id string) string { return `{"role":"tool","tool_call_id":"` + id + `","content":"r"}` }
	const user = `{"role":"user","content":"u"}`
	list := func(messages ...string) string {
		return `{"model":"m","messages":[` + strings.Join(messages, ",") + `]}`
	}
	tests := []struct {
		name, body string
		want       *protocol.Refusal
		bytesOnly  bool // needs the bytes
	}{
		{"words", list(`{"role":"system","content":"s"}`, user, `{"role":"assistant","content":"a"}`, user), nil, false},
		{"a call and its result", list(user, asks("c1"), tool("c1"), user), nil, false},
		{"parallel calls answered in another order", list(user, asks("c1", "c2"), tool("c2"), tool("c1"), `{"role":"assistant","content":"a"}`), nil, false},
		{"the same id in another step", list(user, asks("c1"), tool("c1"), asks("c1"), tool("c1")), nil, false},
		{"legacy", list(user, `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`, `{"role":"function","name":"f","content":"r"}`, user), nil, false},
		{"a free-form call", list(user, `{"role":"assistant","tool_calls":[{"id":"c1","type":"custom","custom":{"name":"f","input":"x"}}]}`, tool("c1")), nil, false},
		{"more breakpoints than are written", list(`{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"a","prompt_cache_breakpoint":{"mode":"explicit"}},`, 9) + `{"type":"text","text":"b"}]}`), nil, false},

		{"no messages field", `{"model":"m"}`, bad("missing_required_parameter", "messages", "Missing required parameter: 'messages'."), true},
		{"null messages", `{"messages":null}`, bad("invalid_type", "messages", "Invalid type for 'messages': expected an array of objects, but got null instead."), true},
		{"empty list", list(), bad("empty_array", "messages", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead."), false},
		{"a user speaks before the result", list(user, asks("c1", "c2"), tool("c2"), user), bad("", "messages.[3].role", unanswered+"c1"), false},
		{"the model speaks before the result", list(user, asks("c1", "c2"), `{"role":"assistant","content":"a"}`), bad("", "messages.[2].role", unanswered+"c1, c2"), false},
		{"the list ends before the result", list(user, asks("c1")), bad("", "messages", unanswered+"c1"), false},
		{"begins with a result", list(tool("c1"), user), bad("", "messages.[0].role", preceeding), false},
		{"a result after text", list(user, tool("c1")), bad("", "messages.[1].role", preceeding), false},
		{"a result after its step", list(user, asks("c1"), tool("c1"), user, tool("c1")), bad("", "messages.[4].role", preceeding), false},
		{"two results of one call", list(user, asks("c1"), tool("c1"), tool("c1")), bad("", "messages.[3].tool_call_id", "Invalid parameter: Duplicate value for 'tool_call_id' of 'c1', in messages[2] and messages[3]."), false},
		{"a foreign result", list(user, asks("c1"), tool("c9")), bad("", "messages.[2].tool_call_id", "Invalid parameter: 'tool_call_id' of 'c9' not found in 'tool_calls' of previous message."), false},
		{"a result without id", list(user, asks("c1"), `{"role":"tool","content":"r"}`), bad("", "messages.[2].tool_call_id", "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'."), false},
		{"an unknown role", list(`{"role":"robot","content":"u"}`), bad("invalid_value", "messages[0].role", "Invalid value: 'robot'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."), false},
		{"an image in a result", list(user, asks("c1"), `{"role":"tool","tool_call_id":"c1","content":[{"type":"image_url","image_url":{"url":"https://e.com/i"}}]}`),
			bad("invalid_value", "messages.[2]", "Invalid 'messages[2]'. Image URLs are only allowed for messages with role 'user', but this message with role 'tool' contains an image URL."), false},
		{"arguments that are an object", list(user, `{"role":"assistant","tool_calls":[{"id":"c0","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"c1","type":"function","function":{"name":"f","arguments":{}}}]}`, tool("c0"), tool("c1")),
			bad("invalid_type", "messages[1].tool_calls[1].function.arguments", "Invalid type for 'messages[1].tool_calls[1].function.arguments': expected a string, but got an object instead."), true},
		{"no arguments", list(user, `{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f"}}]}`, tool("c1")),
			bad("missing_required_parameter", "messages[1].tool_calls[0].function.arguments", "Missing required parameter: 'messages[1].tool_calls[0].function.arguments'."), true},
		{"free-form input that is a number", list(user, `{"role":"assistant","tool_calls":[{"id":"c1","type":"custom","custom":{"name":"f","input":1}}]}`, tool("c1")),
			bad("invalid_type", "messages[1].tool_calls[0].custom.input", "Invalid type for 'messages[1].tool_calls[0].custom.input': expected a string, but got a number instead."), true},
		{"empty calls", list(user, `{"role":"assistant","content":"a","tool_calls":[]}`), bad("empty_array", "messages[1].tool_calls", "Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead."), true},
		{"no content", list(user, `{"role":"assistant","content":null}`), bad("", "messages.[1].content", "Invalid value for 'content': expected a string, got null."), true},
		{"content of another type", list(`{"role":"user","content":{}}`), bad("invalid_type", "messages[0].content", "Invalid type for 'messages[0].content': expected one of a string or array of objects, but got an object instead."), true},
		{"a long cache key", `{"prompt_cache_key":"` + strings.Repeat("é", 65) + `","messages":[` + user + `]}`,
			bad("string_above_max_length", "prompt_cache_key", "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but got a string with length 65 instead."), true},
		{"a cache key", `{"prompt_cache_key":"` + strings.Repeat("é", 64) + `","messages":[` + user + `]}`, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := request(t, Chat, tt.body)
			if got := refusal(t, Chat.Validate(req, furl.Model{})); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
			req.Body = nil
			want := tt.want
			if tt.bytesOnly && len(req.Messages) > 0 {
				want = nil
			} else if tt.bytesOnly {
				return
			}
			if got := refusal(t, Chat.Validate(req, furl.Model{})); !reflect.DeepEqual(got, want) {
				t.Errorf("without the body: got %+v, want %+v", got, want)
			}
		})
	}
	req := request(t, Chat, list(user, user, user))
	got := refusal(t, Chat.Validate(req, furl.Model{MaxMessages: 2}))
	if want := bad("array_above_max_length", "messages", "Invalid 'messages': array too long. Expected an array with maximum length 2, but got an array with length 3 instead."); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestResponsesValidate(t *testing.T) {
	fc := func(id string) string {
		return `{"type":"function_call","call_id":"` + id + `","name":"f","arguments":"{}"}`
	}
	out := func(id string) string { return `{"type":"function_call_output","call_id":"` + id + `","output":"r"}` }
	byProgram := func(id string) string {
		return `{"type":"function_call","call_id":"` + id + `","name":"f","arguments":"{}","caller":{"type":"program","caller_id":"p1"}}`
	}
	const (
		user      = `{"role":"user","content":"u"}`
		says      = `{"type":"message","id":"msg_1","role":"assistant","content":"a"}`
		reasoning = `{"type":"reasoning","id":"rs_1","summary":[]}`
		trigger   = `{"type":"compaction_trigger"}`
		program   = `{"type":"program","id":"prog_1","call_id":"p1","code":"x()","fingerprint":"f1"}`
		ran       = `{"type":"program_output","id":"out_1","call_id":"p1","result":"r","status":"completed"}`
	)
	list := func(items ...string) string { return `{"model":"m","input":[` + strings.Join(items, ",") + `]}` }
	tests := []struct {
		name, body string
		want       *protocol.Refusal
		bytesOnly  bool
	}{
		{"a string", `{"input":"hi"}`, nil, false},
		{"calls and outputs, also after text and out of order", list(user, reasoning, says, fc("c1"), fc("c2"), user, out("c2"), out("c1")), nil, false},
		{"a program over two rounds", list(user, program, byProgram("c1"), out("c1"), byProgram("c2"), out("c2"), ran, says, user), nil, false},
		{"a program that waits", list(user, program, byProgram("c1"), out("c1")), nil, false},
		{"a program without output", list(user, program, byProgram("c1"), out("c1"), user), bad("", "input", "No program output found for program p1."), false},
		{"a program's output without it", list(user, ran, user), bad("", "input", "No program found for program output with call_id p1."), false},
		{"a program's call without it", list(user, byProgram("c1"), out("c1")), bad("", "input", "No program found for function call with call_id c1."), false},
		{"the same id again", list(fc("c1"), out("c1"), fc("c1"), out("c1")), nil, false},
		{"other families", list(`{"type":"custom_tool_call","call_id":"c1","name":"p","input":"x"}`, `{"type":"custom_tool_call_output","call_id":"c1","output":"r"}`,
			`{"type":"local_shell_call","id":"l","call_id":"c2","action":{}}`, out("c2"), `{"type":"computer_call","id":"cu_1","call_id":"c3","action":{}}`, `{"type":"computer_call_output","call_id":"c3","output":{}}`), nil, false},
		{"reasoning without an id", list(user, `{"type":"reasoning","summary":[],"encrypted_content":"QUJD"}`, user), nil, false},
		{"reasoning in a row", list(user, reasoning, `{"type":"reasoning","id":"rs_2","summary":[]}`, says), nil, false},
		{"an id whose reasoning is unknown", list(user, says, user), nil, false},
		{"an output of an earlier call", `{"previous_response_id":"resp_1","input":[` + out("c1") + `]}`, nil, false},
		{"an output of what is only named", list(`{"type":"item_reference","id":"fc_1"}`, out("c1")), nil, false},
		{"a trigger at the end", list(user, trigger), nil, false},

		{"no input", `{"model":"m"}`, bad("missing_required_parameter", "input", `One of "input" or "previous_response_id" or 'prompt' or 'conversation_id' must be provided.`), false},
		{"input of another type", `{"input":null}`, bad("invalid_type", "input", "Invalid type for 'input': expected one of a string or array of input items, but got null instead."), true},
		{"a call without output", list(user, fc("c1"), fc("c2"), out("c2")), bad("", "input", "No tool output found for function call c1."), false},
		{"two calls, one output", list(fc("c1"), fc("c1"), out("c1")), bad("", "input", "No tool output found for function call c1."), false},
		{"a custom call without output", list(`{"type":"custom_tool_call","call_id":"c1","name":"p","input":"x"}`), bad("", "input", "No tool output found for custom tool call c1."), false},
		{"a computer call without output", list(`{"type":"computer_call","id":"cu_1","call_id":"c3","action":{}}`), bad("", "input", "No tool output found for computer call c3."), false},
		{"an output without call", list(user, out("c1")), bad("", "input", "No tool call found for function call output with call_id c1."), false},
		{"an output before its call", list(user, out("c1"), fc("c1")), bad("", "input", "No tool call found for function call output with call_id c1."), false},
		{"two outputs of one call", list(fc("c1"), out("c1"), out("c1")), bad("", "input", "No tool call found for function call output with call_id c1."), false},
		{"a custom output without call", list(`{"type":"custom_tool_call_output","call_id":"c1","output":"r"}`), bad("", "input", "No tool call found for custom tool call output with call_id c1."), false},
		{"reasoning at the end", list(user, reasoning), bad("", "input", "Item 'rs_1' of type 'reasoning' was provided without its required following item."), false},
		{"reasoning before the user", list(user, reasoning, user), bad("", "input", "Item 'rs_1' of type 'reasoning' was provided without its required following item."), false},
		{"reasoning before an output", list(fc("c1"), reasoning, out("c1")), bad("", "input", "Item 'rs_1' of type 'reasoning' was provided without its required following item."), false},
		{"reasoning twice", list(reasoning, says, reasoning, says), bad("", "input", "Duplicate item found with id rs_1. Remove duplicate items from your input and try again."), false},
		{"a message twice", list(says, user, says), bad("", "input", "Duplicate item found with id msg_1. Remove duplicate items from your input and try again."), true},
		{"a trigger that is not last", list(trigger, user), bad("", "input", "Item of type 'compaction_trigger' must be the last item of 'input'."), false},
		{"arguments that are an object", list(fc("c0"), out("c0"), `{"type":"function_call","call_id":"c1","name":"f","arguments":{}}`, out("c1")), bad("invalid_type", "input[2].arguments", "Invalid type for 'input[2].arguments': expected a string, but got an object instead."), true},
		{"no arguments", list(`{"type":"function_call","call_id":"c1","name":"f"}`, out("c1")), bad("missing_required_parameter", "input[0].arguments", "Missing required parameter: 'input[0].arguments'."), true},
		{"no custom input", list(`{"type":"custom_tool_call","call_id":"c1","name":"f"}`, out("c1")), bad("missing_required_parameter", "input[0].input", "Missing required parameter: 'input[0].input'."), true},
		{"an output that is an object", list(fc("c1"), `{"type":"function_call_output","call_id":"c1","output":{}}`), bad("invalid_type", "input[1].output", "Invalid type for 'input[1].output': expected one of a string or array of objects, but got an object instead."), true},
		{"two kinds of state", `{"previous_response_id":"resp_1","conversation":"conv_1","input":"a"}`, bad("mutually_exclusive_parameters", "",
			"Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Ensure you are only providing one of: 'previous_response_id' or 'conversation'."), true},
		{"a long cache key", `{"prompt_cache_key":"` + strings.Repeat("k", 77) + `","input":"a"}`,
			bad("string_above_max_length", "prompt_cache_key", "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but got a string with length 77 instead."), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := request(t, Responses, tt.body)
			if got := refusal(t, Responses.Validate(req, furl.Model{})); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
			if tt.bytesOnly || isStateful(req) {
				return
			}
			req.Body = nil
			if got := refusal(t, Responses.Validate(req, furl.Model{})); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("without the body: got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestCheckReasoning(t *testing.T) {
	decode := func(items ...string) []furl.Message {
		return request(t, Responses, `{"input":[`+strings.Join(items, ",")+`]}`).Messages
	}
	of := ReasoningOf(decode(steps...))
	want := map[string]string{"msg_1": "rs_1", "fc_1": "rs_1", "fc_2": "rs_1", "ws_1": "rs_2", "ig_1": "rs_2", "msg_2": "rs_2"}
	if !reflect.DeepEqual(of, want) {
		t.Fatalf("got %v, want %v", of, want)
	}
	tests := []struct {
		name  string
		items []string
		want  string
	}{
		{"all", steps, ""},
		{"the reply without its reasoning", append(steps[:1:1], steps[2:]...), "Item 'msg_1' of type 'message' was provided without its required 'reasoning' item: 'rs_1'."},
		{"a call of other reasoning", []string{steps[9], steps[4], steps[6]}, "Item 'fc_2' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'."},
		{"an item without a type", []string{`{"role":"assistant","content":"a","id":"msg_1"}`}, "Item 'msg_1' of type 'message' was provided without its required 'reasoning' item: 'rs_1'."},
		{"an item without its id", []string{`{"role":"assistant","content":"a"}`}, ""},
	}
	for _, tt := range tests {
		got := ""
		if err := CheckReasoning(decode(tt.items...), of); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestErrorBody(t *testing.T) {
	got := string(ErrorBody(refuse("", "messages.[1].role", "%s", `<"x">`)))
	if want := `{"error":{"message":"<\"x\">","type":"invalid_request_error","param":"messages.[1].role","code":null}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestOverflow(t *testing.T) {
	chatText := "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens. Please reduce the length of the messages."
	if got, want := Overflow(furl.FormatChat, 130001, 128000), bad("context_length_exceeded", "messages", chatText); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	text := "Your input exceeds the context window of this model. Please adjust your input and try again."
	if got, want := Overflow(furl.FormatResponses, 130001, 128000), bad("context_length_exceeded", "input", text); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestParseOverflow(t *testing.T) {
	message := func(text string) string {
		return fmt.Sprintf(`{"error":{"message":%s,"type":"invalid_request_error","param":"messages","code":null}}`, quote(text))
	}
	tests := []struct {
		name            string
		status          int
		body            string
		reported, limit int
		ok              bool
	}{
		{"chat", 400, string(ErrorBody(Overflow(furl.FormatChat, 130001, 128000))), 130001, 128000, true},
		{"responses", 400, string(ErrorBody(Overflow(furl.FormatResponses, 1, 2))), 0, 0, true},
		{"with functions", 400, message("This model's maximum context length is 128000 tokens. However, your messages resulted in 202868 tokens (202767 in the messages, 101 in the functions). Please reduce the length of the messages or functions."), 202868, 128000, true},
		{"with the completion", 400, message("This model's maximum context length is 4097 tokens. However, you requested 4203 tokens (3703 in the messages, 500 in the completion). Please reduce the length of the messages or completion."), 3703, 4097, true},
		{"input limit", 400, `{"error":{"message":"Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300123 tokens. Please reduce the length of the messages.","code":"context_length_exceeded"}}`, 300123, 272000, true},
		{"failed stream", 200, `{"type":"response.failed","sequence_number":3,"response":{"id":"resp_1","status":"failed","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}}`, 0, 0, true},
		{"error event", 200, `{"type":"error","code":"context_length_exceeded","message":"Your input exceeds the context window of this model.","param":null}`, 0, 0, true},
		{"error event, nested", 200, `{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"x"}}`, 0, 0, true},
		{"vLLM", 400, `{"object":"error","message":"This model's maximum context length is 32768 tokens. However, you requested 40000 tokens in total. Please reduce it.","type":"BadRequestError","code":400}`, 40000, 32768, true},
		{"llama.cpp", 400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192}}`, 9000, 8192, true},
		{"Mistral", 400, `{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error"}`, 40000, 32768, true},
		{"Anthropic's text passed on", 400, message("prompt is too long: 210000 tokens > 200000 maximum"), 210000, 200000, true},
		{"tokens per minute", 429, `{"error":{"message":"Request too large for gpt-4o: Limit 30000, Requested 40000","type":"tokens","code":"rate_limit_exceeded"}}`, 0, 0, false},
		{"another error", 400, message("Invalid value: 'robot'."), 0, 0, false},
		{"another code", 400, `{"error":{"message":"no","code":"invalid_value"}}`, 0, 0, false},
		{"a reply", 200, `{"id":"chatcmpl-1","choices":[{"message":{"content":"the maximum context length is 5"}}]}`, 0, 0, false},
		{"no JSON", 413, `<html>Request Entity Too Large</html>`, 0, 0, false},
		{"nothing", 400, ``, 0, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			reported, limit, ok := ParseOverflow(tt.status, []byte(tt.body))
			if reported != tt.reported || limit != tt.limit || ok != tt.ok {
				t.Errorf("got %d, %d, %v, want %d, %d, %v", reported, limit, ok, tt.reported, tt.limit, tt.ok)
			}
		})
	}
}

func TestDecodeUsage(t *testing.T) {
	tests := []struct {
		name, raw string
		want      furl.Usage
	}{
		{"chat", `{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":5}}`,
			furl.Usage{Input: 10, CacheRead: 60, CacheWrite: 30, Output: 20, Reasoning: 5}},
		{"responses", `{"input_tokens":100,"input_tokens_details":{"cached_tokens":64},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":107}`,
			furl.Usage{Input: 36, CacheRead: 64, Output: 7, Reasoning: 3}},
		{"Codex", `{"input_tokens":100,"cached_input_tokens":64,"output_tokens":7,"reasoning_output_tokens":3,"total_tokens":107}`, furl.Usage{Input: 36, CacheRead: 64, Output: 7, Reasoning: 3}},
		{"DeepSeek", `{"prompt_tokens":100,"completion_tokens":7,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}`, furl.Usage{Input: 36, CacheRead: 64, Output: 7}},
		{"in a response", `{"id":"x","output":[{"type":"message","usage":"no"}],"usage":{"input_tokens":5,"output_tokens":6}}`, furl.Usage{Input: 5, Output: 6}},
		{"in an event", `{"type":"response.completed","response":{"usage":{"input_tokens":5,"output_tokens":6}}}`, furl.Usage{Input: 5, Output: 6}},
		{"in the last chunk", `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":0}}`, furl.Usage{Input: 5}},
		{"in an earlier chunk", `{"choices":[{}],"usage":null}`, furl.Usage{}},
		{"null details", `{"prompt_tokens":5,"completion_tokens":1,"prompt_tokens_details":null}`, furl.Usage{Input: 5, Output: 1}},
		{"null", `null`, furl.Usage{}},
		{"more cached than there is", `{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":9}}`, furl.Usage{CacheRead: 9}},
		{"numbers that are none", `{"prompt_tokens":-5,"completion_tokens":1.5,"prompt_tokens_details":[1]}`, furl.Usage{}},
	}
	for _, tt := range tests {
		if got, err := DecodeUsage([]byte(tt.raw)); err != nil || got != tt.want {
			t.Errorf("%s: got %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
	}
	for _, raw := range []string{``, `[]`, `{"prompt_tokens":`, `1`} {
		if u, err := DecodeUsage([]byte(raw)); err == nil {
			t.Errorf("%q: got %+v, want an error", raw, u)
		}
	}
}
