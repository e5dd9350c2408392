package mcpserver

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const ping = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func TestHTTPGuard(t *testing.T) {
	f := newFixture(t, Options{})
	const token = "secret-token"
	server := httptest.NewServer(f.server.Handler(HTTPOptions{Token: token, Hosts: []string{"furl.internal"}, Origins: []string{"https://app.example"}}))
	defer server.Close()
	own := server.URL
	for _, tt := range []struct {
		name, host, path string
		header           map[string]string
		want             int
	}{
		{"plain", "", Path, nil, 200},
		{"localhost", "localhost:1234", Path, nil, 200},
		{"a known name", "Furl.internal", Path, nil, 200},
		{"rebinding", "evil.example", Path, nil, 403},
		{"localhost as a prefix", "localhost.evil.example", Path, nil, 403},
		{"a page", "", Path, map[string]string{"Origin": "https://evil.example"}, 403},
		{"a page without an origin", "", Path, map[string]string{"Origin": "null"}, 403},
		{"a page on another port", "", Path, map[string]string{"Origin": "http://127.0.0.1:1"}, 403},
		{"an allowed page", "", Path, map[string]string{"Origin": "https://app.example"}, 200},
		{"a page of its own", "", Path, map[string]string{"Origin": own}, 200},
		{"an image of a page", "", Path, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"no token", "", Path, map[string]string{"Authorization": ""}, 401},
		{"another token", "", Path, map[string]string{"Authorization": "Bearer other"}, 401},
		{"another scheme", "", Path, map[string]string{"Authorization": "Basic " + token}, 401},
		{"another path", "", "/", nil, 404},
	} {
		req, err := http.NewRequest(http.MethodPost, own+tt.path, strings.NewReader(ping))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Authorization", "Bearer "+token)
		for name, value := range tt.header {
			if req.Header.Set(name, value); value == "" {
				req.Header.Del(name)
			}
		}
		if tt.host != "" {
			req.Host = tt.host
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, resp.StatusCode, tt.want)
		}
	}
	if strings.Contains(f.log.String(), token) {
		t.Errorf("the log has the token:\n%s", f.log.String())
	}
}

func TestHTTPClient(t *testing.T) {
	f := newFixture(t, Options{})
	f.add(t, "aaa1", "/src/app", "zebra")
	server := httptest.NewServer(f.server.Handler(HTTPOptions{}))
	defer server.Close()
	for _, v := range mcp.SupportedProtocolVersions() {
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL + Path}, &mcp.ClientSessionOptions{ProtocolVersion: v})
		if err != nil {
			t.Errorf("%s: %v", v, err)
			continue
		}
		says(t, cs, "memory_search", map[string]any{"query": "zebra"}, "furl:aaa1/3.0")
		cs.Close()
	}
}
