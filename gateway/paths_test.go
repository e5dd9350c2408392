package gateway_test

import (
	"bytes"
	"io"
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

// However a client's base URL is written, its request is understood and
// reaches the provider where that serves it; Azure's paths go on as they came,
// and what is deployed there is the model.
func TestPaths(t *testing.T) {
	chat := `{"messages":[{"role":"user","content":"hi"}]`
	for _, tt := range []struct{ path, base, body, want, model string }{
		{"/v1/chat/completions", "", chat + `,"model":"m"}`, "/v1/chat/completions", "m"},
		{"/chat/completions", "", chat + `,"model":"m"}`, "/v1/chat/completions", "m"},
		{"/v1/chat/completions/", "", chat + `,"model":"m"}`, "/v1/chat/completions", "m"},
		{"/v1/v1/chat/completions", "", chat + `,"model":"m"}`, "/v1/chat/completions", "m"},
		{"/openai/v1/v1/responses?a=b", "", `{"model":"m","input":"hi"}`, "/v1/responses?a=b", "m"},
		{"/v1/v1/messages", "", chat + `,"model":"m","max_tokens":9}`, "/v1/messages", "m"},
		{"/anthropic/messages/?beta=true", "", chat + `,"model":"m","max_tokens":9}`, "/v1/messages?beta=true", "m"},
		{"/openai/deployments/big/chat/completions?api-version=2024-10-21", "/openai", chat + `}`, "/openai/deployments/big/chat/completions?api-version=2024-10-21", "big"},
		{"/openai/deployments/big/chat/completions?api-version=2024-10-21", "/openai", chat + `,"model":"m"}`, "/openai/deployments/big/chat/completions?api-version=2024-10-21", "m"},
		{"/openai/responses?api-version=2025-04-01-preview", "/openai", `{"model":"m","input":"hi"}`, "/openai/responses?api-version=2025-04-01-preview", "m"},
		{"/openai/v1/responses?api-version=preview", "/openai", `{"model":"m","input":"hi"}`, "/openai/v1/responses?api-version=preview", "m"},
	} {
		t.Run(tt.path, func(t *testing.T) {
			var got string
			var sent []byte
			provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = r.URL.RequestURI()
				sent, _ = io.ReadAll(r.Body)
				if r.Header.Get("Api-Key") != "not-a-key" {
					t.Errorf("the key that arrives is %q", r.Header.Get("Api-Key"))
				}
				switch {
				case strings.Contains(got, "messages"):
					_, _ = io.WriteString(w, `{"type":"message","role":"assistant","content":[{"type":"text","text":"Yes."}],"stop_reason":"end_turn"}`)
				case strings.Contains(got, "responses"):
					_, _ = io.WriteString(w, `{"object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Yes."}]}]}`)
				default:
					_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}]}`)
				}
			}))
			defer provider.Close()
			up, err := upstream.New(provider.URL+tt.base, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer up.Close()
			store := inmem.New()
			defer store.Close()
			sessions, err := session.New(store, nil)
			if err != nil {
				t.Fatal(err)
			}
			g, err := gateway.New(sessions, gateway.Upstreams{Anthropic: up, OpenAI: up}, nil)
			if err != nil {
				t.Fatal(err)
			}
			req := httptest.NewRequest(http.MethodPost, tt.path, bytes.NewBufferString(tt.body))
			req.Header.Set("Api-Key", "not-a-key")
			w := httptest.NewRecorder()
			patient{g}.ServeHTTP(w, req)
			if w.Code != http.StatusOK || got != tt.want || string(sent) != tt.body {
				t.Errorf("%d, the provider got %s %s, want %s %s", w.Code, got, sent, tt.want, tt.body)
			}
			s, err := sessions.Open(t.Context(), furl.SessionID(w.Header().Get("X-Furl-Session")))
			if err != nil {
				t.Fatal(err)
			}
			if model := s.Meta().Model; model != tt.model {
				t.Errorf("the session's model is %q, want %q", model, tt.model)
			}
		})
	}
}
