package modelsapi_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/modelsapi"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/upstream"
)

// server is a provider that answers fixed paths and records what it was asked.
type server struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
	keys  []string
}

func newServer(t *testing.T, answers map[string]string) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		body, _ := io.ReadAll(r.Body)
		asked := strings.TrimSpace(r.Method + " " + r.URL.RequestURI() + " " + string(body))
		s.asked, s.keys = append(s.asked, asked), append(s.keys, r.Header.Get("Authorization"))
		s.mu.Unlock()
		switch answer, ok := answers[asked]; {
		case !ok:
			http.NotFound(w, r)
		default:
			_, _ = io.WriteString(w, answer)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func client(t *testing.T, address string) *upstream.Client {
	t.Helper()
	c, err := upstream.New(address, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

var credential = http.Header{"Authorization": {"Bearer planted-secret-key"}, "Cookie": {"no"}, "X-Stainless-Lang": {"js"}}

// Each server that says windows is asked in its own way, at its root where that is outside
// the API. The shapes are those of the documentation that wire/openai/models.go names.
func TestServers(t *testing.T) {
	for _, tc := range []struct {
		name, base, model string
		format            furl.Format
		answers           map[string]string
		window, output    int
		asked             int
	}{
		{
			name: "vLLM", base: "/v1", model: "qwen/qwen3-coder", format: furl.FormatChat, window: 40_960, asked: 1,
			answers: map[string]string{"GET /v1/models": `{"object":"list","data":[{"id":"qwen/qwen3-coder","object":"model","created":1,"owned_by":"vllm","root":"qwen/qwen3-coder","parent":null,"max_model_len":40960,"permission":[]}]}`},
		},
		{
			name: "llama.cpp", base: "/v1", model: "any-name", format: furl.FormatResponses, window: 65_536, asked: 2,
			answers: map[string]string{
				"GET /v1/models": `{"models":[],"object":"list","data":[{"id":"qwen3.gguf","object":"model","created":1,"owned_by":"llamacpp","meta":{"vocab_type":2,"n_vocab":151936,"n_ctx_train":262144,"n_embd":2048}}]}`,
				"GET /props?autoload=false&model=qwen3.gguf": `{"default_generation_settings":{"id":0,"n_ctx":65536,"params":{}},"total_slots":4,"model_alias":"qwen3","build_info":"b8681"}`,
			},
		},
		{
			name: "llama.cpp as a router", model: "b", format: furl.FormatChat, window: 8192, asked: 2,
			answers: map[string]string{
				"GET /v1/models":                    `{"data":[{"id":"a","owned_by":"llamacpp"},{"id":"b","owned_by":"llamacpp"}]}`,
				"GET /props?autoload=false&model=b": `{"default_generation_settings":{"n_ctx":8192}}`,
			},
		},
		{
			name: "Ollama, loaded", base: "/v1", model: "gemma4", format: furl.FormatChat, window: 4096, asked: 2,
			answers: map[string]string{
				"GET /v1/models": `{"object":"list","data":[{"id":"gemma4:latest","object":"model","created":1,"owned_by":"library"},{"id":"other:7b","owned_by":"library"}]}`,
				"GET /api/ps":    `{"models":[{"name":"gemma4:latest","model":"gemma4:latest","size":6591830464,"expires_at":"2026-10-17T16:47:07.93355-07:00","size_vram":5333539264,"context_length":4096}]}`,
			},
		},
		{
			name: "Ollama by Messages, not loaded", model: "gemma4", format: furl.FormatAnthropic, window: 8192, asked: 4,
			answers: map[string]string{
				"GET /v1/models":                    `{"data":[{"id":"gemma4","owned_by":"library"}]}`,
				"GET /api/ps":                       `{"models":[]}`,
				`POST /api/show {"model":"gemma4"}`: `{"parameters":"num_ctx                        8192\nstop                           \"<turn|>\"","model_info":{"gemma4.context_length":131072}}`,
			},
		},
		{
			name: "Ollama says only the maximum", model: "gemma4", format: furl.FormatChat, asked: 3,
			answers: map[string]string{
				"GET /v1/models":                    `{"data":[{"id":"gemma4","owned_by":"library"}]}`,
				"GET /api/ps":                       `{"models":[]}`,
				`POST /api/show {"model":"gemma4"}`: `{"model_info":{"gemma4.context_length":131072}}`,
			},
		},
		{
			name: "LM Studio, v0", base: "/v1", model: "qwen/qwen3-4b", format: furl.FormatChat, window: 4096, asked: 2,
			answers: map[string]string{
				"GET /v1/models":                     `{"data":[{"id":"qwen/qwen3-4b","object":"model","owned_by":"organization_owner"},{"id":"b","owned_by":"organization_owner"}]}`,
				"GET /api/v0/models/qwen%2Fqwen3-4b": `{"id":"qwen/qwen3-4b","object":"model","type":"llm","arch":"qwen3","state":"loaded","max_context_length":32768,"loaded_context_length":4096}`,
			},
		},
		{
			name: "LM Studio, v1", model: "qwen/qwen3-4b", format: furl.FormatChat, window: 16_384, asked: 3,
			answers: map[string]string{
				"GET /v1/models":     `{"data":[{"id":"qwen/qwen3-4b","owned_by":"organization_owner"}]}`,
				"GET /api/v1/models": `{"models":[{"type":"llm","key":"qwen/qwen3-4b","loaded_instances":[{"id":"qwen/qwen3-4b","config":{"context_length":16384,"flash_attention":true}}],"max_context_length":262144}]}`,
			},
		},
		{
			name: "a router's list", base: "/api/v1", model: "z/glm", format: furl.FormatChat, window: 131_072, output: 8000, asked: 1,
			answers: map[string]string{"GET /api/v1/models": `{"data":[{"id":"a"},{"id":"z/glm","context_length":202752,"top_provider":{"context_length":131072,"max_completion_tokens":8000,"is_moderated":false}}]}`},
		},
		{name: "a server that says nothing", model: "m", format: furl.FormatChat, asked: 1, answers: map[string]string{"GET /v1/models": `{"data":[{"id":"m","owned_by":"me"}]}`}},
		{name: "nonsense", model: "m", format: furl.FormatChat, asked: 1, answers: map[string]string{"GET /v1/models": `{"data":[{"id":"m","max_model_len":-5}]}`}},
		{name: "no JSON", model: "m", format: furl.FormatChat, asked: 1, answers: map[string]string{"GET /v1/models": `<html>`}},
		{name: "no models API", model: "m", format: furl.FormatAnthropic, asked: 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, tc.answers)
			up := client(t, s.URL+tc.base)
			book := modelsapi.Open(filepath.Join(t.TempDir(), modelsapi.FileName), nil, nil)
			book.Ask(up, tc.format, tc.model, credential)
			book.Wait()
			f, ok := book.Fact(up.Address(), tc.model)
			if ok != (tc.window > 0) || f.Window != tc.window || f.MaxOutput != tc.output {
				t.Errorf("%+v after %q", f, s.asked)
			}
			if len(s.asked) != tc.asked || slices.ContainsFunc(s.keys, func(k string) bool { return k != "Bearer planted-secret-key" }) {
				t.Errorf("asked %q with %q, want %d requests", s.asked, s.keys, tc.asked)
			}
		})
	}
}

// Redirects are not followed: another host gets neither a query nor the credential.
func TestRedirect(t *testing.T) {
	other := newServer(t, map[string]string{"GET /v1/models": `{"data":[{"id":"m","max_model_len":4096}]}`})
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		asked := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			http.Redirect(w, r, other.URL+r.URL.Path, status)
		}))
		t.Cleanup(s.Close)
		up := client(t, s.URL)
		book := modelsapi.Open("", nil, nil)
		book.Ask(up, furl.FormatChat, "m", credential)
		book.Wait()
		if f, ok := book.Fact(up.Address(), "m"); ok || asked != 1 || len(other.asked) != 0 {
			t.Errorf("%d: %+v, %d requests, %q to the other host", status, f, asked, other.asked)
		}
	}
}

