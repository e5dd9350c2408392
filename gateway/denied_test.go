package gateway_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// The log says who was denied on the ways that are no requests to models, and
// by whom; no key is in it, and whoever tries many does not fill it.
func TestDeniedIsLogged(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer provider.Close()
	up, err := upstream.New(provider.URL, nil)
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
	var log strings.Builder
	c := newClock()
	g, err := gateway.New(sessions, gateway.Upstreams{Anthropic: up, OpenAI: up}, &gateway.Options{
		ClientKeys: []string{"planted-key"}, Logger: slog.New(slog.NewTextHandler(&log, nil)), Now: c.now,
		Reload: func(context.Context) (*gateway.Reloaded, error) { return nil, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, method, path string
		header             []string
		want               string // "": no line
	}{
		{"passed on, without the gateway's key", "GET", "/v1/models/planted-key", nil, "msg=\"request denied\" path=/v1/models/… status=401 by=furl\n"},
		{"passed on, by the provider", "GET", "/v1/models?key=planted-key", []string{"X-Furl-Key", "planted-key"}, "msg=\"request denied\" path=/v1/models status=403 by=provider\n"},
		{"furl's own, without the key", "GET", "/furl/v1/sessions", []string{"X-Furl-Key", "another-planted-key"}, "msg=\"request denied\" path=/furl/v1/sessions status=401 by=furl\n"},
		{"furl's own, from another site", "GET", "/furl/v1/sessions/planted-key/view", []string{"Sec-Fetch-Site", "cross-site"}, "msg=\"request denied\" path=/furl/v1/sessions/…/view status=403 by=furl\n"},
		{"furl's own, from another machine", "POST", "/furl/v1/reload", []string{"X-Furl-Key", "planted-key"}, "msg=\"request denied\" path=/furl/v1/reload status=403 by=furl\n"},
		{"a request to a model, from another site", "POST", "/v1/messages", []string{"Origin", "http://planted-key.example"}, "msg=\"request denied\" path=/v1/messages status=403 by=furl\n"},
		{"in a format without a provider", "POST", "/v1beta/models/planted-key:generateContent", []string{"X-Furl-Key", "planted-key"}, "msg=\"request refused: unknown provider\" path=/v1beta/models/… status=404\n"},
		{"with a credential of another vendor", "GET", "/v1/models", []string{"X-Furl-Key", "planted-key", "X-Goog-Api-Key", "planted-key"}, "msg=\"request denied\" path=/v1/models status=401 by=furl\n"},
		{"a WebSocket without the key", "GET", "/v1/responses", []string{"Upgrade", "websocket"}, "msg=\"request denied\" path=/v1/responses status=401 by=furl\n"},
		{"a request to a model has its own line", "POST", "/v1/messages", nil, "msg=\"request failed\" path=/v1/messages status=401 by=furl"},
		{"found", "GET", "/furl/v1/sessions", []string{"X-Furl-Key", "planted-key"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c.pass(time.Minute)
			log.Reset()
			r := httptest.NewRequest(tt.method, "http://127.0.0.1"+tt.path, nil)
			for i := 0; i < len(tt.header); i += 2 {
				r.Header.Set(tt.header[i], tt.header[i+1])
			}
			g.ServeHTTP(httptest.NewRecorder(), r)
			if got := log.String(); !strings.Contains(got, tt.want) || tt.want == "" && got != "" || strings.Contains(got, "planted") || strings.Count(got, "\n") > 1 {
				t.Errorf("the log says %q, want %q", got, tt.want)
			}
		})
	}
	t.Run("many", func(t *testing.T) {
		c.pass(time.Minute)
		log.Reset()
		for range 9 {
			g.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://127.0.0.1/furl/v1/sessions", nil))
		}
		c.pass(time.Second)
		g.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://127.0.0.1/furl/v1/sessions", nil))
		if got := log.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "others=8") {
			t.Errorf("the log says %q, want two lines", got)
		}
	})
}
