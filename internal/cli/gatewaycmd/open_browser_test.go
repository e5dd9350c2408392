package gatewaycmd

import (
	"slices"
	"testing"
)

// A browser is opened where there is a display, and never one for the terminal.
func TestBrowserCommand(t *testing.T) {
	const at = "http://127.0.0.1:7411/"
	for name, tt := range map[string]struct {
		system string
		env    map[string]string
		want   []string
	}{
		"macOS":          {"darwin", nil, []string{"open", at}},
		"Windows":        {"windows", nil, []string{"rundll32", "url.dll,FileProtocolHandler", at}},
		"X11":            {"linux", map[string]string{"DISPLAY": ":0"}, []string{"xdg-open", at}},
		"Wayland":        {"linux", map[string]string{"WAYLAND_DISPLAY": "wayland-0"}, []string{"xdg-open", at}},
		"a chosen one":   {"linux", map[string]string{"BROWSER": "firefox"}, []string{"xdg-open", at}},
		"a remote shell": {"linux", nil, nil},
	} {
		if got := browserCommand(tt.system, func(name string) string { return tt.env[name] }, at); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