// A query that Close cancels does not count as asked: the next process asks.
func TestCancelledByClose(t *testing.T) {
	arrived := make(chan struct{})
	first := true
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if first {
			first = false
			close(arrived)
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, `{"data":[{"id":"m","max_model_len":4096}]}`)
	}))
	defer s.Close()
	up := client(t, s.URL)
	path := filepath.Join(t.TempDir(), modelsapi.FileName)
	book := modelsapi.Open(path, nil, nil)
	book.Ask(up, furl.FormatChat, "m", credential)
	book.Ask(up, furl.FormatChat, "m", credential) // is being asked about already
	<-arrived
	book.Close()
	if facts := book.Facts(); len(facts) != 0 {
		t.Errorf("recorded %+v", facts)
	}
	book = modelsapi.Open(path, nil, nil)
	book.Ask(up, furl.FormatChat, "m", credential)
	book.Wait()
	if f, ok := book.Fact(up.Address(), "m"); !ok || f.Window != 4096 {
		t.Errorf("after a cancelled query: %+v", f)
	}
}

// The caller may change the header that it has passed while queries are being sent.
func TestHeaderIsCopied(t *testing.T) {
	changed := make(chan struct{})
	var keys []string
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-changed
		keys = append(keys, r.Header.Get("X-Api-Key"))
	}))
	defer s.Close()
	header := http.Header{"X-Api-Key": {"planted-secret-key"}}
	book := modelsapi.Open("", nil, nil)
	book.Ask(client(t, s.URL), furl.FormatAnthropic, "m", header)
	header["X-Api-Key"][0] = "changed"
	close(changed)
	book.Wait()
	if !slices.Equal(keys, []string{"planted-secret-key", "planted-secret-key"}) {
		t.Errorf("sent %q", keys)
	}
}

