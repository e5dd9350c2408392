package gateway_test

import (
	"encoding/base64"
	"strings"
	"testing"
)

// chatGPTLogin is a token of a login with ChatGPT.
var chatGPTLogin = "Bearer eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString([]byte(`{"https://api.openai.com/auth":{"chatgpt_account_id":"acc-1"}}`)) + ".planted"

// A login with ChatGPT reaches ChatGPT's backend only, without the version in the
// path, and an API key never does.
func TestLoginWithChatGPT(t *testing.T) {
	const backend, fake = "https://chatgpt.com/backend-api/codex", "http://127.0.0.1:8123/backend"
	account := []string{"Chatgpt-Account-Id", "acc-1"}
	login := append([]string{"Authorization", chatGPTLogin}, account...)
	for _, tt := range []struct {
		openai, chatGPT, method, path string
		headers                       []string
		want                          string // URL, "" if it is refused
		status                        int
		words                         string
	}{
		{openaiHost, backend, "POST", "/v1/responses", login, backend + "/responses", 200, ""},
		{openaiHost, backend, "POST", "/openai/v1/responses/", login, backend + "/responses", 200, ""},
		{openaiHost, backend, "GET", "/v1/models?client_version=0.171.0", login, backend + "/models?client_version=0.171.0", 200, ""},
		{openaiHost, backend, "POST", "/v1/responses/compact", login, backend + "/responses/compact", 200, ""},
		{openaiHost, backend, "POST", "/v1/something-new", login, backend + "/something-new", 200, ""},
		{compatible, fake, "POST", "/v1/responses", login, fake + "/responses", 200, ""},
		{"", fake, "POST", "/responses", login, fake + "/responses", 200, ""},
		{openaiHost, backend, "POST", "/v1/responses", []string{"Authorization", "Bearer sk-planted"}, openaiHost + "/v1/responses", 200, ""},
		// The account without a login, and a login without the account.
		{openaiHost, backend, "POST", "/v1/responses", append([]string{"Authorization", "Bearer sk-planted"}, account...), "", 401, "which is an API key"},
		{openaiHost, fake, "POST", "/v1/responses", append([]string{"Authorization", "Bearer sk-proj-planted"}, account...), "", 401, "which is a key of OpenAI"},
		{openaiHost, backend, "GET", "/v1/models", append([]string{"X-Api-Key", "planted"}, account...), "", 401, "X-Api-Key"},
		{openaiHost, backend, "POST", "/v1/responses", login[:2], "", 401, "which is a login with ChatGPT"},
		{compatible, fake, "POST", "/v1/responses", login[:2], "", 401, "which is a login with ChatGPT"},
		{compatible, fake, "GET", "/v1/models", login[:2], "", 401, "which is a login with ChatGPT"},
		{openaiHost, backend, "POST", "/v1/messages", login, "", 401, "which is a login with ChatGPT"},
		// No backend is configured.
		{openaiHost, "", "POST", "/v1/responses", login, "", 404, "set gateway.chatgpt"},
		{compatible, "", "POST", "/v1/responses", login, "", 404, "set gateway.chatgpt"},
		{compatible, "", "GET", "/v1/models", login, "", 404, "set gateway.chatgpt"},
		{"", fake, "POST", "/v1/responses", []string{"Authorization", "Bearer sk-planted"}, "", 404, "set gateway.openai"},
	} {
		w, reached := askAll(t, anthropicHost, tt.openai, tt.chatGPT, "", request(tt.method, tt.path, tt.headers...))
		got := ""
		if reached != nil {
			got = reached.URL.String()
			if reached.Header.Get("Authorization") != tt.headers[1] {
				t.Errorf("%s %s: the credential did not arrive", tt.method, tt.path)
			}
		}
		if got != tt.want || w.Code != tt.status || !strings.Contains(w.Body.String(), tt.words) || strings.Contains(w.Body.String(), "planted") {
			t.Errorf("%s %s at %q and %q: to %q, status %d %s\nwant %q, %d", tt.method, tt.path, tt.openai, tt.chatGPT, got, w.Code, w.Body, tt.want, tt.status)
		}
	}
}
