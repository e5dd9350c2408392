package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/upstream"
)

// provider answers everything, and keeps the headers of what reaches it.
type provider struct {
	mu       sync.Mutex
	requests []*http.Request
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // what came of it
	p.mu.Lock()
	p.requests = append(p.requests, r)
	p.mu.Unlock()
	w.Header().Set("Access-Control-Allow-Origin", "https://of-the-provider.example")
	w.Header().Set("Access-Control-Allow-Credentials", "true")
	w.Header().Set("Vary", "Accept")
	switch {
	case strings.HasSuffix(r.URL.Path, "/messages"):
		_, _ = io.WriteString(w, `{"type":"message","role":"assistant","content":[{"type":"text","text":"Yes."}],"stop_reason":"end_turn"}`)
	case strings.HasSuffix(r.URL.Path, "/responses"):
		_, _ = io.WriteString(w, `{"object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Yes."}]}]}`)
	default:
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}]}`)
	}
}

// taken returns the requests that have come since it was called last.
func (p *provider) taken() []*http.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.requests
	p.requests = nil
	return list
}

// edge is a gateway over HTTP before a provider that answers everything.
type edge struct {
	provider *provider
	url      string
	store    storage.Store
}

func newEdge(t *testing.T, o *gateway.Options) *edge {
	t.Helper()
	e := &edge{provider: &provider{}, store: inmem.New()}
	t.Cleanup(func() { e.store.Close() })
	back := httptest.NewServer(e.provider)
	t.Cleanup(back.Close)
	up, err := upstream.New(back.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	sessions, err := session.New(e.store, nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(sessions, gateway.Upstreams{Anthropic: up, OpenAI: up}, o)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(patient{g})
	t.Cleanup(front.Close)
	e.url = front.URL
	return e
}

// stored counts the sessions in the store.
func (e *edge) stored(t *testing.T) (n int) {
	t.Helper()
	for _, err := range e.store.Sessions(t.Context(), "", storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// send sends a request; headers are names and values in turn, and an empty
// value is left out.
func (e *edge) send(t *testing.T, method, path, host, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, e.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] != "" {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(answer)
}

const configured = "https://app.example"

// pathKind is one way to ask the gateway for something.
type pathKind struct {
	name, method, path, body string
	header                   []string
	status                   int  // where it is served
	reaches, stored, own     bool // the provider; a session; answered by furl itself
}

var pathKinds = []pathKind{
	{"Anthropic Messages", "POST", "/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hello %d"}]}`, nil, 200, true, true, false},
	{"Chat Completions", "POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hello %d"}]}`, nil, 200, true, true, false},
	{"Responses with a prefix", "POST", "/openai/v1/responses", `{"model":"m","store":false,"input":"hello %d"}`, nil, 200, true, true, false},
	{"a form of a page", "POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hello %d"}]}`, []string{"Content-Type", "text/plain"}, 200, true, true, false},
	{"a path passed through", "GET", "/v1/models", "", nil, 200, true, false, false},
	{"a POST passed through", "POST", "/openai/v1/embeddings", `{"input":"hello %d"}`, nil, 200, true, false, false},
	{"furl's API", "GET", "/furl/v1/sessions", "", nil, 200, false, false, true},
	{"a change by furl's API", "POST", "/furl/v1/sessions/latest/reduce", "{}", nil, 404, false, false, true},
	{"metrics", "GET", "/metrics", "", nil, 200, false, false, true},
	{"a WebSocket", "GET", "/v1/responses", "", []string{"Connection", "Upgrade", "Upgrade", "websocket"}, 426, false, false, false},
	{"OPTIONS", "OPTIONS", "/v1/messages", "", nil, 200, true, false, false},
	{"a preflight", "OPTIONS", "/v1/messages", "", []string{"Access-Control-Request-Method", "POST"}, 200, true, false, false},
}