// A provider is asked once a day for a model, also after a failure and by another process,
// and the sizes outlive both. The file has no credential.
func TestOnceADay(t *testing.T) {
	s := sim.New(&sim.Options{Models: func(name string) (furl.Model, bool) {
		return furl.Model{ID: name, Format: furl.FormatAnthropic, Window: 150_000, MaxOutput: 9000}, name == "claude-new"
	}})
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		s.ServeHTTP(w, r)
	}))
	defer srv.Close()
	up := client(t, srv.URL)
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "data", modelsapi.FileName)
	open := func() *modelsapi.Book { return modelsapi.Open(path, nil, func() time.Time { return now }) }
	book := open()
	header := http.Header{"X-Api-Key": {"planted-secret-key"}, "Anthropic-Version": {"2023-06-01"}}
	ask := func(want int) {
		t.Helper()
		asked = 0
		book.Ask(up, furl.FormatAnthropic, "claude-new", header)
		book.Wait()
		if f, ok := book.Fact(up.Address(), "claude-new"); asked != want || !ok || f.Window != 150_000 || f.MaxOutput != 9000 || f.From != srv.URL+"/v1/models/claude-new" {
			t.Errorf("asked %d times, want %d; %+v", asked, want, f)
		}
	}
	ask(1)
	ask(0)
	book.Close()
	book = open() // another process
	ask(0)
	now = now.Add(25 * time.Hour)
	ask(1)

	now = now.Add(25 * time.Hour)
	header.Set("X-Api-Key", "") // refused
	ask(2)                      // also asks as a server of OpenAI's APIs
	ask(0)

	data, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(data), "planted") {
		t.Errorf("the file has %s: %v", data, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the file's mode is %v: %v", info.Mode(), err)
	}
	book.Close()
	book.Ask(up, furl.FormatAnthropic, "claude-other", header)
	if len(book.Facts()) != 1 {
		t.Errorf("a closed book has %v", book.Facts())
	}
}

