package gateway_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/upstream"
)

// Whatever a client's base URL is, its request is recorded, and is sent to the path at which
// the provider serves it. A deployment in the path is the model of a body without one.
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
		{"/openai/deployments/big/chat/completions?api-version=2024-10-21", "", chat + `}`, "/openai/deployments/big/chat/completions?api-version=2024-10-21", "big"},
		{"/openai/deployments/big/chat/completions", "", chat + `}`, "/openai/deployments/big/chat/completions", "big"},
		{"/openai/responses?api-version=1", "", `{"model":"m","input":"hi"}`, "/openai/responses?api-version=1", "m"},
		{"/deployments/big/chat/completions?api-version=1", "/openai", chat + `}`, "/openai/deployments/big/chat/completions?api-version=1", "big"},
		{"/api/v1/chat/completions?a=b%2Fc", "", chat + `,"model":"m"}`, "/api/v1/chat/completions?a=b%2Fc", "m"},
		{"/api/v1/chat/completions", "/api/v1", chat + `,"model":"m"}`, "/api/v1/chat/completions", "m"},
		{"/openai/api/v1/chat/completions", "", chat + `,"model":"m"}`, "/api/v1/chat/completions", "m"},
		{"/openai/api/v1/chat/completions", "/api/v1", chat + `,"model":"m"}`, "/api/v1/chat/completions", "m"},
		{"/api/v1/responses", "", `{"model":"m","input":"hi"}`, "/api/v1/responses", "m"},
		{"/api/v1/responses/compact", "", `{"model":"m","input":"hi"}`, "/api/v1/responses/compact", "m"},
		{"/api/v1/messages?beta=true", "", chat + `,"model":"m","max_tokens":9}`, "/api/v1/messages?beta=true", "m"},
		{"/openai/v1/messages", "", chat + `,"model":"m","max_tokens":9}`, "/v1/messages", "m"},
		{"/anthropic/v1/chat/completions", "", chat + `,"model":"m"}`, "/v1/chat/completions", "m"},
		{"/api/paas/v4/chat/completions", "", chat + `,"model":"m"}`, "/api/paas/v4/chat/completions", "m"},
		{"/api/paas/v4/chat/completions", "/api/paas/v4", chat + `,"model":"m"}`, "/api/paas/v4/chat/completions", "m"},
		{"/v1beta/openai/chat/completions", "", chat + `,"model":"m"}`, "/v1beta/openai/chat/completions", "m"},
		{"/v1beta/openai/chat/completions", "/v1beta/openai", chat + `,"model":"m"}`, "/v1beta/openai/chat/completions", "m"},
		{"/v1/projects/p/locations/l/endpoints/openapi/chat/completions", "", chat + `,"model":"m"}`, "/v1/projects/p/locations/l/endpoints/openapi/chat/completions", "m"},
		{"/models/org/name/v1/chat/completions", "", chat + `,"model":"m"}`, "/models/org/name/v1/chat/completions", "m"},
		{"/proxy/x/v1/messages", "/proxy", chat + `,"model":"m","max_tokens":9}`, "/proxy/x/v1/messages", "m"},
		{"/proxy/a%2Fb/v1/messages/", "", chat + `,"model":"m","max_tokens":9}`, "/proxy/a%2Fb/v1/messages", "m"},
		// Spellings that some servers read as the path.
		{"//api//v1///chat//completions", "", chat + `,"model":"m"}`, "/api/v1/chat/completions", "m"},
		{"/api/v1%2Fchat%2fcompletions", "", chat + `,"model":"m"}`, "/api/v1%2Fchat%2fcompletions", "m"},
		{"/v1%2Fchat%2Fcompletions", "", chat + `,"model":"m"}`, "/v1/chat/completions", "m"},
		{"/v1/%63hat/completions", "", chat + `,"model":"m"}`, "/v1/chat/completions", "m"},
		{"/openai%2Fv1/chat/completions", "", chat + `,"model":"m"}`, "/v1/chat/completions", "m"},
		{"/%6Fpenai/api/v1/chat/completions", "", chat + `,"model":"m"}`, "/api/v1/chat/completions", "m"},
		{"/V1/Chat/Completions", "", chat + `,"model":"m"}`, "/V1/Chat/Completions", "m"},
		{"/x/v1/chat%2F%2Fcompletions%2F", "", chat + `,"model":"m"}`, "/x/v1/chat%2F%2Fcompletions%2F", "m"},
		{"/x/v1%5Cchat%5Ccompletions", "", chat + `,"model":"m"}`, "/x/v1%5Cchat%5Ccompletions", "m"},
		{"/openai/v1/responses?api-version=preview", "/openai", `{"model":"m","input":"hi"}`, "/openai/v1/responses?api-version=preview", "m"},
	} {
		t.Run(tt.path+" "+tt.base, func(t *testing.T) {
			var got string
			var sent []byte
			provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = r.URL.RequestURI()
				sent, _ = io.ReadAll(r.Body)
				if r.Header.Get("Api-Key") != "not-a-key" {
					t.Errorf("the key that arrives is %q", r.Header.Get("Api-Key"))
				}
				switch {
				case strings.Contains(got, "compact"):
					_, _ = io.WriteString(w, `{"object":"response.compaction","output":[{"type":"compaction","encrypted_content":"x"}]}`)
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

// Requests to models with any prefix are reduced, need a client's key, and count towards the
// limits of its tenant, like those without.
func TestPrefixedPaths(t *testing.T) {
	for _, prefix := range []string{"/api", "/openai/api", "/proxy/a%2Fb", "/v1beta/openai", "/v1/projects/p/locations/l/endpoints/openapi", "//api/", "/deployments/d"} {
		t.Run(prefix, func(t *testing.T) {
			st := newFixture(t, &sim.Options{Window: 12_000, Models: sim.Only(furl.Model{ID: "somebody-s-own", Window: 12_000, Format: furl.FormatChat}), Player: sim.NewAgent(&sim.AgentOptions{Steps: 40})},
				&session.Options{Policy: "sliding-window", Window: 12_000}, nil)
			served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				want := strings.ReplaceAll(strings.TrimPrefix(prefix, "/openai"), "//", "/")
				got, ok := strings.CutPrefix(r.URL.EscapedPath(), strings.TrimSuffix(want, "/")+"/v1")
				if r.URL.Path, r.URL.RawPath = "/v1"+got, ""; !ok {
					t.Errorf("the provider got %s", r.URL)
				}
				st.sim.ServeHTTP(w, r)
			}))
			defer served.Close()
			up, err := upstream.New(served.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer up.Close()
			if st.gateway, err = gateway.New(st.sessions, gateway.Upstreams{Anthropic: up, OpenAI: up}, nil); err != nil {
				t.Fatal(err)
			}
			st.front.Config.Handler = patient{st.gateway}
			a := &agent{format: furl.FormatChat, model: "somebody-s-own"}
			a.say("Look at everything there is.")
			for n := 0; n < 40 && !a.done; n++ {
				resp, answer := st.post(t, prefix+a.path(), a.body())
				if resp.StatusCode != http.StatusOK || resp.Header.Get("X-Furl-Session") == "" || resp.Header.Get("X-Furl-Tokens-Before") == "" {
					t.Fatalf("%s %v %s", resp.Status, resp.Header, answer)
				}
				a.take(t, answer, output)
			}
			if len(st.only(t).Reductions()) == 0 || st.sim.Bill().Refused != 0 {
				t.Errorf("%d reductions, %d refused", len(st.only(t).Reductions()), st.sim.Bill().Refused)
			}
		})
	}
}

func TestPrefixedPathsAreGuarded(t *testing.T) {
	ann, annKey := key(t, "ann", "", access.Client, time.Time{})
	a := newAccessed(t, &gateway.Options{
		Keys: access.NewKeys([]access.Key{ann}), TenantSecret: []byte("0123456789abcdef"),
		Limits: &gateway.LimitSet{Default: access.Limits{RequestsPerMinute: 1}},
	})
	paths := []string{"/api/v1/messages", "/api/v1/messages/count_tokens", "/v1%2Fmessages", "/API/v1/Messages/", "//x//messages", "/x/..%2Fv1/messages", "/x/../v1/messages", "/x/./messages", `/x%5C..%5Cv1/messages`, "/v1/furl/v1/messages"}
	for _, path := range paths {
		if code, text := a.do(t, "POST", path, question); code != 401 && code != 400 || len(a.seen) > 0 {
			t.Errorf("%s without a key: %d %s", path, code, text)
		}
	}
	for _, path := range []string{"/furl/v1/messages", "/furl/x/v1/chat/completions", "/%66url/v1/messages", "//furl/v1/messages"} {
		if code, text := a.do(t, "POST", path, question, "X-Furl-Key", annKey); code != 404 || len(a.seen) > 0 {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if code, text := a.do(t, "POST", "/v1/messages", question, "X-Furl-Key", annKey); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	for _, path := range paths {
		if code, text := a.do(t, "POST", path, question, "X-Furl-Key", annKey); code != 429 && code != 400 || len(a.seen) != 1 {
			t.Errorf("%s beyond the limit: %d %s", path, code, text)
		}
	}
}

// Limits in dollars hold for each spelling of a path.
func TestSpendingOfPrefixedPaths(t *testing.T) {
	store := inmem.New()
	defer store.Close()
	a := newLimited(t, store, newClock(), access.Limits{DollarsPerDay: 0.001}, gateway.Options{})
	for n := 0; ; n++ {
		code, text := a.do(t, "POST", "/v1/messages", strings.Replace(question, "sails", strings.Repeat("sails ", 100+n), 1))
		if code == 400 && strings.Contains(text, "dollars_per_day") {
			break
		}
		if code != 200 || n > 20 {
			t.Fatalf("%d %s", code, text)
		}
	}
	sent := len(a.seen)
	for _, path := range []string{"/api/v1/messages", "/v1%2Fmessages", "/V1/Messages", "/x%5Cmessages", "/openai/x/v1/messages", "/v1//messages/", "/v1/messages%2f"} {
		if code, text := a.do(t, "POST", path, question); code != 400 || !strings.Contains(text, "dollars_per_day") {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if len(a.seen) != sent {
		t.Errorf("%d requests were sent beyond the limit", len(a.seen)-sent)
	}
}

// The path that the error of an ambiguous path names works.
func TestPathOfTheError(t *testing.T) {
	w, reached := askVendors(t, anthropicHost, openaiHost, request("POST", "/api/v1/something-new", "Authorization", "Bearer k"))
	if reached != nil || !strings.Contains(w.Body.String(), "put /anthropic, /openai or /gemini before the path") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	for path, want := range map[string]string{
		"/openai/api/v1/something-new":        openaiHost + "/api/v1/something-new",
		"/anthropic/api/v1/something-new":     anthropicHost + "/api/v1/something-new",
		"/openai/api/v1/chat/completions?a=b": openaiHost + "/api/v1/chat/completions?a=b",
	} {
		if w, reached := askVendors(t, anthropicHost, openaiHost, request("POST", path, "Authorization", "Bearer k")); reached == nil || reached.URL.String() != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
