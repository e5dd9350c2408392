package mcpserver

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Messages reach the SDK as they are. Each other line has an error response.
func TestLines(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	start := func(version string) string {
		return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + version + `"}}` + "\n"
	}
	long := `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", maxLine) + `"}`
	for _, tt := range []struct {
		name, in, want string
		refused        int
	}{
		{"messages", ping + "\r\n\n  \n" + ping + "\n", ping + "\r\n" + ping + "\n", 0},
		{"no newline at the end", ping, ping, 0},
		{"text", "hello\n" + ping + "\n", ping + "\n", 1},
		{"a long message", long + "\n" + ping + "\n", ping + "\n", 1},
		{"a long message at the end", long, "", 1},
		{"part of a message at the end", ping + "\n" + ping[:20], ping + "\n", 1},
		{"other values", "1\nnull\n{}\n[]\n", "", 4},
		{"a batch", start("2025-03-26") + "[" + ping + "]\n", start("2025-03-26") + "[" + ping + "]\n", 0},
		{"a batch with text", start("2025-03-26") + "[" + ping + ",1]\n", start("2025-03-26"), 1},
		{"a batch of a revision without", start("2025-06-18") + "[" + ping + "]\n", start("2025-06-18"), 1},
	} {
		var out bytes.Buffer
		got, err := io.ReadAll(newLines(io.NopCloser(strings.NewReader(tt.in)), &out))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %.200q, %v, want %.200q", tt.name, got, err, tt.want)
		}
		if n := strings.Count(out.String(), `"id":null`); n != tt.refused || n != strings.Count(out.String(), "\n") {
			t.Errorf("%s: %d lines refused, want %d: %s", tt.name, n, tt.refused, out.String())
		}
	}
}

// The SDK would answer a request with an id that a float64 cannot hold with another id.
func TestInexactIDs(t *testing.T) {
	f := newFixture(t, Options{})
	server := httptest.NewServer(f.server.Handler(HTTPOptions{}))
	defer server.Close()
	for id, refused := range map[string]bool{
		"1": false, "-7": false, "0": false, `"99999999999999999999"`: false, "9007199254740991": false, "1e3": false,
		"9007199254740993": true, "99999999999999999999": true, "1.5": true,
	} {
		line := `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`
		var out bytes.Buffer
		got, err := io.ReadAll(newLines(io.NopCloser(strings.NewReader(line)), &out))
		if err != nil || (len(got) == 0) != refused || refused != strings.Contains(out.String(), `"id":`+id+`,`) {
			t.Errorf("id %s: %q, %s, %v", id, got, out.String(), err)
		}
		resp, err := http.Post(server.URL+Path, "application/json", strings.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if refused != strings.Contains(string(text), inexactReason) || refused && !strings.Contains(string(text), `"id":`+id+`,`) {
			t.Errorf("id %s by HTTP: status %d, %s", id, resp.StatusCode, text)
		}
	}
}
