package gateway_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// canned is a provider that says the same to all, and keeps what it was sent.
type canned struct {
	answer []byte
	stream bool
	got    [][]byte
}

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c.got = append(c.got, body)
	typ := "application/json"
	if c.stream {
		typ = "text/event-stream"
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {typ}}, ContentLength: -1, Body: io.NopCloser(bytes.NewReader(c.answer))}, nil
}

// What a model says in each format, whole and as events.
var cannedAnswers = map[furl.Format][2]string{
	furl.FormatAnthropic: {
		`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":2}}`,
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n" +
			"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Done.\"}}\n\n" +
			"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
	},
	furl.FormatChat: {
		`{"id":"c_1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Done."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`,
		"data: {\"id\":\"c_1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Done.\"},\"finish_reason\":null}]}\n\ndata: {\"id\":\"c_1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
	},
	furl.FormatResponses: {
		`{"id":"resp_1","object":"response","status":"completed","output":[{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Done.","annotations":[]}]}],"usage":{"input_tokens":9,"output_tokens":2,"total_tokens":11}}`,
		"event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_1\",\"object\":\"response\",\"status\":\"in_progress\",\"output\":[]}}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":1,\"response\":{\"id\":\"resp_1\",\"object\":\"response\",\"status\":\"completed\",\"output\":[{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"Done.\",\"annotations\":[]}]}],\"usage\":{\"input_tokens\":9,\"output_tokens\":2,\"total_tokens\":11}}}\n\n",
	},
}

var fuzzFormats = []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses}

// Requests of tool loops, for a fuzzer to change.
var fuzzSeeds = map[furl.Format][]string{
	furl.FormatAnthropic: {
		`{"model":"claude-sonnet-4-5","max_tokens":100,"stream":true,"system":[{"type":"text","text":"You help.","cache_control":{"type":"ephemeral"}}],"metadata":{"user_id":"user_1_account__session_abc"},"tools":[{"name":"bash","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"look"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_1","name":"bash","input":{"command":"ls -l"}},{"type":"tool_use","id":"toolu_2","name":"bash","input":{"command":"cat main.go"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"main.go  go.mod"},{"type":"tool_result","tool_use_id":"toolu_2","is_error":true,"content":[{"type":"text","text":"no such file"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]},{"type":"text","text":"go on","cache_control":{"type":"ephemeral"}}]}]}`,
		`{"model":"claude-opus-4-6","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"new_kind","x":12345678901234567890}]},{"role":"assistant","content":"b"},{"role":"user","content":"c"}],"x_unknown":1.10}`,
	},
	furl.FormatChat: {
		`{"model":"gpt-5","stream":true,"messages":[{"role":"system","content":"You help."},{"role":"user","content":[{"type":"text","text":"look"}]},{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},{"id":"call_2","type":"function","function":{"name":"bash","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_1","content":"main.go"},{"role":"tool","tool_call_id":"call_2","content":"go.mod"},{"role":"user","content":"go on"}],"tools":[{"type":"function","function":{"name":"bash","parameters":{"type":"object"}}}]}`,
	},
	furl.FormatResponses: {
		`{"model":"gpt-5","store":false,"instructions":"You help.","prompt_cache_key":"k","include":["reasoning.encrypted_content"],"input":[{"role":"user","content":[{"type":"input_text","text":"look"}]},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"eA=="},{"type":"function_call","id":"fc_1","call_id":"call_1","name":"bash","arguments":"{\"command\":\"ls\"}"},{"type":"function_call_output","call_id":"call_1","output":"main.go"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done","annotations":[]}]},{"role":"user","content":"go on"}],"tools":[{"type":"function","name":"bash","parameters":{"type":"object"}}]}`,
		`{"model":"gpt-5","input":"hello","previous_response_id":"resp_0"}`,
	},
}

// Whatever a client sends, it gets the provider's answer byte for byte, and the
// provider what the client sent unless something is hidden. Then what was a
// request for the provider still is one. Nothing panics.
func FuzzGateway(f *testing.F) {
	for i, format := range fuzzFormats {
		for _, seed := range fuzzSeeds[format] {
			f.Add(uint8(i), []byte(seed))
			f.Add(uint8(i+4), []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, how uint8, body []byte) {
		if len(body) > 64<<10 {
			return // it would be about time
		}
		format := fuzzFormats[int(how&3)%len(fuzzFormats)]
		window := 0
		if how&4 != 0 { // there is much of it, and little room
			window = 1000
			body = bytes.ReplaceAll(body, []byte("main.go"), []byte(strings.Repeat(`main.go:1: package main\n`, 200)))
		}
		for _, stream := range []bool{false, true} {
			p := &canned{stream: stream, answer: []byte(cannedAnswers[format][0])}
			if stream {
				p.answer = []byte(cannedAnswers[format][1])
			}
			fuzzed(t, p, format, window, body)
		}
	})
}

func fuzzed(t *testing.T, p *canned, format furl.Format, window int, body []byte) {
	t.Helper()
	store := inmem.New()
	defer store.Close()
	sessions, err := session.New(store, &session.Options{Window: window})
	if err != nil {
		t.Fatal(err)
	}
	up, err := upstream.New("http://provider", &upstream.Options{Transport: p})
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	var log bytes.Buffer
	g, err := gateway.New(sessions, gateway.Upstreams{Anthropic: up, OpenAI: up}, &gateway.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))})
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{format: format}
	for range 2 { // the second is a client that tries again
		req := httptest.NewRequest(http.MethodPost, a.path(), bytes.NewReader(body))
		req.Header.Set("Authorization", "Bearer k")
		rec := httptest.NewRecorder()
		patient{g}.ServeHTTP(rec, req)
		if rec.Code != 200 || !bytes.Equal(rec.Body.Bytes(), p.answer) {
			t.Fatalf("the client gets %d %s", rec.Code, rec.Body)
		}
		if len(p.got) == 0 {
			t.Fatal("nothing reached the provider")
		}
		sent := p.got[len(p.got)-1]
		if bytes.Equal(sent, body) {
			continue
		}
		s, err := sessions.Find(t.Context(), session.Latest)
		if err != nil || len(s.Reductions()) == 0 {
			t.Fatalf("nothing is hidden, and the provider gets\n%s\nwant\n%s", sent, body)
		}
		in, err := a.codec().DecodeRequest(body)
		if err != nil {
			t.Fatalf("a request that cannot be read was changed: %v", err)
		}
		if a.codec().Validate(in, furl.Model{}) != nil {
			continue // nor was it one before
		}
		out, err := a.codec().DecodeRequest(sent)
		if err == nil {
			err = a.codec().Validate(out, furl.Model{})
		}
		if err != nil {
			t.Fatalf("what is sent would be refused: %v\n%s\nof\n%s", err, sent, body)
		}
	}
	if log.Len() > 0 {
		t.Errorf("the log says %s", log.String())
	}
	s, err := sessions.Find(t.Context(), session.Latest)
	if err != nil {
		return // nothing was recorded
	}
	if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the session: %v %v\nof %s", problems, err, body)
	}
}
