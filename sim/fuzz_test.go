package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/sim"
)

// Every request gets an answer in the format of the API: JSON, or a stream of
// JSON events.
func FuzzHandler(f *testing.F) {
	paths := []string{"/v1/messages", "/v1/messages/count_tokens", "/v1/chat/completions", "/v1/responses", "/v1/responses/input_tokens", "/v1/models/x", "/", "/v1/responses/compact",
		"/v1beta/models/gemini-3.1-pro-preview:generateContent", "/v1/models/gemini-2.5-pro:streamGenerateContent", "/v1beta/models/gemini-3.1-pro-preview:streamGenerateContent?alt=sse", "/v1/publishers/google/models/gemini-2.5-pro:countTokens"}
	call := `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{"a":[1]}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}`
	seeds := []string{
		anthropicDialect{extra: `,"thinking":{"type":"adaptive"}`}.body("claude-opus-5-5", toList(anthropicDialect{}.user("hi")), true),
		`{"model":"claude-sonnet-4-5","max_tokens":9,"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":"hi"},` + call + `],"stop_sequences":["e"],"context_management":{"edits":[{"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses","value":0},"keep":{"value":0},"clear_tool_inputs":true},{"type":"compact_20260112"}]}}`,
		`{"model":"claude-opus-5-5","max_tokens":99,"compaction":{"type":"summarize"},"messages":[{"role":"user","content":[{"type":"compaction","content":"x","signature":"y"}]}]}`,
		chatDialect{extra: `,"n":2,"stop":"a"`}.body("gpt-5.2", toList(chatDialect{}.user("hi")), true),
		responsesDialect{}.body("gpt-5.2", toList(responsesDialect{}.user("hi")), true),
		`{"model":"gpt-5.2","input":"hi","previous_response_id":"x","stream":true}`,
		`{"model":"gpt-5.2","input":[{"type":"item_reference","id":"x"},{"type":"reasoning","encrypted_content":"a"}]}`,
		strings.SplitN(geminiDialect{}.body("m", toList(geminiDialect{}.user("hi")), true), "\n", 2)[1],
		`{"contents":[{"parts":{"text":"hi"}},{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"skip_thought_signature_validator"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"x"},"parts":[{"inlineData":{"data":"AA=="}}]}}]}],"generation_config":{"responseJsonSchema":{"type":"object"}}}`,
		`[]`, `{`, `{"tools":[{"name":"f","input_schema":{"required":["a"],"properties":{"a":{"anyOf":[{"anyOf":[{}]}]}}}}]}`,
	}
	for i, body := range seeds {
		for j, fault := range []string{"", "cut=2", "split=utf8 args=odd ping", "error=3", "overflow=stream", "529"} {
			f.Add(uint8(i+j), []byte(body), fault)
		}
	}
	f.Fuzz(func(t *testing.T, path uint8, body []byte, fault string) {
		if len(body) > 1<<16 {
			return
		}
		s := sim.New(&sim.Options{
			Player: sim.NewAgent(&sim.AgentOptions{Thinking: 5}),
			Wait:   func(context.Context, time.Duration) error { return nil },
			Now:    func() time.Time { return start },
		})
		for range 2 { // the second finds the state left by the first
			req := httptest.NewRequest(http.MethodPost, paths[int(path)%len(paths)], bytes.NewReader(body))
			req.Header.Set("Authorization", "Bearer k")
			req.Header.Set("anthropic-version", "2023-06-01")
			req.Header.Set("anthropic-beta", "context-management-2025-06-27,compact-2026-01-12,compact-2026-09-04,thinking-binding-controls-2026-08-01")
			req.Header[sim.FaultHeader] = []string{fault}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, req)
			checkAnswer(t, w)
		}
		if b := s.Bill(); b.Requests != 2 || b.Cost < 0 {
			t.Errorf("%+v", b)
		}
		for _, e := range s.Requests() {
			if _, err := json.Marshal(e); err != nil {
				t.Error(err)
			}
		}
	})
}

func checkAnswer(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	cut := w.Code == http.StatusTemporaryRedirect
	switch {
	case strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream"):
		for line := range strings.Lines(w.Body.String()) {
			if data, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "data: "); ok && data != "[DONE]" && !json.Valid([]byte(data)) {
				t.Errorf("no JSON: %s", data)
			}
		}
	case w.Code == http.StatusOK: // may be cut
	case !cut && !json.Valid(w.Body.Bytes()):
		t.Errorf("status %d: no JSON: %s", w.Code, w.Body)
	}
}
