package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// A model binds its thinking and the catalog does not say so: each of 40 requests is
// answered, one prompt is refused and sent again without thinking, and a gateway that
// starts again later meets no other refusal.
func TestRefusedThinkingIsRecovered(t *testing.T) {
	said := catalog.Default()
	for name, text := range map[string]string{
		"wrong":    "models: [{id: claude-opus-5-5, thinking: {binds: false}}]",
		"required": "models: [{id: claude-opus-5-5, thinking: {binds: false, required: true}}]",
	} {
		for _, policy := range []string{"rolling-mask-5", "auto"} {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s stream=%v", name, policy, stream), func(t *testing.T) {
					over, err := catalog.Parse("test", []byte(text))
					if err != nil {
						t.Fatal(err)
					}
					wrong, err := said.Merge(over)
					if err != nil {
						t.Fatal(err)
					}
					store := inmem.New()
					defer store.Close()
					so := &session.Options{Catalog: wrong, Window: 9_000, Policy: policy}
					st := newFixtureOn(t, store, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 1000, Thinking: 25})}, so, nil)
					c := sim.Client{
						HTTP: st.front.Client(), URL: st.front.URL, Format: furl.FormatAnthropic, Model: "claude-opus-5-5", Stream: stream,
						Fields: map[string]any{"max_tokens": 2000, "thinking": map[string]string{"type": "adaptive"}},
					}
					if err := c.Say("Look at everything there is."); err != nil {
						t.Fatal(err)
					}
					sendSteps(t, &c, 0, 30)
					st.begin(t, store, so, nil) // a new process
					c.URL, c.HTTP = st.front.URL, st.front.Client()
					sendSteps(t, &c, 30, 40)
					if b := st.sim.Bill(); b.Refused != 1 || b.ThinkingDropped != 0 {
						t.Errorf("%d refused, want 1; the provider dropped %d thinking blocks", b.Refused, b.ThinkingDropped)
					}
					s, err := st.sessions.Find(t.Context(), session.Latest)
					if err != nil {
						t.Fatal(err)
					}
					if n := countThinking(s); n != 40 {
						t.Errorf("%d thinking blocks are recorded, want 40", n)
					}
					if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
						t.Errorf("the session: %v %v", problems, err)
					}
				})
			}
		}
	}
}

// A session starts with thinking that its provider refuses, as after its store was lost:
// the client does not see the refusal and the next request does not meet it again, unless
// furl never changes its requests.
func TestForeignThinking(t *testing.T) {
	const stale = "c3RhbGU="
	history := map[string]string{
		"/v1/messages":  `{"model":"claude-sonnet-4-5","max_tokens":100,"stream":%t,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"` + stale + `"},{"type":"text","text":"b"}]},{"role":"user","content":"c"}%s]}`,
		"/v1/responses": `{"model":"gpt-5.2","store":false,"stream":%t,"input":[{"role":"user","content":"a"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"` + stale + `"},{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"b","annotations":[]}]},{"role":"user","content":"c"}%s]}`,
	}
	replies := map[string]struct{ refusal, answer string }{
		"/v1/messages": {
			"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"messages.1.content.0: Invalid `signature` in `thinking` block\"}}",
			`{"id":"msg_2","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"d"}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":1}}`,
		},
		"/v1/responses": {
			`{"error":{"message":"The encrypted content for item rs_1 could not be verified. Reason: Encrypted content could not be decrypted or parsed.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}`,
			`{"id":"resp_1","object":"response","status":"completed","model":"gpt-5.2","output":[{"type":"message","id":"msg_2","status":"completed","role":"assistant","content":[{"type":"output_text","text":"d","annotations":[]}]}],"usage":{"input_tokens":9,"output_tokens":1,"total_tokens":10}}`,
		},
	}
	more := map[string]string{
		"/v1/messages":  `,{"role":"assistant","content":[{"type":"text","text":"d"}]},{"role":"user","content":"e"}`,
		"/v1/responses": `,{"type":"message","id":"msg_2","status":"completed","role":"assistant","content":[{"type":"output_text","text":"d","annotations":[]}]},{"role":"user","content":"e"}`,
	}
	for path, body := range history {
		for _, tc := range []struct {
			name, policy, header string
			inStream, passes     bool
		}{
			{name: "answered", policy: "auto"},
			{name: "refused in a stream", policy: "auto", inStream: true},
			{name: "policy none", policy: "none", passes: true},
			{name: "a dry run", policy: "auto", header: "X-Furl-Dry-Run", passes: true},
			{name: "bypassed", policy: "auto", header: "X-Furl-Bypass", passes: true},
		} {
			t.Run(path+" "+tc.name, func(t *testing.T) {
				refused, answered := 0, 0
				provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					sent, _ := io.ReadAll(r.Body)
					w.Header().Set("Content-Type", "application/json")
					switch stale := bytes.Contains(sent, []byte(stale)); {
					case !stale:
						answered++
						_, _ = io.WriteString(w, replies[path].answer)
					case tc.inStream:
						refused++
						w.Header().Set("Content-Type", "text/event-stream")
						_, _ = fmt.Fprintf(w, "event: error\ndata: %s\n\n", replies[path].refusal)
					default:
						refused++
						w.WriteHeader(http.StatusBadRequest)
						_, _ = io.WriteString(w, replies[path].refusal)
					}
				}))
				defer provider.Close()
				st := &fixture{direct: provider}
				store := inmem.New()
				defer store.Close()
				st.begin(t, store, &session.Options{Policy: tc.policy}, &gateway.Options{})
				// The texts are too short to recognize the conversation by.
				headers := []string{"X-Furl-Session", "mine"}
				if tc.header != "" {
					headers = append(headers, tc.header, "true")
				}
				resp, answer := st.post(t, path, fmt.Appendf(nil, body, tc.inStream, ""), headers...)
				if tc.passes {
					if resp.StatusCode != http.StatusBadRequest || string(answer) != replies[path].refusal || refused != 1 {
						t.Errorf("%d %s, refused %d times", resp.StatusCode, answer, refused)
					}
					return
				}
				if resp.StatusCode != 200 || string(answer) != replies[path].answer || !strings.Contains(resp.Header.Get("X-Furl-Note"), "refused thinking") {
					t.Fatalf("%d %s %v", resp.StatusCode, answer, resp.Header)
				}
				resp, _ = st.post(t, path, fmt.Appendf(nil, body, tc.inStream, more[path]), headers...)
				if resp.StatusCode != 200 || refused != 1 || answered != 2 || resp.Header.Get("X-Furl-Note") != "" {
					t.Errorf("the next request: %d, %d were refused and %d answered, note %q", resp.StatusCode, refused, answered, resp.Header.Get("X-Furl-Note"))
				}
				if n := metricsOf(t, st)["furl_thinking_recovered_total"]; n != 1 {
					t.Errorf("the metric is %v", n)
				}
			})
		}
	}
}
