package gateway

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/dev/behaviours"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// TestEndpointsExist checks that the gateway serves each of furl's endpoints that the
// promises and the documents for users name.
func TestEndpointsExist(t *testing.T) {
	g := surfaceGateway(t)
	docs, err := filepath.Glob("../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	tested := 0
	for _, doc := range append(docs, "../README.md") {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(doc) == "behaviours.md" {
			text = []byte(behaviours.Promises(text))
		}
		for _, s := range behaviours.Spans(string(text)) {
			if !s.IsEndpoint() || strings.Contains(s.Text, "/v1") && !strings.Contains(s.Text, apiPrefix+"/") && filepath.Base(doc) != "behaviours.md" {
				continue // documents for users also name endpoints of providers
			}
			tested++
			if !g.serves(s.Text) {
				t.Errorf("%s:%d: the gateway has no endpoint %q", strings.TrimPrefix(doc, "../"), s.Line, s.Text)
			}
		}
	}
	if tested < 30 {
		t.Errorf("%d endpoints found in the documents", tested)
	}
	for _, missing := range []string{"/furl/v1/nothing", "POST /furl/v1/status", "GET /furl/v1/sessions/ID/nothing", "DELETE /readyz"} {
		if g.serves(missing) {
			t.Errorf("%s exists", missing)
		}
	}
}

func surfaceGateway(t *testing.T) *Gateway {
	t.Helper()
	all, err := session.New(inmem.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	up, err := upstream.New("http://localhost:1", nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(all, Upstreams{Anthropic: up, OpenAI: up}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// serves reports whether the gateway has a handler for an endpoint such as
// "GET /furl/v1/sessions/ID?after=N" that is not one for all paths. Without a method, it
// may be any.
func (g *Gateway) serves(endpoint string) bool {
	methods := []string{http.MethodGet, http.MethodPost}
	if method, path, ok := strings.Cut(endpoint, " "); ok && !strings.HasPrefix(method, "/") {
		methods, endpoint = []string{method}, path
	}
	path, _, _ := strings.Cut(endpoint, "?")
	for _, method := range methods {
		r := httptest.NewRequest(method, "http://localhost/", nil)
		r.URL.Path = path
		switch _, pattern := g.mux.Handler(r); {
		case pattern == "/":
			if to := g.destination(r); to.model && method == http.MethodPost {
				return true
			}
		case pattern == "/furl/", pattern == "GET /furl/assets/": // package internal/web has the paths below them
			return true
		case pattern != "" && !strings.HasSuffix(pattern, "/"):
			return true
		}
	}
	return false
}
