package origin_test

import (
	"testing"

	"github.com/furlhq/furl/internal/origin"
)

func TestCheck(t *testing.T) {
	for pattern, valid := range map[string]bool{
		"https://app.example": true, "http://localhost:3000": true, "http://[::1]:3000": true, "HTTPS://App.example": true,
		"app://obsidian.md": true, "tauri://localhost": true, "vscode-webview://*": true, "file://": true, "chrome-extension://abcdef": true,
		"": false, "null": false, "NULL": false, "*": false, "app.example": false, "https://": false, "https://*": false, "https://*.example": false,
		"https://app.example/": false, "https://app.example/path": false, "https://user@app.example": false, "https://app.example:443": false,
		"http://app.example:80": false, "http://[::1]:80": false, "app://*.md": false, "*://*": false, "app://a/b": false, "https://app.example\n": false,
	} {
		if err := origin.Check(pattern); (err == nil) != valid {
			t.Errorf("Check(%q): %v, want valid %t", pattern, err, valid)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, value string
		want           bool
	}{
		{"https://app.example", "https://app.example", true},
		{"https://App.example", "https://app.example", true},
		{"https://app.example", "http://app.example", false},
		{"https://app.example", "https://app.example:8443", false},
		{"https://app.example", "https://app.example.evil.example", false},
		{"vscode-webview://*", "vscode-webview://0a1b2c", true},
		{"vscode-webview://*", "vscode-webview.evil://x", false},
		{"vscode-webview://*", "https://vscode-webview", false},
		{"file://", "file://", true},
		{"file://", "null", false},
	} {
		if got := origin.Match(tt.pattern, tt.value); got != tt.want {
			t.Errorf("Match(%q, %q) = %t, want %t", tt.pattern, tt.value, got, tt.want)
		}
	}
}
