package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/modelsapi"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// The gateway takes the window of a model that the catalog lacks from the provider's models
// API, with the credential of the client's request, once. A refused client, a bypassed
// request and a gateway without Options.Models ask nothing.
func TestModelsAPI(t *testing.T) {
	const model = "new-model"
	var mu sync.Mutex
	var asked []string // paths and credentials
	answer := sim.New(&sim.Options{Models: func(name string) (furl.Model, bool) {
		return furl.Model{ID: name, Format: furl.FormatAnthropic, Window: 20_000, MaxOutput: 4000}, name == model
	}, Player: sim.NewAgent(&sim.AgentOptions{Steps: 100})})
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			mu.Lock()
			asked = append(asked, r.URL.Path+" "+r.Header.Get("Authorization"))
			mu.Unlock()
		}
		if r.Header.Get("Authorization") == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		answer.ServeHTTP(w, r)
	}))
	defer provider.Close()
	book := modelsapi.Open(filepath.Join(t.TempDir(), modelsapi.FileName), nil, nil)
	defer book.Close()
	store := inmem.New()
	defer store.Close()
	st := &fixture{direct: provider}
	so := &session.Options{Reported: func(name string, _ furl.Format) (session.Reported, bool) {
		f, ok := book.Fact(provider.URL, name)
		return session.Reported{Window: f.Window, MaxOutput: f.MaxOutput, From: f.From, At: f.At}, ok
	}}
	body := []byte(`{"model":"` + model + `","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}`)
	check := func(what string, want int) {
		t.Helper()
		book.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(asked) != want || want > 0 && asked[0] != "/v1/models/"+model+" Bearer planted-secret-key" {
			t.Errorf("%s: asked %q, want %d requests", what, asked, want)
		}
	}

	st.begin(t, store, so, nil)
	st.post(t, "/v1/messages", body)
	check("switched off", 0)

	st.begin(t, store, so, &gateway.Options{Models: book})
	st.post(t, "/v1/messages", body, "Authorization", "")
	check("a refused client", 0)
	st.post(t, "/v1/messages", body, "X-Furl-Bypass", "true")
	check("bypassed", 0)
	st.post(t, "/v1/messages/count_tokens", body)
	check("a count", 0)
	for range 3 {
		st.post(t, "/v1/messages", body)
		check("accepted", 1)
	}
	s, err := st.sessions.Find(t.Context(), session.Latest)
	if err != nil {
		t.Fatal(err)
	}
	if m := s.Model(model); m.Window != 20_000 || m.MaxOutput != 4000 {
		t.Errorf("the window is %d, the largest reply %d; want 20000 and 4000", m.Window, m.MaxOutput)
	}
}

// A model of no known family binds its thinking, and only the provider knows that, and its
// window. All of 40 requests are answered: the window comes from the models API, and one
// refusal of a signature is recovered from.
func TestModelsAPIOfBindingModel(t *testing.T) {
	const name = "somebody-s-own"
	for _, policy := range []string{"rolling-mask-5", "auto"} {
		t.Run(policy, func(t *testing.T) {
			model, _ := catalog.Default().Lookup("claude-fable-5-2")
			model.ID, model.Window, model.MaxOutput = name, 9_000, 2000
			book := modelsapi.Open("", nil, nil)
			defer book.Close()
			st := &fixture{}
			so := &session.Options{Policy: policy, Reported: func(name string, _ furl.Format) (session.Reported, bool) {
				f, ok := book.Fact(st.direct.URL, name)
				return session.Reported{Window: f.Window, MaxOutput: f.MaxOutput, From: f.From, At: f.At}, ok
			}}
			store := inmem.New()
			defer store.Close()
			st.sim = sim.New(&sim.Options{Models: sim.Only(model), Player: sim.NewAgent(&sim.AgentOptions{Steps: 1000, Thinking: 25})})
			st.direct = httptest.NewServer(st.sim)
			t.Cleanup(st.direct.Close)
			st.begin(t, store, so, &gateway.Options{Models: book})
			c := sim.Client{
				HTTP: st.front.Client(), URL: st.front.URL, Format: furl.FormatAnthropic, Model: name,
				Fields: map[string]any{"max_tokens": 2000, "thinking": map[string]string{"type": "adaptive"}},
			}
			if err := c.Say("Read all the files and report."); err != nil {
				t.Fatal(err)
			}
			for n := range 40 {
				reply, err := c.Send(t.Context())
				if err != nil {
					t.Fatalf("request %d: %v", n+1, err)
				}
				book.Wait()
				answerCalls(&c, reply, func(furl.Block) string {
					return strings.Repeat(fmt.Sprintf("line of call %d: pkg/file_%d.go\n", n, n), 150)
				})
			}
			s := st.only(t)
			if b := st.sim.Bill(); b.Requests != 41 || b.Refused != 1 || b.ThinkingDropped != 0 || len(s.Reductions()) == 0 || s.Model(name).Window != 9_000 {
				t.Errorf("%d requests, %d refused, %d thinking blocks were left to the provider to drop, %d reductions, a window of %d", b.Requests, b.Refused, b.ThinkingDropped, len(s.Reductions()), s.Model(name).Window)
			}
		})
	}
}
