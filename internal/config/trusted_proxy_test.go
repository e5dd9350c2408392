package config_test

import (
	"fmt"
	"testing"

	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/policy"
)

// A proxy is trusted for its own addresses only, and names its users in a header that nobody
// else sends.
func TestTrustedProxy(t *testing.T) {
	set := policy.NewSet()
	for _, tt := range []struct {
		header, network string
		ok              bool
	}{
		{"X-Auth-User", "10.0.0.0/8", true},
		{"X-Forwarded-User", "192.0.2.7", true},
		{"X-Forwarded-Email", "fc00::/7", true},
		{"Remote-User", "::1", true},
		{"X-Auth-User", "0.0.0.0/0", false},
		{"X-Auth-User", "128.0.0.0/1", false},
		{"X-Auth-User", "::/0", false},
		{"X-Auth-User", "8000::/1", false},
		{"Accept", "10.0.0.0/8", false},
		{"accept-language", "10.0.0.0/8", false},
		{"User-Agent", "10.0.0.0/8", false},
		{"X-Forwarded-For", "10.0.0.0/8", false},
		{"Content-Type", "10.0.0.0/8", false},
		{"Sec-Fetch-Site", "10.0.0.0/8", false},
		{"Anthropic-Version", "10.0.0.0/8", false},
		{"X-Session-Id", "10.0.0.0/8", false},
		{"X-Furl-Key", "10.0.0.0/8", false},
	} {
		text := fmt.Sprintf("gateway:\n  trusted_proxy:\n    header: %s\n    networks: [%q]\n", tt.header, tt.network)
		if _, err := config.Parse("f.yaml", []byte(text), set); (err == nil) != tt.ok {
			t.Errorf("header %s, network %s: %v", tt.header, tt.network, err)
		}
	}
}