// Names come from clients: a book keeps the newest thousand, and no long ones. A broken
// file is replaced.
func TestBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), modelsapi.FileName)
	if err := os.WriteFile(path, []byte(`{"models":[{"model":`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, nil)
	up := client(t, s.URL)
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	book := modelsapi.Open(path, nil, func() time.Time { now = now.Add(time.Second); return now })
	book.Ask(up, furl.FormatChat, strings.Repeat("m", 300), nil)
	book.Ask(up, furl.FormatChat, "", nil)
	if book.Wait(); len(s.asked) != 0 {
		t.Errorf("asked %q", s.asked)
	}
	book.Ask(up, furl.FormatChat, "new", nil)
	book.Wait()
	var file strings.Builder
	for i := range 1050 {
		fmt.Fprintf(&file, `,{"provider":"https://host","model":"m%04d","asked":%q,"window":-1}`, i, time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC).Format(time.RFC3339))
	}
	if err := os.WriteFile(path, []byte(`{"models":[`+file.String()[1:]+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	book.Ask(up, furl.FormatChat, "newer", nil) // and reads what another process has written
	book.Wait()
	book = modelsapi.Open(path, nil, nil)
	if facts := book.Facts(); len(facts) != 1000 || facts[0].Model != "new" || facts[2].Model != "m0052" || facts[2].Window != 0 || facts[0].Failed == "" {
		t.Errorf("%d facts, %+v", len(facts), facts[:3])
	}
	if _, ok := book.Fact(up.Address(), "newer"); ok {
		t.Error("a failure is a fact")
	}
}

// Facts in memory have the same limit if there is no file.
func TestBoundsInMemory(t *testing.T) {
	s := newServer(t, nil)
	up := client(t, s.URL)
	book := modelsapi.Open("", nil, nil)
	for i := range 1001 {
		book.Ask(up, furl.FormatChat, fmt.Sprintf("m%04d", i), nil)
		book.Wait()
	}
	if facts := book.Facts(); len(facts) != 1000 || facts[0].Model != "m0001" {
		t.Errorf("%d facts, first %+v", len(facts), facts[0])
	}
}

// A fact that a wrong clock has dated in the future is ignored: it would never be replaced.
func TestFutureFact(t *testing.T) {
	s := newServer(t, map[string]string{"GET /v1/models": `{"data":[{"id":"m","max_model_len":4096}]}`})
	up := client(t, s.URL)
	path := filepath.Join(t.TempDir(), modelsapi.FileName)
	future := fmt.Sprintf(`{"models":[{"provider":%q,"model":"m","window":1,"at":"2100-01-01T00:00:00Z","asked":"2100-01-01T00:00:00Z"}]}`, up.Address())
	if err := os.WriteFile(path, []byte(future), 0o600); err != nil {
		t.Fatal(err)
	}
	book := modelsapi.Open(path, nil, nil)
	book.Ask(up, furl.FormatChat, "m", nil)
	book.Wait()
	for _, b := range []*modelsapi.Book{book, modelsapi.Open(path, nil, nil)} {
		if f, ok := b.Fact(up.Address(), "m"); !ok || f.Window != 4096 {
			t.Errorf("%+v", f)
		}
	}
}

// Facts that are recorded at the same time are all written.
func TestSavedTogether(t *testing.T) {
	s := newServer(t, nil)
	up := client(t, s.URL)
	path := filepath.Join(t.TempDir(), modelsapi.FileName)
	book := modelsapi.Open(path, nil, nil)
	for round := range 20 {
		for i := range 4 {
			book.Ask(up, furl.FormatChat, fmt.Sprintf("m%d.%d", round, i), nil)
		}
		book.Wait()
		if got := len(modelsapi.Open(path, nil, nil).Facts()); got != 4*(round+1) {
			t.Fatalf("the file has %d facts, want %d", got, 4*(round+1))
		}
	}
}

// A file that cannot be replaced leaves no temporary file.
func TestSaveFails(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, modelsapi.FileName)
	if err := os.MkdirAll(filepath.Join(path, "not-empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, nil)
	book := modelsapi.Open(path, nil, nil)
	book.Ask(client(t, s.URL), furl.FormatChat, "m", nil)
	book.Wait()
	if files, err := os.ReadDir(folder); err != nil || len(files) != 1 {
		t.Errorf("%v: %v", files, err)
	}
}
