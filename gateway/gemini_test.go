package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire/gemini"
)

// google is a provider of Gemini's format: it refuses what the validator refuses, and answers
// with a call of a tool, in pieces.
type google struct {
	mu     sync.Mutex
	bodies [][]byte
	urls   []string
	calls  int
	ids    bool // its calls have ids
	recall int  // the number of the reply that also calls a tool of furl; the one after it calls nothing else
}

func (p *google) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bodies, p.urls = append(p.bodies, body), append(p.urls, r.URL.String())
	if r.Header.Get("X-Goog-Api-Key") == "" && !r.URL.Query().Has("key") {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	req, err := gemini.Codec.DecodeRequest(body)
	if err == nil {
		err = gemini.Codec.Validate(req, furl.Model{ID: "gemini-3-pro-preview"})
	}
	if err != nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"code":400,"message":%q,"status":"INVALID_ARGUMENT"}}`, err.Error())
		return
	}
	p.calls++
	id := ""
	if p.ids {
		id = fmt.Sprintf(`"id":"call_%d",`, p.calls)
	}
	usage := fmt.Sprintf(`"usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":9,"totalTokenCount":%d}`, len(body)/4, len(body)/4+9)
	pieces := []string{
		`{"candidates":[{"content":{"parts":[{"text":"I read "}],"role":"model"},"index":0}],` + usage + `}`,
		fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"text":"file %d."}],"role":"model"},"index":0}],%s}`, p.calls, usage),
		fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"functionCall":{%s"name":"read_file","args":{"path":"f%d.go"}},"thoughtSignature":"c2lnbmF0dXJl"}],"role":"model"},"finishReason":"STOP","index":0}],%s,"responseId":"r%d"}`, id, p.calls, usage, p.calls),
	}
	const search = `{"functionCall":{"name":"memory_search","args":{"query":"package f1"}},"thoughtSignature":"c2lnbmF0dXJl"}`
	switch {
	case p.recall == 0:
	case p.calls == p.recall:
		pieces[2] = strings.Replace(pieces[2], `[{"functionCall"`, `[`+search+`,{"functionCall"`, 1)
	case p.calls == p.recall+1:
		pieces = append(pieces[:2:2], `{"candidates":[{"content":{"parts":[`+search+`],"role":"model"},"finishReason":"STOP","index":0}],`+usage+`}`)
	}
	if !strings.Contains(r.URL.Path, ":stream") {
		pieces = pieces[2:]
	}
	switch {
	case r.URL.Query().Get("alt") == "sse":
		w.Header().Set("Content-Type", "text/event-stream")
		for _, piece := range pieces {
			fmt.Fprintf(w, "data: %s\r\n\r\n", piece)
		}
	case strings.Contains(r.URL.Path, ":stream"):
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, "[%s]", strings.Join(pieces, ",\r\n"))
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, pieces[0])
	}
}

// geminiGateway returns a gateway with a policy in front of a provider, and its log.
func geminiGateway(t *testing.T, p http.Handler, policy string, window int) (g *gateway.Gateway, sessions *session.Sessions, log *bytes.Buffer) {
	t.Helper()
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	store := inmem.New()
	t.Cleanup(func() { store.Close() })
	log = new(bytes.Buffer)
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	sessions, err := session.New(store, &session.Options{Policy: policy, Window: window, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	up, err := upstream.New(server.URL, &upstream.Options{Vendor: upstream.Google, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	if g, err = gateway.New(sessions, gateway.Upstreams{Gemini: up}, &gateway.Options{Logger: logger, Recall: true}); err != nil {
		t.Fatal(err)
	}
	return g, sessions, log
}

// The ways in which clients send a history back. Each gets the pieces of a reply, and
// returns the contents for the next request.
var geminiClients = map[string]struct {
	path string
	back func(parts []json.RawMessage, n int) []string
}{
	"as it came": {"/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse", func(parts []json.RawMessage, _ int) (contents []string) {
		for _, p := range parts { // chats of @google/genai
			contents = append(contents, fmt.Sprintf(`{"parts":[%s],"role":"model"}`, p))
		}
		return contents
	}},
	"joined": {"/v1/models/gemini-3-pro-preview:streamGenerateContent?alt=sse&key=planted-key", func(parts []json.RawMessage, n int) []string {
		return []string{fmt.Sprintf(`{"role":"model","parts":[{"text":"I read file %d."},%s]}`, n, parts[len(parts)-1])}
	}},
	"as a list": {"/v1beta1/publishers/google/models/gemini-3-pro-preview:streamGenerateContent", func(parts []json.RawMessage, n int) []string {
		call := strings.Replace(string(parts[len(parts)-1]), `"functionCall":{`, fmt.Sprintf(`"functionCall":{"id":"made_up_%d",`, n), 1)
		return []string{fmt.Sprintf(`{"role":"model","parts":[{"text":"I read file %d."},%s]}`, n, call)}
	}},
	"whole": {"/v1beta/models/gemini-3-pro-preview:generateContent", func(parts []json.RawMessage, _ int) []string {
		return []string{fmt.Sprintf(`{"role":"model","parts":[%s]}`, parts[len(parts)-1])}
	}},
}

type geminiAgent struct{ contents []string }

// step sends the history, and adds the reply and the result of its call.
func (a *geminiAgent) step(t *testing.T, g *gateway.Gateway, path string, n int, back func(parts []json.RawMessage, n int) []string) {
	t.Helper()
	const tools = `"systemInstruction":{"parts":[{"text":"You read files."}]},"tools":[{"functionDeclarations":[{"name":"read_file","parametersJsonSchema":{"type":"object"}}]}]`
	r := httptest.NewRequest("POST", "http://127.0.0.1:7410"+path, strings.NewReader(`{"contents":[`+strings.Join(a.contents, ",")+`],`+tools+`}`))
	if !strings.Contains(path, "key=") {
		r.Header.Set("X-Goog-Api-Key", "planted-key")
	}
	w := httptest.NewRecorder()
	patient{g}.ServeHTTP(w, r)
	if w.Code != 200 {
		t.Fatalf("request %d: %d %s", n, w.Code, w.Body)
	}
	var parts []json.RawMessage
	var pieces []json.RawMessage
	switch body := w.Body.Bytes(); {
	case bytes.HasPrefix(body, []byte("data: ")):
		for event := range strings.SplitSeq(strings.ReplaceAll(w.Body.String(), "\r", ""), "\n\n") {
			if data, ok := strings.CutPrefix(event, "data: "); ok {
				pieces = append(pieces, json.RawMessage(data))
			}
		}
	case body[0] == '[':
		if err := json.Unmarshal(body, &pieces); err != nil {
			t.Fatal(err)
		}
	default:
		pieces = []json.RawMessage{body}
	}
	for _, piece := range pieces {
		var got struct {
			Candidates []struct {
				Content struct{ Parts []json.RawMessage }
			}
		}
		if err := json.Unmarshal(piece, &got); err != nil || len(got.Candidates) == 0 || len(got.Candidates[0].Content.Parts) == 0 {
			t.Fatalf("request %d: %v in %q", n, err, piece)
		}
		parts = append(parts, got.Candidates[0].Content.Parts...)
	}
	if strings.Contains(w.Body.String(), "memory_") {
		t.Fatalf("request %d: the client gets a call of furl's tools: %s", n, w.Body)
	}
	a.contents = append(a.contents, back(parts, n)...)
	a.contents = append(a.contents, fmt.Sprintf(`{"role":"user","parts":[{"functionResponse":{"name":"read_file","response":{"output":"package f%d // %s"}}}]}`, n, strings.Repeat("some code ", 120)))
}

// A long loop stays one session, however its client sends replies back. Old results are hidden, no
// request is refused, what is not hidden stays byte for byte, and no key is in the log.
func TestGeminiLoop(t *testing.T) {
	for name, client := range geminiClients {
		t.Run(name, func(t *testing.T) {
			p := &google{}
			g, sessions, log := geminiGateway(t, p, "tool-age", 12_000)
			a := &geminiAgent{contents: []string{`{"role":"user","parts":[{"text":"Read all files."}]}`}}
			for n := 1; n <= 40; n++ {
				a.step(t, g, client.path, n, client.back)
			}
			ids := sessionsOf(t, sessions)
			if len(ids) != 1 {
				t.Fatalf("%d sessions", len(ids))
			}
			last := string(p.bodies[len(p.bodies)-1])
			if len(last) > 48_000 || !strings.Contains(last, "package f39 //") || strings.Contains(last, "package f2 //") || !strings.Contains(last, `"memory_get"`) {
				t.Errorf("the last request has %d bytes: %.300s", len(last), last)
			}
			if !strings.Contains(p.urls[0], strings.ReplaceAll(client.path, ":", ":")) {
				t.Errorf("it was sent to %s", p.urls[0])
			}
			if strings.Contains(log.String(), "planted") {
				t.Errorf("the log has the key: %.500s", log.String())
			}
			if ids[0].Messages != 80 || ids[0].Model != "gemini-3-pro-preview" {
				t.Errorf("%d messages, model %q", ids[0].Messages, ids[0].Model)
			}
		})
	}
}

// The model's calls of furl's tools are answered, in one content with the client's results where it
// called both, and stay in the history.
func TestGeminiRecall(t *testing.T) {
	for name, client := range geminiClients {
		t.Run(name, func(t *testing.T) {
			p := &google{recall: 20}
			g, sessions, _ := geminiGateway(t, p, "tool-age", 12_000)
			a := &geminiAgent{contents: []string{`{"role":"user","parts":[{"text":"Read all files."}]}`}}
			for n := 1; n <= 24; n++ {
				path := client.path
				a.step(t, g, path, n+max(0, min(1, n-20)), func(parts []json.RawMessage, _ int) (contents []string) {
					for _, p := range parts {
						contents = append(contents, fmt.Sprintf(`{"parts":[%s],"role":"model"}`, p))
					}
					return contents
				})
			}
			if n := len(sessionsOf(t, sessions)); n != 1 {
				t.Errorf("%d sessions", n)
			}
			last := string(p.bodies[len(p.bodies)-1])
			if len(p.bodies) != 25 || strings.Count(last, `"name":"memory_search","args"`) != 2 || strings.Count(last, `{"functionResponse":{"name":"memory_search"`) != 2 {
				t.Errorf("%d requests, the last one is %s", len(p.bodies), last)
			}
		})
	}
}

// Gemini CLI resumes a session with each result twice, other signatures and no thoughts.
func TestGeminiResumed(t *testing.T) {
	p := &google{ids: true}
	g, sessions, _ := geminiGateway(t, p, "tool-age", 12_000)
	back := func(parts []json.RawMessage, n int) []string {
		return []string{fmt.Sprintf(`{"role":"model","parts":[{"text":"I read file %d."},%s]}`, n, parts[len(parts)-1])}
	}
	a := &geminiAgent{contents: []string{`{"role":"user","parts":[{"text":"Read all files."}]}`}}
	for n := 1; n <= 60; n++ {
		a.step(t, g, "/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse", n, back)
		a.contents[len(a.contents)-1] = strings.Replace(a.contents[len(a.contents)-1], `"functionResponse":{`, fmt.Sprintf(`"functionResponse":{"id":"call_%d",`, n), 1)
		if n != 30 {
			continue
		}
		var resumed []string
		for _, c := range a.contents {
			c = strings.ReplaceAll(c, "c2lnbmF0dXJl", "skip_thought_signature_validator")
			if resumed = append(resumed, c); strings.Contains(c, "functionResponse") {
				resumed = append(resumed, c)
			}
		}
		a.contents = resumed
	}
	list := sessionsOf(t, sessions)
	last := string(p.bodies[len(p.bodies)-1])
	if len(list) != 1 || strings.Count(last, "package f59 //") != 1 || strings.Contains(last, "package f2 //") || len(last) > 60_000 {
		t.Errorf("%d sessions, %d bytes", len(list), len(last))
	}
}

// Before each prompt Gemini CLI asks which model should answer. That is no session.
func TestGeminiRouterIsNoSession(t *testing.T) {
	p := &google{}
	g, sessions, _ := geminiGateway(t, p, "none", 0)
	body := `{"contents":[{"role":"user","parts":[{"text":"Read all files."}]}],"systemInstruction":{"parts":[{"text":"Route."}]},"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"object"}}}`
	r := httptest.NewRequest("POST", "http://127.0.0.1:7410/v1beta/models/gemini-2.5-flash-lite:generateContent", strings.NewReader(body))
	r.Header.Set("X-Goog-Api-Key", "k")
	r.Header.Set("User-Agent", "GeminiCLI/0.61.0/gemini-3-pro-preview (linux; x64) google-api-nodejs-client/9.15.1")
	w := httptest.NewRecorder()
	patient{g}.ServeHTTP(w, r)
	if w.Code != 200 || len(p.bodies) != 1 || string(p.bodies[0]) != body || len(sessionsOf(t, sessions)) != 0 {
		t.Errorf("%d, %d sessions, sent %s", w.Code, len(sessionsOf(t, sessions)), p.bodies)
	}
}

// furl's own errors are in Google's form, as a stream that was cut off ends.
func TestGeminiErrors(t *testing.T) {
	cut := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}],\"role\":\"model\"}}]}\r\n\r\n")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	g, _, _ := geminiGateway(t, cut, "none", 0)
	r := httptest.NewRequest("POST", "http://127.0.0.1:7410/v1beta/models/m:streamGenerateContent?alt=sse", strings.NewReader(`{"contents":[{"parts":[{"text":"q"}]}]}`))
	r.Header.Set("X-Goog-Api-Key", "k")
	w := httptest.NewRecorder()
	patient{g}.ServeHTTP(w, r)
	events := strings.Split(strings.TrimSpace(w.Body.String()), "data: ")
	var got struct {
		Error struct {
			Code            int
			Message, Status string
		}
	}
	if err := json.Unmarshal([]byte(events[len(events)-1]), &got); err != nil || got.Error.Code < 500 || got.Error.Message == "" || got.Error.Status == "" {
		t.Errorf("%v: %s", err, w.Body)
	}
}
