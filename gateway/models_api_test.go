package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"github.com/furlhq/furl"
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
