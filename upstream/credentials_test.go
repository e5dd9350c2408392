package upstream_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/furlhq/furl/upstream"
)

// Hosts of vendors match by their whole name. A request without credentials passes.
func TestCheckCredentials(t *testing.T) {
	for _, tt := range []struct{ address, header, credential, want string }{
		{"https://api.openai.com", "", "", ""},
		{"https://api.openai.com:443", "Authorization", "Bearer sk-ant-planted", "api.openai.com:443 does not take the credential in Authorization, which is a key of Anthropic"},
		{"https://eu.api.openai.com/v1", "Authorization", "Bearer sk-ant-planted", "eu.api.openai.com does not take the credential in Authorization, which is a key of Anthropic"},
		{"https://API.openai.com", "Authorization", "Bearer sk-or-planted", "which is a key of OpenRouter"},
		{"https://api.openai.com.proxy.example", "Authorization", "Bearer sk-ant-planted", ""},
		{"https://myapi.openai.com", "Authorization", "Bearer sk-ant-planted", ""},
		{"https://api.openai.com", "Authorization", "planted without a scheme", ""},
		{"https://api.openai.com", "Authorization", "Bearer ", ""},
		{"https://api.groq.com/openai/v1", "Authorization", "Bearer gsk_planted", ""},
		{"https://api.anthropic.com", "Api-Key", "planted", "api.anthropic.com does not take the credential in Api-Key"},
		{"https://litellm.example", "X-Goog-Api-Key", "planted", "litellm.example does not take the credential in X-Goog-Api-Key"},
	} {
		c, err := upstream.New(tt.address, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		h := http.Header{}
		if tt.header != "" {
			h.Set(tt.header, tt.credential)
		}
		err = c.CheckCredentials(&url.URL{Path: "/v1/chat/completions"}, h)
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "planted")) {
			t.Errorf("%s with %s: %v, want %q", tt.address, tt.header, err, tt.want)
		}
	}
}
