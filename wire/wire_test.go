package wire_test

import (
	"net/url"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire"
)

// Each format is found by its name and by the end of a request's path; an
// unknown one is not found.
func TestFor(t *testing.T) {
	for format, path := range map[furl.Format]string{
		furl.FormatAnthropic: "/v1/messages",
		furl.FormatChat:      "/openai/deployments/d/chat/completions/",
		furl.FormatResponses: "/responses",
		furl.FormatGemini:    "/v1beta/models/gemini-3-pro:streamGenerateContent",
	} {
		if api := wire.For(format); api == nil || api.Format() != format {
			t.Errorf("For(%q) is %v", format, api)
		}
		if api, at := wire.ForPath(path, ""); api == nil || api.Format() != format || at.Count {
			t.Errorf("ForPath(%q) is %v, %+v, want %s", path, api, at, format)
		}
	}
	if api := wire.For("morse"); api != nil {
		t.Errorf("For returned %v for an unknown format", api)
	}
	if api, at := wire.ForPath("/v1/messages/count_tokens", ""); api == nil || api.Format() != furl.FormatAnthropic || !at.Count {
		t.Errorf("the path that counts tokens is %v, %+v", api, at)
	}
	for _, path := range []string{"/API//v1/Chat/Completions//", `/x\chat\completions`} {
		if api, _ := wire.ForPath(path, ""); api == nil || api.Format() != furl.FormatChat {
			t.Errorf("ForPath(%q) is %v", path, api)
		}
	}
	for _, path := range []string{"", "/", "/v1/models", "/v1/threads/t/messages", "/v1/chat/completions/c/messages", "/v1/xmessages", "/v1/messages/batches",
		"/v1beta/models/m:embedContent", "/v1beta/models/:generateContent", "/v1/projects/p/locations/l/publishers/anthropic/models/m:generateContent", "/v1beta/m:generateContent"} {
		if api, _ := wire.ForPath(path, ""); api != nil {
			t.Errorf("ForPath(%q) is %v", path, api)
		}
	}
}

// What the paths of Google say: the model, and how the reply comes.
func TestEndpointOfPath(t *testing.T) {
	for raw, want := range map[string]protocol.Endpoint{
		"/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse": {Model: "gemini-3-pro-preview", Stream: true, Prefix: "/v1beta"},
		"/v1/models/M:streamGenerateContent?key=k":                          {Model: "M", Stream: true, List: true, Prefix: "/v1"},
		"/v1beta//models/m:GenerateContent":                                 {Model: "m", Prefix: "/v1beta"},
		"/v1beta/tunedModels/t:countTokens":                                 {Model: "tunedModels/t", Count: true, Prefix: "/v1beta"},
		"/v1/publishers/google/models/m:generateContent":                    {Model: "m", Prefix: "/v1/publishers/google"},
		"/v1beta1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent?alt=sse": {
			Model: "m", Stream: true, Prefix: "/v1beta1/projects/p/locations/l/publishers/google"},
		"/v1/projects/p/locations/l/endpoints/7:generateContent":       {Model: "endpoints/7", Prefix: "/v1/projects/p/locations/l"},
		"/openai/deployments/gpt/chat/completions?api-version=2026-01": {Model: "gpt", Prefix: "/openai/deployments/gpt"},
		"/v1/responses/compact": {Compact: true, Prefix: "/v1"},
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		api, got := wire.ForPath(u.Path, u.RawQuery)
		if api == nil || got != want {
			t.Errorf("%s: %v, %+v, want %+v", raw, api, got, want)
			continue
		}
		if api.Format() != furl.FormatGemini || got.Prefix != "/v1beta" {
			continue
		}
		again, err := url.Parse(api.RequestPath(got.Model, got.Stream))
		if err != nil {
			t.Fatal(err)
		}
		if _, at := wire.ForPath(again.Path, again.RawQuery); !got.Count && (at.Model != got.Model || at.Stream != got.Stream) {
			t.Errorf("the path for %+v is %s", got, again)
		}
		other := api.WithModel(u.Path, "tunedModels/a b")
		if _, at := wire.ForPath(other, ""); at.Prefix != got.Prefix || at.Count != got.Count || at.Stream != got.Stream {
			t.Errorf("%s with another model is %s", u.Path, other)
		}
	}
}