// What a web page may send, over all that a browser may say of it: refused
// requests reach no provider and are not stored.
func TestPages(t *testing.T) {
	for _, kind := range pathKinds {
		t.Run(kind.name, func(t *testing.T) {
			e := newEdge(t, &gateway.Options{Origins: []string{"app://obsidian.md", configured}})
			own := strings.TrimPrefix(e.url, "http://")
			n := 0
			for _, site := range []string{"", "none", "same-origin", "same-site", "cross-site", "something-new"} {
				for _, from := range []string{"", "null", "own", "https://evil.example", configured} {
					for _, host := range []string{own, "evil.example:7410"} {
						for _, key := range []string{"", "made-up"} {
							origin := from
							if from == "own" {
								origin = "http://" + host
							}
							body := kind.body
							if strings.Contains(body, "%d") {
								body = fmt.Sprintf(body, n)
							}
							n++
							before := e.stored(t)
							resp, answer := e.send(t, kind.method, kind.path, host, body,
								append([]string{"Origin", origin, "Sec-Fetch-Site", site, "X-Api-Key", key}, kind.header...)...)
							reached, stored := e.provider.taken(), e.stored(t)-before
							what := fmt.Sprintf("Sec-Fetch-Site %q, Origin %q, Host %s, key %q", site, origin, host, key)
							if !served(site, from, host == own, key != "", kind.own) {
								if resp.StatusCode != http.StatusForbidden || len(reached) != 0 || stored != 0 {
									t.Errorf("%s: %d, %d requests reached the provider, %d sessions stored; want it refused: %s", what, resp.StatusCode, len(reached), stored, answer)
								}
								if got := resp.Header.Get("Access-Control-Allow-Origin"); got != "" && got != configured {
									t.Errorf("%s: refused, and open to %s", what, got)
								}
								if !strings.Contains(answer, `"message":"`) {
									t.Errorf("%s: the error is %s", what, answer)
								}
								continue
							}
							status, reaches := kind.status, kind.reaches
							if from == configured && slices.Contains(kind.header, "Access-Control-Request-Method") {
								status, reaches = http.StatusNoContent, false // furl answers it
							}
							if resp.StatusCode != status || len(reached) == 1 != reaches || stored == 1 != kind.stored {
								t.Errorf("%s: %d, %d requests reached the provider, %d sessions stored; want %d: %s", what, resp.StatusCode, len(reached), stored, status, answer)
							}
							for _, r := range reached {
								if r.Header.Get("Origin") != "" {
									t.Errorf("%s: the provider is told of the page", what)
								}
							}
							if got := resp.Header.Get("Access-Control-Allow-Origin"); (got == configured) != (from == configured) {
								t.Errorf("%s: Access-Control-Allow-Origin is %q", what, got)
							}
						}
					}
				}
			}
		})
	}
}

// served says what should be served: site is Sec-Fetch-Site, from the Origin,
// ownHost whether the gateway is addressed by its own name.
func served(site, from string, ownHost, key, ownAPI bool) bool {
	page := site != "" || from != ""
	switch {
	case from == "null", from == "https://evil.example":
		return false
	case from != configured && site != "" && site != "none" && site != "same-origin":
		return false
	case !ownHost && (page || !key || ownAPI):
		return false
	}
	return true
}

