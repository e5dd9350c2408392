package gateway_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/upstream"
)

// fullStore is one that can be read and takes nothing while it is full.
type fullStore struct {
	storage.Store
	now atomic.Bool
}

func (f *fullStore) Append(ctx context.Context, key furl.SessionKey, b storage.Batch) error {
	if f.now.Load() {
		return errors.New("the disk is full")
	}
	return f.Store.Append(ctx, key, b)
}

// A disk that is full stops no request. /readyz says what is the matter for as
// long as it is.
func TestStoreFull(t *testing.T) {
	store := &fullStore{Store: inmem.New()}
	sessions, err := session.New(store, &session.Options{Policy: "none"})
	if err != nil {
		t.Fatal(err)
	}
	up, err := upstream.New("http://upstream.invalid", &upstream.Options{Transport: instant{}})
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	g, err := gateway.New(sessions, gateway.Upstreams{Anthropic: up}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &growing{body: []byte(`{"model":"claude-sonnet-4-5","max_tokens":32000,"messages":[{"role":"user","content":"Go on."}`)}
	send := func() http.Header {
		t.Helper()
		c.short()
		w := httptest.NewRecorder()
		patient{g}.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://localhost/v1/messages", strings.NewReader(string(c.body)+"]}")))
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "tool_use") {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return w.Header()
	}
	ready := func(status int, words string) {
		t.Helper()
		w := httptest.NewRecorder()
		patient{g}.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/readyz", nil))
		if w.Code != status || !strings.Contains(w.Body.String(), words) {
			t.Errorf("ready: %d %s, want %d %s", w.Code, w.Body, status, words)
		}
	}
	send()
	ready(http.StatusNoContent, "")
	store.now.Store(true)
	if h := send(); h.Get("X-Furl-Note") == "" {
		t.Error("the client is not told that nothing was recorded")
	}
	send()
	ready(http.StatusServiceUnavailable, "not recorded")
	store.now.Store(false)
	if h := send(); h.Get("X-Furl-Note") != "" || h.Get("X-Furl-Session") == "" {
		t.Errorf("with room again: %v", h)
	}
	ready(http.StatusNoContent, "")
}
