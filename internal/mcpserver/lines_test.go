package mcpserver

import (
	"bytes"
	"io"
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
