package anthropic

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
)

func TestParseOverflow(t *testing.T) {
	for _, test := range []struct {
		name            string
		status          int
		body            string
		reported, limit int
		ok              bool
	}{
		{"prompt", 400, string(ErrorBody(PromptTooLong(210445, 200000), "req_1")), 210445, 200000, true},
		{"prompt and output", 400, string(ErrorBody(OutputTooLong(199759, 8192, 200000), "")), 199759, 191808, true},
		{"output alone over the window", 400, string(ErrorBody(OutputTooLong(10, 300000, 200000), "")), 10, 0, true},
		{"bytes", 413, string(ErrorBody(BodyTooLarge(), "")), 0, 0, true},
		{"bytes, from the edge", 413, `{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, 0, 0, true},
		{"an edge that speaks no JSON", 413, `<html>413 Request Entity Too Large</html>`, 0, 0, true},
		{"wrapped by a gateway", 400, `{"error":{"message":"AnthropicException - {\"type\":\"error\",\"error\":{\"message\":\"prompt is too long: 5 tokens > 4 maximum\"}}"}}`, 5, 4, true},
		{"Bedrock", 400, `{"message":"Input is too long for requested model."}`, 0, 0, true},
		{"no figures", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}`, 0, 0, true},
		{"figures too large", 400, `{"error":{"message":"prompt is too long: 99999999999999999999 tokens > 4 maximum"}}`, 0, 0, true},
		{"another refusal", 400, string(ErrorBody(refuse("messages: at least one message is required"), "")), 0, 0, false},
		{"rate limit that mentions it", 429, `{"error":{"message":"prompt is too long: 5 tokens > 4 maximum"}}`, 0, 0, false},
		{"nothing", 400, ``, 0, 0, false},
		{"broken", 400, `{"error":{"message":"prompt`, 0, 0, false},
	} {
		reported, limit, ok := ParseOverflow(test.status, []byte(test.body))
		if reported != test.reported || limit != test.limit || ok != test.ok {
			t.Errorf("%s: got %d, %d, %v, want %d, %d, %v", test.name, reported, limit, ok, test.reported, test.limit, test.ok)
		}
	}
}

func TestOverflowTexts(t *testing.T) {
	for want, r := range map[string]*protocol.Refusal{
		"prompt is too long: 210445 tokens > 200000 maximum":                                                                              PromptTooLong(210445, 200000),
		"input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, decrease input length or `max_tokens` and try again": OutputTooLong(199759, 8192, 200000),
	} {
		if r.Message != want || r.Status != 400 || r.Type != "invalid_request_error" {
			t.Errorf("got %+v, want %s", r, want)
		}
	}
}

