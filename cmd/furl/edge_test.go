package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/furlhq/furl/sim"
)

// Pages of other sites are refused with any key, until the configuration has their
// origin. That needs no restart.
func TestOriginsOfTheConfiguration(t *testing.T) {
	var out bytes.Buffer
	provider := httptest.NewServer(sim.New(&sim.Options{AnyField: true}))
	defer provider.Close()
	home := t.TempDir()
	p := serve(t, home, "--anthropic", provider.URL, "--openai", provider.URL)
	send := func(method, path string, headers ...string) *http.Response {
		t.Helper()
		req, err := http.NewRequest(method, p.url+path, strings.NewReader(`{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		out.Reset()
		if _, err := io.Copy(&out, resp.Body); err != nil {
			t.Fatal(err)
		}
		return resp
	}
	page := []string{"Origin", "https://app.example", "Sec-Fetch-Site", "cross-site", "X-Api-Key", "made-up", "Anthropic-Version", "2023-06-01"}
	if resp := send("POST", "/v1/messages", page...); resp.StatusCode != http.StatusForbidden || !strings.Contains(out.String(), "gateway.origins") {
		t.Errorf("a page of another site: %d %s", resp.StatusCode, &out)
	}
	if send("GET", "/furl/v1/sessions"); !strings.Contains(out.String(), `"sessions":[]`) {
		t.Errorf("its request was recorded: %s", &out)
	}
	if err := os.WriteFile(home+"/config.yaml", []byte("gateway:\n  origins: [https://app.example]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if resp := send("POST", "/furl/v1/reload"); resp.StatusCode != http.StatusOK || !strings.Contains(out.String(), "gateway.origins") {
		t.Fatalf("reload: %d %s", resp.StatusCode, &out)
	}
	if resp := send("OPTIONS", "/v1/messages", append(page[:4:4], "Access-Control-Request-Method", "POST")...); resp.StatusCode != http.StatusNoContent {
		t.Errorf("the preflight: %d %s", resp.StatusCode, &out)
	}
	if resp := send("POST", "/v1/messages", page...); resp.StatusCode != http.StatusOK || resp.Header.Get("Access-Control-Allow-Origin") != "https://app.example" || resp.Header.Get("X-Furl-Session") == "" {
		t.Errorf("the page of a configured origin: %d %v %s", resp.StatusCode, resp.Header, &out)
	}
}

// Without the page, a person who opens the gateway's address in a browser reads what it
// is.
func TestAddressInABrowser(t *testing.T) {
	p := serve(t, t.TempDir(), "--no-page")
	req, err := http.NewRequest(http.MethodGet, p.url+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html,application/xhtml+xml")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), "furl run -- AGENT") {
		t.Errorf("status %d, %v\n%s", resp.StatusCode, err, body)
	}
}
