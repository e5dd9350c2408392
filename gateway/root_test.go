package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// A browser that opens the gateway's address reads what it is. Everybody else gets
// what the provider has there, and a name that is not the gateway's is refused.
func TestRootInABrowser(t *testing.T) {
	st := newFixture(t, &sim.Options{}, &session.Options{}, &gateway.Options{ClientKeys: []string{"planted-secret-key"}})
	for _, tt := range []struct {
		name   string
		header []string
		page   bool
	}{
		{"a browser", []string{"Accept", "text/html,application/xhtml+xml"}, true},
		{"a program", []string{"Accept", "*/*"}, false},
		{"a client with a key", []string{"Accept", "text/html", "Authorization", "Bearer planted-secret-key"}, false},
		{"another name", []string{"Accept", "text/html", "Host", "evil.example"}, false},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, st.front.URL+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(tt.header); i += 2 {
			r.Header.Set(tt.header[i], tt.header[i+1])
		}
		if host := r.Header.Get("Host"); host != "" {
			r.Host = host
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		page := resp.StatusCode == http.StatusOK && strings.Contains(string(body), "ANTHROPIC_BASE_URL="+st.front.URL) && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain")
		if page != tt.page || strings.Contains(string(body), "planted-secret-key") {
			t.Errorf("%s: status %d\n%s", tt.name, resp.StatusCode, body)
		}
	}
}