// Clients that are not browsers are served as ever, by whatever they are made
// with: fetch of Node.js sends one of the headers of browsers.
func TestNotPages(t *testing.T) {
	e := newEdge(t, nil)
	for name, headers := range map[string][]string{
		"curl":             {"User-Agent", "curl/8.5.0", "Accept", "*/*"},
		"fetch of Node.js": {"Sec-Fetch-Mode", "cors", "Accept-Language", "*", "User-Agent", "node"},
		"a page's referrer that a proxy has left": {"Referer", "https://app.example/"},
		"Electron's main process":                 {"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "empty"},
	} {
		before := e.stored(t)
		resp, answer := e.send(t, "POST", "/v1/messages", "", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"`+name+`"}]}`,
			append(headers, "X-Api-Key", "k", "Anthropic-Version", "2023-06-01")...)
		if reached := e.provider.taken(); resp.StatusCode != http.StatusOK || len(reached) != 1 || e.stored(t) != before+1 {
			t.Errorf("%s: %d %s, %d requests reached the provider", name, resp.StatusCode, answer, len(reached))
		}
	}
}

// More than one value of these headers is what no browser sends.
func TestPageHeadersOnce(t *testing.T) {
	e := newEdge(t, &gateway.Options{Origins: []string{configured}})
	for _, header := range []string{"Origin", "Sec-Fetch-Site"} {
		req, err := http.NewRequest(http.MethodGet, e.url+"/v1/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header["Origin"] = []string{configured}
		req.Header[header] = []string{configured, configured}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if reached := e.provider.taken(); resp.StatusCode != http.StatusForbidden || len(reached) != 0 {
			t.Errorf("two of %s: %d", header, resp.StatusCode)
		}
	}
}

// A page of a configured origin gets from furl what CORS asks for, in place of
// what the provider says of pages, and where furl refuses a request, too.
func TestConfiguredOrigins(t *testing.T) {
	e := newEdge(t, &gateway.Options{ClientKeys: []string{"made-up"}, Origins: []string{configured, "app://obsidian.md", "tauri://localhost", "vscode-webview://*"}})
	chat := `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
	for _, origin := range []string{configured, "app://obsidian.md", "tauri://localhost", "vscode-webview://0r7bkkrqv8", "vscode-webview://1"} {
		e.provider.taken()
		resp, _ := e.send(t, "OPTIONS", "/v1/chat/completions", "", "", "Origin", origin, "Sec-Fetch-Site", "cross-site",
			"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type,x-furl-session")
		h := resp.Header
		if resp.StatusCode != http.StatusNoContent || len(e.provider.taken()) != 0 || h.Get("Access-Control-Allow-Origin") != origin ||
			h.Get("Access-Control-Allow-Methods") != "POST" || h.Get("Access-Control-Allow-Headers") != "authorization,content-type,x-furl-session" {
			t.Errorf("the preflight of %s: %d %v", origin, resp.StatusCode, h)
		}
		for _, tt := range []struct {
			method, path, body, key string
			want                    int
		}{
			{"POST", "/v1/chat/completions", chat, "made-up", 200},
			{"POST", "/v1/chat/completions", chat, "wrong", 401},
			{"GET", "/v1/models", "", "made-up", 200},
			{"GET", "/furl/v1/status", "", "made-up", 200},
			{"GET", "/furl/v1/status", "", "", 401},
			{"GET", "/v1/../models", "", "made-up", 400},
		} {
			resp, answer := e.send(t, tt.method, tt.path, "", tt.body, "Origin", origin, "Sec-Fetch-Site", "cross-site", "X-Furl-Key", tt.key)
			h := resp.Header
			if resp.StatusCode != tt.want || strings.Join(h["Access-Control-Allow-Origin"], " ") != origin || h.Get("Access-Control-Expose-Headers") != "*" ||
				h["Access-Control-Allow-Credentials"] != nil || !strings.Contains(strings.Join(h["Vary"], ", "), "Origin") {
				t.Errorf("%s %s of %s: %d %v %s, want %d", tt.method, tt.path, origin, resp.StatusCode, h, answer, tt.want)
			}
		}
	}
	for _, origin := range []string{"http://app.example", configured + ":8443", "app://evil.md", "vscode-webview.evil://x", "null"} {
		if resp, _ := e.send(t, "POST", "/v1/chat/completions", "", chat, "Origin", origin, "X-Furl-Key", "made-up"); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", origin, resp.StatusCode)
		}
	}
}

// Origins that would open the gateway to any page are refused when it starts.
func TestInvalidOrigins(t *testing.T) {
	up, err := upstream.New("http://127.0.0.1:9", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	for _, origin := range []string{"null", "*", "https://*"} {
		if _, err := gateway.New(nil, gateway.Upstreams{OpenAI: up}, &gateway.Options{Origins: []string{origin}}); err == nil || !strings.Contains(err.Error(), "invalid origin") {
			t.Errorf("%s: %v", origin, err)
		}
	}
}
