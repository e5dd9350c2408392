package openai

import (
	"reflect"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
)

// A response names the tier that served it, and lists the calls of the provider's tools.
func TestTerms(t *testing.T) {
	const items = `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"x"}},
		{"id":"ws_2","type":"web_search_call","status":"completed","action":{"type":"open_page","url":"x"}},
		{"id":"ws_3","type":"web_search_call","status":"completed"},
		{"id":"fs_1","type":"file_search_call","status":"completed","queries":["x"]}`
	used := []furl.ToolUses{{Name: "file_search", Uses: 1}, {Name: "web_search", Uses: 2}}
	for _, tt := range []struct {
		name   string
		codec  protocol.ReplyCodec
		body   string // not streamed
		events []string
		want   furl.Terms
	}{
		{name: "chat, flex", codec: Chat, want: furl.Terms{Tier: "flex"},
			body:   `{"id":"a","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"service_tier":"flex"}`,
			events: []string{`{"id":"a","choices":[{"index":0,"delta":{"role":"assistant","content":"x"}}],"service_tier":"flex"}`, `{"choices":[],"usage":{"prompt_tokens":1},"service_tier":"flex"}`, `[DONE]`}},
		{name: "chat, default", codec: Chat,
			body:   `{"id":"a","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"service_tier":"default"}`,
			events: []string{`{"id":"a","choices":[{"index":0,"delta":{"role":"assistant","content":"x"}}],"service_tier":null}`, `[DONE]`}},
		{name: "responses, priority with tools", codec: Responses, want: furl.Terms{Tier: "priority", Tools: used},
			body: `{"id":"a","object":"response","status":"completed","service_tier":"priority","output":[` + items + `]}`,
			events: []string{`{"type":"response.created","response":{"id":"a","status":"in_progress","service_tier":"auto","output":[]}}`,
				`{"type":"response.completed","response":{"id":"a","status":"completed","service_tier":"priority","output":[` + items + `]}}`}},
	} {
		whole, err := tt.codec.DecodeReply(200, []byte(tt.body))
		if err != nil || !reflect.DeepEqual(whole.Terms, tt.want) {
			t.Errorf("%s, not streamed: got %+v, %v", tt.name, whole.Terms, err)
		}
		a := tt.codec.NewAssembler()
		for _, event := range tt.events {
			if err := a.Feed("", []byte(event)); err != nil {
				t.Fatal(err)
			}
		}
		if streamed, err := a.Reply(); err != nil || !reflect.DeepEqual(streamed.Terms, tt.want) {
			t.Errorf("%s, streamed: got %+v, %v", tt.name, streamed.Terms, err)
		}
	}
}
