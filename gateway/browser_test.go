package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/dev/browsertest"
)

// A real browser's pages get no further than the headers of TestPages say: only
// the page of the configured origin reaches the provider and reads its answer.
func TestPagesInABrowser(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><title>a page</title>")
	})
	app, other := httptest.NewServer(page), httptest.NewServer(page)
	defer app.Close()
	defer other.Close()
	e := newEdge(t, &gateway.Options{Origins: []string{app.URL}})
	b := browsertest.Open(t, []byte("<!doctype html><title>a page of a file, whose origin is null</title>"))
	// Text without headers of its own is sent without a preflight.
	const send = `((x, key) => {
		x.open("POST", "%s/v1/messages", false);
		if (key) { x.setRequestHeader("Content-Type", "application/json"); x.setRequestHeader("X-Api-Key", "made-up"); x.setRequestHeader("Anthropic-Version", "2023-06-01") }
		try { x.send('{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}') } catch { return "failed" }
		return x.status + " " + (x.getResponseHeader("X-Furl-Session") ? "a session" : "no session") + " " + x.responseText
	})(new XMLHttpRequest(), %t)`
	for _, tt := range []struct {
		name, address string
		allowed       bool
	}{
		{"the page of a file", "", false},
		{"a page of another port", other.URL, false},
		{"the page of the configured origin", app.URL, true},
	} {
		if tt.address != "" {
			b.Do(chromedp.Navigate(tt.address))
		}
		for _, key := range []bool{false, true} {
			before := e.stored(t)
			got := browsertest.Eval[string](b, fmt.Sprintf(send, e.url, key))
			reached, stored := len(e.provider.taken()), e.stored(t)-before
			if !tt.allowed && (got != "failed" || reached != 0 || stored != 0) {
				t.Errorf("%s, key shown: %t: it got %s; %d requests reached the provider, %d sessions stored", tt.name, key, got, reached, stored)
			}
			if tt.allowed && (!strings.HasPrefix(got, "200 a session ") || reached != 1) {
				t.Errorf("%s, key shown: %t: it got %s; %d requests reached the provider", tt.name, key, got, reached)
			}
		}
	}
}
