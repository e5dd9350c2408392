package anthropic

import (
	"encoding/json"
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
		{`{"output_tokens":9,"output_tokens_details":{"thinking_tokens":4},"server_tool_use":{"web_search_requests":1},"iterations":[{"type":"compaction","input_tokens":180000}]}`,
			furl.Usage{Output: 9, Reasoning: 4}},
		{`{"input_tokens":-1,"output_tokens":1.5}`, furl.Usage{}},
		{` null `, furl.Usage{}},
	} {
		got, err := DecodeUsage([]byte(test.usage))
		if err != nil || got != test.want {
			t.Errorf("%s: got %+v, %v, want %+v", test.usage, got, err, test.want)
		}
	}
	for _, bad := range []string{``, `[]`, `{"input_tokens":`, `{} {}`} {
		if u, err := DecodeUsage([]byte(bad)); err == nil {
			t.Errorf("%q: got %+v, want an error", bad, u)
		}
	}
}
