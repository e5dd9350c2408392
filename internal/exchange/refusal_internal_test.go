package exchange

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/furlhq/furl/wire"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

// canned answers every request with the same.
type canned struct {
	status    int
	typ, body string
	bytewise  bool
}

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	in := &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {c.typ}}, ContentLength: -1}
	var r io.Reader = strings.NewReader(c.body)
	if c.typ == "application/json" {
		in.ContentLength = int64(len(c.body))
		in.Header.Set("Content-Length", strconv.Itoa(len(c.body)))
	}
	if c.bytewise {
		r = iotest.OneByteReader(r)
	}
	in.Body = io.NopCloser(r)
	return in, nil
}

const tooMuch = `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`

// A refusal that furl handles is recognized in all its shapes,
// and any answer is read whole afterwards.
func TestRefusedPrompt(t *testing.T) {
	const events, whole = "text/event-stream; charset=utf-8", "application/json"
	signature := `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid ` + "`signature` in `thinking`" + ` block"}}`
	encrypted := `{"error":{"message":"The encrypted content gAAA...DQ== could not be verified.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}`
	responses, chat, messages := openai.Responses, openai.Chat, anthropic.Codec
	long := func(name, more string) string {
		return "event: " + name + "\ndata: {\"type\":\"" + name + "\",\"response\":{\"id\":\"r\",\"instructions\":\"" + strings.Repeat("be good ", 20_000) + "\"" + more + "}}\n\n"
	}
	role := "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
	for _, tc := range []struct {
		name  string
		codec wire.API
		canned
		want bool
	}{
		{"a refusal", chat, canned{400, whole, tooMuch, false}, true},
		{"a refusal under another status", chat, canned{200, whole, tooMuch, false}, true},
		{"an answer", chat, canned{200, whole, `{"choices":[{"message":{"role":"assistant","content":"prompt is too long"}}]}`, false}, false},
		{"an answer about errors", chat, canned{200, whole, `{"choices":[{"message":{"role":"assistant","content":"\"error\" context_length_exceeded"}}]}`, false}, false},
		{"no JSON", chat, canned{400, "text/html", "<html>", false}, false},
		{"a failed response", responses, canned{200, whole, `{"id":"r","status":"failed","error":{"code":"context_length_exceeded","message":"too much"},"output":[]}`, false}, true},
		{"error first", responses, canned{200, events, "event: error\ndata: {\"type\":\"error\",\"code\":\"context_length_exceeded\",\"message\":\"too much\"}\n\n", false}, true},
		{"failed behind what repeats the instructions", responses, canned{200, events, long("response.created", "") +
			long("response.failed", `,"error":{"code":"context_length_exceeded","message":"too much"}`), false}, true},
		{"without a blank line at its end", chat, canned{200, events, role + "data: " + tooMuch, false}, true},
		{"behind comments and a role", chat, canned{200, events, ": waiting\n\n" + role + ": waiting\n\ndata: " + tooMuch + "\n\n", true}, true},
		{"behind words", chat, canned{200, events, role + strings.Replace(role, `"content":""`, `"content":"a"`, 1) + "data: " + tooMuch + "\n\n", false}, false},
		{"another error", chat, canned{200, events, `data: {"error":{"message":"no","code":500}}` + "\n\n", false}, false},
		{"Messages", messages, canned{200, events, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n" +
			"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 201000 tokens > 200000 maximum\"}}\n\n", true}, true},
		{"a signature", messages, canned{400, whole, signature, false}, true},
		{"a signature in a stream", messages, canned{200, events, "event: error\ndata: " + signature + "\n\n", false}, true},
		{"encrypted reasoning", responses, canned{400, whole, encrypted, false}, true},
		{"encrypted reasoning in a stream", responses, canned{200, events, long("response.created", "") + "event: error\ndata: {\"type\":\"error\",\"code\":\"invalid_encrypted_content\",\"message\":\"no\"}\n\n", false}, true},
		{"missing thinking", messages, canned{400, whole, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0.type: Expected ` + "`thinking` or `redacted_thinking`, but found `text`." + `"}}`, false}, false},
		{"no stream at all", messages, canned{200, events, "\x00\xff no events here", false}, false},
		{"cut JSON", messages, canned{200, events, `data: {"type":"err`, false}, false},
		{"nothing", messages, canned{200, events, "", false}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			resp, err := tc.canned.RoundTrip(nil)
			if err != nil {
				t.Fatal(err)
			}
			refused := refusedPrompt(tc.codec, resp)
			if (refused != nil) != tc.want {
				t.Errorf("%v", refused)
			}
			if got, err := io.ReadAll(resp.Body); err != nil || string(got) != tc.body {
				t.Errorf("%d bytes are left of %d: %v", len(got), len(tc.body), err)
			}
		})
	}
}
