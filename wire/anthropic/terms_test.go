package anthropic

import (
	"reflect"
	"testing"

	"github.com/furlhq/furl"
)

// The terms of a request are in its usage, in a stream in the first and the last object.
func TestTerms(t *testing.T) {
	searched := []furl.ToolUses{{Name: "web_fetch", Uses: 1}, {Name: "web_search", Uses: 2}}
	for usage, want := range map[string]furl.Terms{
		`{"input_tokens":1,"service_tier":"standard","speed":"standard","inference_geo":"global","server_tool_use":{"web_search_requests":0}}`: {},
		`{"input_tokens":1,"service_tier":null,"speed":null,"inference_geo":"not_available","server_tool_use":null}`:                           {},
		`{"input_tokens":1,"service_tier":"priority","speed":"fast","inference_geo":"us"}`:                                                     {Speed: "fast", Geo: "us", Tier: "priority"},
		`{"input_tokens":1,"service_tier":"batch","server_tool_use":{"web_search_requests":2,"web_fetch_requests":1}}`:                         {Tier: "batch", Tools: searched},
		`{"input_tokens":1,"service_tier":7,"speed":[],"server_tool_use":"x","inference_geo":{}}`:                                              {},
		`null`: {},
	} {
		_, _, got, err := DecodeUsage([]byte(usage))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", usage, got, err)
		}
	}
	want := furl.Terms{Speed: "fast", Geo: "us", Tools: searched}
	whole, err := Codec.DecodeReply(200, []byte(`{"id":"a","type":"message","role":"assistant","content":[],"usage":{"input_tokens":1,"speed":"fast","inference_geo":"us","server_tool_use":{"web_search_requests":2,"web_fetch_requests":1}}}`))
	if err != nil || !reflect.DeepEqual(whole.Terms, want) {
		t.Errorf("not streamed: got %+v, %v", whole.Terms, err)
	}
	a := Codec.NewAssembler()
	for _, event := range []string{
		`{"type":"message_start","message":{"id":"a","type":"message","role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1,"service_tier":"standard","speed":"fast","inference_geo":"us"}}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9,"server_tool_use":{"web_search_requests":2,"web_fetch_requests":1}}}`,
		`{"type":"message_stop"}`,
	} {
		if err := a.Feed("", []byte(event)); err != nil {
			t.Fatal(err)
		}
	}
	if streamed, err := a.Reply(); err != nil || !reflect.DeepEqual(streamed.Terms, want) {
		t.Errorf("streamed: got %+v, %v", streamed.Terms, err)
	}
}