// An event is silent if it precedes all of the model's output and is not an
// error.
func TestSilentEvents(t *testing.T) {
	for _, tc := range []struct {
		format furl.Format
		event  string
		data   string
		want   bool
	}{
		{furl.FormatAnthropic, "message_start", `{"type":"message_start","message":{"content":[]}}`, true},
		{furl.FormatAnthropic, "", `{"message":{},"type":"message_start"}`, true},
		{furl.FormatAnthropic, "ping", `{"type":"ping"}`, true},
		{furl.FormatAnthropic, "content_block_start", `{"type":"content_block_start"}`, false},
		{furl.FormatAnthropic, "error", `{"type":"error"}`, false},
		{furl.FormatAnthropic, "something_new", `{}`, false},
		{furl.FormatAnthropic, "ping", `{"type":"error","error":{}}`, false},
		{furl.FormatResponses, "response.created", `{"type":"response.created"}`, true},
		{furl.FormatResponses, "response.in_progress", `{}`, true},
		{furl.FormatResponses, "response.queued", `{}`, true},
		{furl.FormatResponses, "message_start", `{}`, false},
		{furl.FormatResponses, "response.output_item.added", `{}`, false},
		{furl.FormatResponses, "response.failed", `{}`, false},
		{furl.FormatChat, "", `{"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}]}`, true},
		{furl.FormatChat, "", `{"choices":[{"delta":{"role":"assistant","tool_calls":[]}},{"delta":{}}]}`, true},
		{furl.FormatChat, "", `{"choices":[]}`, true},
		{furl.FormatChat, "", `{"choices":[{"delta":{"content":"x"}}]}`, false},
		{furl.FormatChat, "", `{"choices":[{"delta":{}},{"delta":{"reasoning":"x"}}]}`, false},
		{furl.FormatChat, "", `{"choices":[{"delta":{},"finish_reason":"stop"}]}`, false},
		{furl.FormatChat, "", `{"choices":[{"text":"x"}]}`, false},
		{furl.FormatChat, "", `{"choices":[],"error":{"message":"no"}}`, false},
		{furl.FormatChat, "", `{"object":"error"}`, false},
		{furl.FormatChat, "error", `{"choices":[]}`, false},
		{furl.FormatChat, "", `{"choices":[`, false},
		{furl.FormatChat, "", `[DONE]`, false},
	} {
		if got := wire.For(tc.format).Silent(tc.event, []byte(tc.data)); got != tc.want {
			t.Errorf("%s %q %s: %v", tc.format, tc.event, tc.data, got)
		}
	}
}

// furl cannot add tools to a request whose reply the provider stores, or that
// asks for several replies.
func TestTakesTools(t *testing.T) {
	const chat, responses = `"messages":[{"role":"user","content":"hi"}]`, `"input":[{"role":"user","content":"hi"}]`
	for _, tc := range []struct {
		format furl.Format
		body   string
		want   bool
	}{
		{furl.FormatAnthropic, `{"model":"m","max_tokens":9,` + chat + `}`, true},
		{furl.FormatChat, `{"model":"m",` + chat + `}`, true},
		{furl.FormatChat, `{"model":"m","n":1,` + chat + `,"store":true}`, true},
		{furl.FormatChat, `{"model":"m","n":2,` + chat + `}`, false},
		{furl.FormatChat, `{"model":"m",` + chat + `,"n":2,"background":false}`, false},
		{furl.FormatResponses, `{"model":"m",` + responses + `}`, false},
		{furl.FormatResponses, `{"model":"m","store":true,` + responses + `}`, false},
		{furl.FormatResponses, `{"model":"m","store":false,` + responses + `}`, true},
		{furl.FormatResponses, `{"model":"m",` + responses + `,"store":false}`, true},
		{furl.FormatResponses, `{"model":"m","store":false,"background":true,` + responses + `}`, false},
		{furl.FormatResponses, `{"model":"m","store":false,"previous_response_id":"r",` + responses + `}`, false},
	} {
		api := wire.For(tc.format)
		req, err := api.DecodeRequest([]byte(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		if got := api.TakesTools(req); got != tc.want {
			t.Errorf("%s %s: %v", tc.format, tc.body, got)
		}
	}
}
