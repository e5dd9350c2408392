package upstream_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/furlhq/furl/upstream"
)

// login is a token of a login with ChatGPT.
var login = "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString([]byte(`{"https://api.openai.com/auth":{"chatgpt_account_id":"planted"}}`)) + ".planted"

// A login with ChatGPT is sent to ChatGPT only, and API keys are not sent there.
func TestCredentialsOfChatGPT(t *testing.T) {
	escaped := "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString([]byte(`{"https:\/\/api.openai.com\/auth":{}}`)) + ".planted"
	other := "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString([]byte(`{"aud":"litellm"}`)) + ".planted"
	for _, tt := range []struct{ address, vendor, header, credential, want string }{
		{"https://chatgpt.com/backend-api/codex", "", "Authorization", "Bearer " + login, ""},
		{"http://127.0.0.1:1", upstream.ChatGPT, "Authorization", "Bearer " + login, ""},
		{"http://127.0.0.1:1", upstream.ChatGPT, "Authorization", "Bearer at-unknown", ""},
		{"http://127.0.0.1:1", "", "Authorization", "Bearer " + login, "127.0.0.1:1 does not take the credential in Authorization, which is a login with ChatGPT"},
		{"http://127.0.0.1:1", "", "Authorization", "Bearer " + escaped, "which is a login with ChatGPT"},
		{"http://127.0.0.1:1", "", "X-Api-Key", login, "which is a login with ChatGPT"},
		{"http://127.0.0.1:1", "", "Authorization", "Bearer " + other, ""},
		{"http://127.0.0.1:1", "", "Authorization", "Bearer eyJ.planted", ""},
		{"https://api.openai.com", "", "Authorization", "Bearer " + login, "which is a login with ChatGPT"},
		{"https://api.anthropic.com", "", "Authorization", "bearer  " + login, "which is a login with ChatGPT"},
		{"https://chatgpt.com/backend-api/codex", "", "Authorization", "Bearer sk-planted", "which is an API key"},
		{"http://127.0.0.1:1", upstream.ChatGPT, "Authorization", "Bearer sk-planted", "which is an API key"},
		{"http://127.0.0.1:1", upstream.ChatGPT, "Authorization", "Bearer sk-proj-planted", "which is a key of OpenAI"},
		{"http://127.0.0.1:1", upstream.ChatGPT, "Authorization", "Bearer xai-planted", "which is a key of xAI"},
		{"http://127.0.0.1:1", upstream.ChatGPT, "X-Api-Key", "planted", "does not take the credential in X-Api-Key"},
	} {
		c, err := upstream.New(tt.address, &upstream.Options{Vendor: tt.vendor})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		err = c.CheckCredentials(&url.URL{Path: "/v1/responses"}, http.Header{tt.header: {tt.credential}})
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "planted")) {
			t.Errorf("%s %s with %s: %v, want %q", tt.vendor, tt.address, tt.header, err, tt.want)
		}
	}
}

// entra is a token of Microsoft's Entra ID.
var entra = "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString([]byte(`{"aud":"https://ai.azure.com","iss":"https:\/\/sts.windows.net\/planted/"}`)) + ".planted"

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
		// Anthropic's keys are recognized by their form, those of its clouds have none.
		{"https://api.anthropic.com", "X-Api-Key", "sk-ant-api03-planted", ""},
		{"https://api.anthropic.com", "X-Api-Key", "Bearer sk-ant-api03-planted", ""},
		{"https://api.anthropic.com", "X-Api-Key", "", ""},
		{"https://api.anthropic.com", "X-Api-Key", "planted-by-foundry", "api.anthropic.com does not take the credential in X-Api-Key: keys of Anthropic begin with sk-ant-"},
		{"https://API.Anthropic.com:443", "X-Api-Key", "planted-by-foundry", "keys of Anthropic begin with sk-ant-"},
		{"https://api.anthropic.com", "Authorization", "Bearer planted-token", ""},
		{"https://anthropic.proxy.example", "X-Api-Key", "planted-by-the-proxy", ""},
		{"https://r.services.ai.azure.com/anthropic", "X-Api-Key", "planted-by-foundry", ""},
		{"https://api.anthropic.com", "X-Api-Key", "bedrock-api-key-planted", "which is a key of AWS"},
		{"https://api.anthropic.com", "Authorization", "Bearer bedrock-api-key-planted", "which is a key of AWS"},
		{"https://api.anthropic.com", "X-Api-Key", "aws-external-anthropic-api-key-planted", "which is a key of AWS"},
		{"https://api.openai.com", "Authorization", "Bearer AEAAplanted", "which is a key of AWS"},
		{"https://aws-external-anthropic.us-east-1.api.aws", "X-Api-Key", "aws-external-anthropic-api-key-planted", ""},
		{"https://bedrock-mantle.us-east-1.api.aws/anthropic", "Authorization", "Bearer bedrock-api-key-planted", ""},
		{"https://api.anthropic.com", "Authorization", "Bearer " + entra, "which is a token for Azure"},
		{"https://r.services.ai.azure.com/anthropic", "Authorization", "Bearer " + entra, ""},
		{"https://apim.example", "Authorization", "Bearer " + entra, ""},
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