func TestErrorBody(t *testing.T) {
	got := string(ErrorBody(refuse("a \"b\" <c>"), "req_1"))
	want := `{"type":"error","error":{"type":"invalid_request_error","message":"a \"b\" <c>"},"request_id":"req_1"}`
	if got != want || !json.Valid([]byte(got)) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestDecodeUsage(t *testing.T) {
	for _, test := range []struct {
		usage string
		want  furl.Usage
	}{
		{`{"input_tokens":3,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,"output_tokens":7}`, furl.Usage{Input: 3, CacheRead: 100, CacheWrite: 20, Output: 7}},
		{`{"input_tokens":3,"cache_creation_input_tokens":20,"cache_creation":{"ephemeral_5m_input_tokens":5,"ephemeral_1h_input_tokens":15},"service_tier":"standard"}`,
			furl.Usage{Input: 3, CacheWrite: 5, CacheWrite1h: 15}},
		{`{"cache_creation":{"ephemeral_1h_input_tokens":15}}`, furl.Usage{CacheWrite1h: 15}},
		{`{"cache_creation_input_tokens":20,"cache_creation":null,"input_tokens":null}`, furl.Usage{CacheWrite: 20}},
		{`{"output_tokens":9,"output_tokens_details":{"thinking_tokens":4},"server_tool_use":{"web_search_requests":1},"iterations":null}`,
			furl.Usage{Output: 9, Reasoning: 4}},
		{`{"input_tokens":-1,"output_tokens":1.5}`, furl.Usage{}},
		{` null `, furl.Usage{}},
	} {
		got, passes, _, err := DecodeUsage([]byte(test.usage))
		if err != nil || got != test.want || passes != nil {
			t.Errorf("%s: got %+v, %v, %v, want %+v", test.usage, got, passes, err, test.want)
		}
	}
	for _, bad := range []string{``, `[]`, `{"input_tokens":`, `{} {}`} {
		if u, _, _, err := DecodeUsage([]byte(bad)); err == nil {
			t.Errorf("%q: got %+v, want an error", bad, u)
		}
	}
}

// The size of a prompt is that of the last pass on the conversation. The counters
// outside the list are a sum, or leave passes out.
func TestDecodeUsageOfPasses(t *testing.T) {
	message := func(u furl.Usage) furl.Pass { return furl.Pass{Kind: furl.PassMessage, Usage: u} }
	for _, test := range []struct {
		name, usage string
		want        furl.Usage
		passes      furl.Passes
	}{
		{"two passes around a server tool",
			`{"input_tokens":110,"cache_read_input_tokens":900,"output_tokens":30,"iterations":[
				{"type":"message","input_tokens":100,"output_tokens":10},{"type":"message","input_tokens":10,"cache_read_input_tokens":900,"output_tokens":20}]}`,
			furl.Usage{Input: 10, CacheRead: 900, Output: 20},
			furl.Passes{message(furl.Usage{Input: 100, Output: 10}), message(furl.Usage{Input: 10, CacheRead: 900, Output: 20})}},
		{"a compaction, then the reply, with the split of the lifetimes outside the list",
			`{"input_tokens":23,"cache_creation_input_tokens":40,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":40},
				"output_tokens":9,"output_tokens_details":{"thinking_tokens":4},
				"iterations":[{"type":"compaction","input_tokens":180,"output_tokens":3},{"type":"message","input_tokens":23,"cache_creation_input_tokens":40,"output_tokens":9}]}`,
			furl.Usage{Input: 23, CacheWrite1h: 40, Output: 9, Reasoning: 4},
			furl.Passes{{Kind: furl.PassCompaction, Usage: furl.Usage{Input: 180, Output: 3}}, message(furl.Usage{Input: 23, CacheWrite1h: 40, Output: 9, Reasoning: 4})}},
		{"a compaction alone, whose tokens are only in the list",
			`{"input_tokens":0,"output_tokens":0,"iterations":[{"type":"compaction","input_tokens":180,"output_tokens":3}]}`,
			furl.Usage{Input: 180, Output: 3}, furl.Passes{{Kind: furl.PassCompaction, Usage: furl.Usage{Input: 180, Output: 3}}}},
		{"an advisor between two passes",
			`{"input_tokens":30,"output_tokens":3,"iterations":[{"type":"message","input_tokens":10,"output_tokens":1},
				{"type":"advisor_message","model":"claude-opus-5","input_tokens":60,"output_tokens":2},{"type":"message","input_tokens":20,"output_tokens":2}]}`,
			furl.Usage{Input: 20, Output: 2},
			furl.Passes{message(furl.Usage{Input: 10, Output: 1}), {Kind: "advisor_message", Model: "claude-opus-5", Usage: furl.Usage{Input: 60, Output: 2}}, message(furl.Usage{Input: 20, Output: 2})}},
		{"only a pass of an unknown type in the list",
			`{"input_tokens":30,"output_tokens":3,"iterations":[{"type":"new","input_tokens":10,"output_tokens":1}]}`,
			furl.Usage{Input: 30, Output: 3},
			furl.Passes{{Kind: "new", Usage: furl.Usage{Input: 10, Output: 1}}, message(furl.Usage{Input: 30, Output: 3})}},
		{"another model answers after the first declined",
			`{"input_tokens":12,"output_tokens":7,"iterations":[{"type":"message","model":"a","input_tokens":100,"output_tokens":5},{"type":"fallback_message","model":"b","input_tokens":12,"output_tokens":7}]}`,
			furl.Usage{Input: 12, Output: 7},
			furl.Passes{{Kind: furl.PassMessage, Model: "a", Usage: furl.Usage{Input: 100, Output: 5}}, {Kind: furl.PassMessage, Model: "b", Usage: furl.Usage{Input: 12, Output: 7}}}},
		{"another model answers, and the list has only its pass",
			`{"input_tokens":12,"output_tokens":7,"output_tokens_details":{"thinking_tokens":4},"iterations":[{"type":"fallback_message","model":"b","input_tokens":12,"output_tokens":7}]}`,
			furl.Usage{Input: 12, Output: 7, Reasoning: 4}, furl.Passes{{Kind: furl.PassMessage, Model: "b", Usage: furl.Usage{Input: 12, Output: 7, Reasoning: 4}}}},
		{"one pass", `{"input_tokens":3,"output_tokens":7,"output_tokens_details":{"thinking_tokens":4},"iterations":[{"type":"message","input_tokens":3,"output_tokens":7}]}`,
			furl.Usage{Input: 3, Output: 7, Reasoning: 4}, nil},
		{"more than a list can have", `{"input_tokens":3,"iterations":[` + strings.Repeat(`{"type":"message","input_tokens":1},`, 5000) + `1]}`, furl.Usage{Input: 3}, nil},
	} {
		got, passes, _, err := DecodeUsage([]byte(test.usage))
		if err != nil || got != test.want || !slices.Equal(passes, test.passes) {
			t.Errorf("%s: got %+v, %+v, %v\nwant %+v, %+v", test.name, got, passes, err, test.want, test.passes)
		}
	}
}

// The list of a stream is complete in message_delta only.
func TestStreamOfPasses(t *testing.T) {
	a := Codec.NewAssembler()
	for _, data := range []string{
		`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":100,"output_tokens":1,"iterations":[{"type":"message","input_tokens":100,"output_tokens":1}]}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"yes"}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":250,"output_tokens":30,"iterations":[{"type":"message","input_tokens":100,"output_tokens":10},{"type":"message","input_tokens":150,"output_tokens":20}]}}`,
		`{"type":"message_stop"}`,
	} {
		if err := a.Feed("", []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	reply, err := a.Reply()
	if err != nil || reply.Usage != (furl.Usage{Input: 150, Output: 20}) || len(reply.Passes) != 2 {
		t.Errorf("got %+v, %+v, %v", reply.Usage, reply.Passes, err)
	}
	if got := reply.Passes.Replied(reply.Usage); got != (furl.Usage{Input: 250, Output: 30}) {
		t.Errorf("the reply used %+v", got)
	}
}
