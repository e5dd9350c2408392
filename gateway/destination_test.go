package gateway_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// vendors are the providers' own hosts, without a network.
type vendors struct{ requests []*http.Request }

func (v *vendors) RoundTrip(r *http.Request) (*http.Response, error) {
	v.requests = append(v.requests, r)
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader("{}")), Request: r,
	}, nil
}

// askVendors sends a request to a gateway whose upstreams have these addresses, "" for
// none. It returns the answer and what reached a provider, nil if nothing did.
func askVendors(t *testing.T, anthropic, openai string, r *http.Request) (*httptest.ResponseRecorder, *http.Request) {
	t.Helper()
	return askAll(t, anthropic, openai, "", "", r)
}

// askAll is askVendors with upstreams for logins with ChatGPT and for Gemini's format.
func askAll(t *testing.T, anthropic, openai, chatGPT, gemini string, r *http.Request) (*httptest.ResponseRecorder, *http.Request) {
	t.Helper()
	all := &vendors{}
	client := func(address string, o upstream.Options) *upstream.Client {
		if address == "" {
			return nil
		}
		o.Transport = all
		up, err := upstream.New(address, &o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(up.Close)
		return up
	}
	store := inmem.New()
	t.Cleanup(func() { store.Close() })
	sessions, err := session.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(sessions, gateway.Upstreams{
		Anthropic: client(anthropic, upstream.Options{}), OpenAI: client(openai, upstream.Options{}),
		Gemini:  client(gemini, upstream.Options{Vendor: upstream.Google}),
		ChatGPT: client(chatGPT, upstream.Options{Vendor: upstream.ChatGPT, NoVersion: true}),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	patient{g}.ServeHTTP(w, r)
	if len(all.requests) == 0 {
		return w, nil
	}
	return w, all.requests[0]
}

const (
	anthropicHost = "https://api.anthropic.com"
	openaiHost    = "https://api.openai.com"
	compatible    = "http://127.0.0.1:11434"
	googleHost    = "https://generativelanguage.googleapis.com/v1beta/openai"
	azureHost     = "https://me.openai.azure.com/openai"
)

func request(method, path string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(`{"secret":"words of the user"}`))
	r.Host = "127.0.0.1:7410"
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// A request in a format that furl does not serve reaches no provider, whichever
// there are and whatever it shows, and its client is told in that format.
func TestForeignFormats(t *testing.T) {
	for _, tt := range []struct{ method, path, header, format, shape string }{
		{"POST", "/v1internal:loadCodeAssist", "Authorization", "Gemini", "google"},
		{"POST", "/v1internal:streamGenerateContent?alt=sse", "Authorization", "Gemini", "google"},
		{"POST", "/v1/projects/p/locations/us/publishers/anthropic/models/claude-sonnet-4-5:rawPredict", "Authorization", "Vertex AI", "google"},
		{"POST", "/model/anthropic.claude-sonnet-4-5/invoke-with-response-stream", "Authorization", "Amazon Bedrock", "aws"},
		{"POST", "/model/arn%3Aaws%3Abedrock%3A1%2Fx/converse", "Authorization", "Amazon Bedrock", "aws"},
		{"POST", "/v2/chat", "Authorization", "Cohere", "cohere"},
		{"POST", "/v1/chat", "Authorization", "Cohere", "cohere"},
	} {
		for _, up := range [][2]string{{anthropicHost, openaiHost}, {anthropicHost, ""}, {"", openaiHost}, {compatible, compatible}, {"", compatible}, {anthropicHost, googleHost}} {
			headers := []string{tt.header, "planted-key"}
			if tt.header == "" {
				headers = nil
			}
			w, reached := askVendors(t, up[0], up[1], request(tt.method, tt.path, headers...))
			if reached != nil {
				t.Errorf("%s at %v: it reached %s", tt.path, up, reached.URL.Host)
			}
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), tt.format) || strings.Contains(w.Body.String(), "lanted") {
				t.Errorf("%s at %v: %d %s", tt.path, up, w.Code, w.Body)
			}
			var got struct {
				Message string
				Error   struct {
					Code            int
					Message, Status string
				}
			}
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			switch tt.shape {
			case "google":
				if got.Error.Code != 400 || got.Error.Message == "" || got.Error.Status != "FAILED_PRECONDITION" {
					t.Errorf("%s: %s is not in Google's shape", tt.path, w.Body)
				}
			case "aws":
				if got.Message == "" || w.Header().Get("X-Amzn-Errortype") != "ValidationException" {
					t.Errorf("%s: %v %s is not in the shape of AWS", tt.path, w.Header(), w.Body)
				}
			default:
				if got.Message == "" {
					t.Errorf("%s: %s is not in Cohere's shape", tt.path, w.Body)
				}
			}
		}
	}
}

// Requests of Google's APIs reach the provider of Gemini's format and no other, whatever the prefix and
// the credential. If there is none, their clients get an error that they can read.
func TestGoogleDestinations(t *testing.T) {
	const gemini, vertex = "https://generativelanguage.googleapis.com", "https://us-central1-aiplatform.googleapis.com"
	for _, tt := range []struct{ at, method, path, header, want string }{
		{gemini, "POST", "/v1beta/models/gemini-3-pro:generateContent", "X-Goog-Api-Key", "/v1beta/models/gemini-3-pro:generateContent"},
		{gemini, "POST", "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse", "X-Goog-Api-Key", "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"},
		{gemini, "POST", "/v1beta/models/gemini-3-pro:generateContent?key=AIzaSyPlanted", "", "/v1beta/models/gemini-3-pro:generateContent?key=AIzaSyPlanted"},
		{gemini, "POST", "/v1beta/models/gemini-3-pro:countTokens", "Authorization", "/v1beta/models/gemini-3-pro:countTokens"},
		{gemini, "POST", "/v1/models/gemini-3-pro:generateContent", "X-Goog-Api-Key", "/v1/models/gemini-3-pro:generateContent"},
		{gemini, "POST", "/models/gemini-3-pro:generateContent", "X-Goog-Api-Key", "/v1/models/gemini-3-pro:generateContent"},
		{gemini, "POST", "/openai/v1beta/models/gemini-3-pro:generateContent", "X-Goog-Api-Key", "/v1beta/models/gemini-3-pro:generateContent"},
		{gemini, "POST", "/gemini/v1beta/models/gemini-3-pro:generateContent?key=k", "", "/v1beta/models/gemini-3-pro:generateContent?key=k"},
		{gemini, "POST", "//v1beta/models/gemini-3-pro%3AgenerateContent", "X-Goog-Api-Key", "/v1beta/models/gemini-3-pro:generateContent"},
		{gemini, "GET", "/v1beta/models", "X-Goog-Api-Key", "/v1beta/models"},
		{gemini, "GET", "/v1/models", "X-Goog-Api-Key", "/v1/models"},
		{gemini, "GET", "/v1/models?key=k", "", "/v1/models?key=k"},
		{gemini, "POST", "/v1beta/models/text-embedding:embedContent", "X-Goog-Api-Key", "/v1beta/models/text-embedding:embedContent"},
		{gemini, "POST", "/upload/v1beta/files", "X-Goog-Api-Key", "/upload/v1beta/files"},
		{gemini, "POST", "/upload/v1/files", "X-Goog-Api-Key", "/upload/v1/files"},
		{gemini, "POST", "/v1/cachedContents", "X-Goog-Api-Key", "/v1/cachedContents"},
		{gemini, "POST", "/v1/interactions", "X-Goog-Api-Key", "/v1/interactions"},
		{gemini, "POST", "/v1beta/interactions", "X-Goog-Api-Key", "/v1beta/interactions"},
		{vertex, "POST", "/v1beta1/projects/p/locations/us/publishers/google/models/gemini-3-pro:generateContent", "Authorization", "/v1beta1/projects/p/locations/us/publishers/google/models/gemini-3-pro:generateContent"},
		{vertex, "POST", "/v1/publishers/google/models/gemini-3-pro:streamGenerateContent?alt=sse", "X-Goog-Api-Key", "/v1/publishers/google/models/gemini-3-pro:streamGenerateContent?alt=sse"},
		{gemini, "POST", "/v1/publishers/google/models/gemini-3-pro:generateContent", "X-Goog-Api-Key", ""},
		{"", "POST", "/v1beta/models/gemini-3-pro:generateContent", "X-Goog-Api-Key", ""},
		{"", "POST", "/openai/v1beta/models/gemini-3-pro:streamGenerateContent?key=k", "", ""},
		{"", "POST", "/anthropic/upload/v1beta/files?key=k", "", ""},
	} {
		headers := []string{tt.header, "planted-key"}
		if tt.header == "" {
			headers = nil
		}
		w, reached := askAll(t, anthropicHost, openaiHost, "", tt.at, request(tt.method, tt.path, headers...))
		got := ""
		if reached != nil {
			got = strings.TrimPrefix(reached.URL.String(), tt.at)
		}
		if unescaped := strings.ReplaceAll(got, "%3A", ":"); unescaped != tt.want {
			t.Errorf("%s at %q: it reached %q, want %q: %d %s", tt.path, tt.at, got, tt.want, w.Code, w.Body)
		}
		if tt.want != "" {
			continue
		}
		var refusal struct {
			Error struct {
				Code            int
				Message, Status string
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &refusal); err != nil || refusal.Error.Code != 404 || refusal.Error.Status != "NOT_FOUND" || !strings.Contains(refusal.Error.Message, "gemini") || strings.Contains(w.Body.String(), "lanted") {
			t.Errorf("%s: %v %s", tt.path, err, w.Body)
		}
	}
}

// What furl passes on without understanding it goes where its path or its
// headers say that it belongs, and nowhere if they do not say.
func TestDestinations(t *testing.T) {
	const none = ""
	for _, tt := range []struct {
		anthropic, openai string
		method, path      string
		headers           []string
		want              string // host, none
		status            int
		words             string
	}{
		// The path says it, with any credential that may be the provider's.
		{anthropicHost, openaiHost, "POST", "/v1/embeddings", []string{"Authorization", "Bearer k"}, "api.openai.com", 200, ""},
		{anthropicHost, openaiHost, "GET", "/v1/responses/resp_1", []string{"Authorization", "Bearer k"}, "api.openai.com", 200, ""},
		{anthropicHost, openaiHost, "GET", "/v1/messages/batches", []string{"Authorization", "Bearer k"}, "api.anthropic.com", 200, ""},
		{anthropicHost, openaiHost, "HEAD", "/api/hello", []string{"Authorization", "Bearer k"}, "api.anthropic.com", 200, ""},
		{anthropicHost, openaiHost, "HEAD", "/", []string{"Authorization", "Bearer k"}, "api.anthropic.com", 200, ""},
		{anthropicHost, openaiHost, "POST", "/api/v1/embeddings", []string{"Authorization", "Bearer k"}, "api.openai.com", 200, ""},
		{anthropicHost, openaiHost, "POST", "/proxy/x/completions", []string{"Authorization", "Bearer k"}, "api.openai.com", 200, ""},
		{anthropicHost, openaiHost, "POST", "/api/paas/v4/images/generations", []string{"Authorization", "Bearer k"}, "api.openai.com", 200, ""},
		{anthropicHost, openaiHost, "GET", "/v1beta/openai/models", []string{"Authorization", "Bearer k"}, "api.openai.com", 200, ""},
		{anthropicHost, openaiHost, "POST", "/v1/threads/t/messages", []string{"Authorization", "Bearer k"}, "api.openai.com", 200, ""},
		{anthropicHost, openaiHost, "GET", "/v1/chat/completions/c/messages", []string{"Authorization", "Bearer k"}, "api.openai.com", 200, ""},
		{anthropicHost, compatible, "GET", "/api/tags", nil, "127.0.0.1:11434", 200, ""},
		{anthropicHost, compatible, "POST", "/tokenize", nil, "127.0.0.1:11434", 200, ""},
		// The headers say it.
		{anthropicHost, openaiHost, "GET", "/v1/models", []string{"X-Api-Key", "sk-ant-k", "Anthropic-Version", "2023-06-01"}, "api.anthropic.com", 200, ""},
		{anthropicHost, openaiHost, "GET", "/v1/models", []string{"Authorization", "Bearer sk-ant-oat01-k"}, "api.anthropic.com", 200, ""},
		{anthropicHost, openaiHost, "GET", "/v1/files", []string{"Authorization", "Bearer k", "Anthropic-Beta", "files-api-2025-04-14"}, "api.anthropic.com", 200, ""},
		{anthropicHost, openaiHost, "GET", "/v1/models/ft:gpt-4o:org::id", []string{"Authorization", "Bearer k"}, "api.openai.com", 200, ""},
		{anthropicHost, openaiHost, "GET", "/v1/something-new", []string{"X-Api-Key", "sk-ant-k"}, "api.anthropic.com", 200, ""},
		{anthropicHost, openaiHost, "GET", "/v1/something-new", []string{"Authorization", "Bearer sk-proj-k"}, "api.openai.com", 200, ""},
		{anthropicHost, openaiHost, "GET", "/v1/something-new", []string{"Authorization", "Bearer k", "Openai-Beta", "new=v1"}, "api.openai.com", 200, ""},
		{anthropicHost, "https://openrouter.ai/api/v1", "GET", "/v1/something-new", []string{"Authorization", "Bearer sk-or-v1-k"}, "openrouter.ai", 200, ""},
		{anthropicHost, "https://openrouter.ai/api/v1", "GET", "/v1/something-new", []string{"Authorization", "Bearer gsk_k"}, none, 404, "put /anthropic, /openai or /gemini before the path"},
		{anthropicHost, openaiHost, "GET", "/api/v1/models", []string{"X-Api-Key", "sk-ant-k", "Anthropic-Version", "2023-06-01"}, "api.anthropic.com", 200, ""},
		{anthropicHost, openaiHost, "GET", "/api/v1/models/a/b", []string{"Authorization", "Bearer k"}, "api.openai.com", 200, ""},
		// The prefix says it.
		{anthropicHost, openaiHost, "POST", "/openai/api/v1/something-new", []string{"Authorization", "Bearer k"}, "api.openai.com", 200, ""},
		{anthropicHost, openaiHost, "GET", "/openai/v1/something-new", []string{"Authorization", "Bearer k"}, "api.openai.com", 200, ""},
		{anthropicHost, openaiHost, "GET", "/anthropic/v1/models", []string{"Authorization", "Bearer k"}, "api.anthropic.com", 200, ""},
		{anthropicHost, openaiHost, "GET", "/anthropic", []string{"Authorization", "Bearer k"}, "api.anthropic.com", 200, ""},
		// There is only one.
		{anthropicHost, "", "GET", "/v1/something-new", []string{"Authorization", "Bearer k"}, "api.anthropic.com", 200, ""},
		{"", compatible, "GET", "/", nil, "127.0.0.1:11434", 200, ""},
		{compatible, compatible, "GET", "/v1/something-new", []string{"Authorization", "Bearer k"}, "127.0.0.1:11434", 200, ""},
		// Nothing says it.
		{anthropicHost, openaiHost, "POST", "/v1/something-new", []string{"Authorization", "Bearer k"}, none, 404, "put /anthropic, /openai or /gemini before the path"},
		{anthropicHost, openaiHost, "POST", "/v2/embed", []string{"Authorization", "Bearer k"}, none, 404, "put /anthropic, /openai or /gemini before the path"},
		{anthropicHost, openaiHost, "GET", "/backend-api/codex/something-new", []string{"Authorization", "Bearer k"}, none, 404, "put /anthropic, /openai or /gemini before the path"},
		{anthropicHost, openaiHost, "GET", "/", nil, none, 404, "put /anthropic, /openai or /gemini before the path"},
		{anthropicHost, openaiHost, "GET", "/openaix/v1/something-new", nil, none, 404, "put /anthropic, /openai or /gemini before the path"},
		// There is no provider of that API.
		{anthropicHost, "", "POST", "/v1/chat/completions", []string{"Authorization", "Bearer k"}, none, 404, "set gateway.openai"},
		{anthropicHost, "", "GET", "/openai/v1/models", []string{"Authorization", "Bearer k"}, none, 404, "set gateway.openai"},
		{"", openaiHost, "POST", "/v1/messages", []string{"X-Api-Key", "k"}, none, 404, "set gateway.anthropic"},
		// Clouds with the format of Anthropic's own API.
		{"https://bedrock-mantle.us-east-1.api.aws/anthropic", openaiHost, "POST", "/v1/messages?beta=true", []string{"Authorization", "Bearer ABSKplanted"}, "bedrock-mantle.us-east-1.api.aws", 200, ""},
		{"https://claude.googleapis.com", openaiHost, "POST", "/v1/messages?beta=true", []string{"Authorization", "Bearer ya29.planted"}, "claude.googleapis.com", 200, ""},
		{"https://r.services.ai.azure.com/anthropic", openaiHost, "POST", "/anthropic/v1/messages?beta=true", []string{"X-Api-Key", "planted"}, "r.services.ai.azure.com", 200, ""},
		{anthropicHost, openaiHost, "POST", "/v1/messages?beta=true", []string{"Authorization", "Bearer ABSKplanted"}, none, 401, "which is a key of AWS"},
		{anthropicHost, openaiHost, "POST", "/v1/messages?beta=true", []string{"Authorization", "Bearer ya29.planted"}, none, 401, "which is a key of Google"},
		{"https://bedrock-mantle.us-east-1.api.aws/anthropic", openaiHost, "POST", "/v1/messages", []string{"Authorization", "AWS4-HMAC-SHA256 Credential=planted"}, none, 400, "use an API key instead"},
		{"", openaiHost, "POST", "/anthropic/v1/messages", []string{"X-Api-Key", "k"}, none, 404, "set gateway.anthropic"},
	} {
		w, reached := askVendors(t, tt.anthropic, tt.openai, request(tt.method, tt.path, tt.headers...))
		got := none
		if reached != nil {
			got = reached.URL.Host
		}
		if got != tt.want || w.Code != tt.status || !strings.Contains(w.Body.String(), tt.words) {
			t.Errorf("%s %s %v, Anthropic at %q, OpenAI at %q: it reached %q: %d %s; want %q, %d", tt.method, tt.path, tt.headers, tt.anthropic, tt.openai, got, w.Code, w.Body, tt.want, tt.status)
		}
	}
}

// Credentials go only to a provider that can take them, on paths that furl
// understands and on others.
func TestCredentialsStayWithTheirVendor(t *testing.T) {
	chat, messages := "/v1/chat/completions", "/v1/messages"
	for _, tt := range []struct {
		anthropic, openai, path string
		headers                 []string
		want                    string // names of the credentials that arrive; "refused"
		words                   string
	}{
		{anthropicHost, openaiHost, chat, []string{"Authorization", "Bearer k"}, "Authorization", ""},
		{anthropicHost, openaiHost, chat, []string{"Authorization", "Bearer sk-proj-k"}, "Authorization", ""},
		{anthropicHost, openaiHost, chat, []string{"Authorization", "Bearer sk-ant-api03-planted"}, "refused", "api.openai.com does not take the credential in Authorization, which is a key of Anthropic"},
		{anthropicHost, openaiHost, chat, []string{"Authorization", "Bearer AIzaplanted"}, "refused", "which is a key of Google"},
		{anthropicHost, openaiHost, chat, []string{"X-Goog-Api-Key", "planted"}, "refused", "api.openai.com does not take the credential in X-Goog-Api-Key"},
		{anthropicHost, openaiHost, chat, []string{"X-Api-Key", "planted"}, "refused", "api.openai.com does not take the credential in X-Api-Key"},
		{anthropicHost, openaiHost, chat, []string{"Authorization", "Bearer k", "X-Api-Key", "planted", "X-Goog-Api-Key", "planted"}, "Authorization", ""},
		{anthropicHost, openaiHost, "/v1/embeddings", []string{"X-Api-Key", "sk-ant-planted", "Authorization", "Bearer k"}, "Authorization", ""},
		{anthropicHost, openaiHost, "/v1/embeddings", []string{"Authorization", "bearer sk-ant-planted"}, "refused", "which is a key of Anthropic"},
		{anthropicHost, openaiHost, "/openai/v1/models?key=AIzaplanted", nil, "refused", "api.openai.com does not take the credential in the query, which is a key of Google"},
		{anthropicHost, openaiHost, "/openai/v1/models?key=k&key=AIzaplanted", nil, "refused", "which is a key of Google"},
		{anthropicHost, openaiHost, messages, []string{"X-Api-Key", "sk-ant-k"}, "X-Api-Key", ""},
		{anthropicHost, openaiHost, messages, []string{"X-Api-Key", "sk-ant-k", "Authorization", "Bearer sk-ant-oat01-k"}, "Authorization X-Api-Key", ""},
		{anthropicHost, openaiHost, messages, []string{"X-Api-Key", "planted", "Authorization", "Bearer sk-ant-oat01-k"}, "Authorization", ""},
		// A key of Foundry has no known prefix. It is not sent to Anthropic.
		{anthropicHost, openaiHost, messages, []string{"X-Api-Key", "planted"}, "refused", "api.anthropic.com does not take the credential in X-Api-Key: keys of Anthropic begin with sk-ant-; the request was not sent; if it is for another provider, set the base URL of that provider with --anthropic or gateway.anthropic"},
		{anthropicHost, openaiHost, "/anthropic/v1/messages", []string{"X-Api-Key", "planted"}, "refused", "keys of Anthropic begin with sk-ant-"},
		{anthropicHost, openaiHost, "/v1/messages/count_tokens", []string{"X-Api-Key", "planted"}, "refused", "keys of Anthropic begin with sk-ant-"},
		{anthropicHost, openaiHost, "/v1/messages/batches", []string{"X-Api-Key", "planted"}, "refused", "keys of Anthropic begin with sk-ant-"},
		{anthropicHost, openaiHost, messages, []string{"Authorization", "Bearer sk-proj-planted"}, "refused", "api.anthropic.com does not take the credential in Authorization, which is a key of OpenAI"},
		{anthropicHost, openaiHost, messages, []string{"Authorization", "AWS4-HMAC-SHA256 Credential=planted"}, "refused", "which is a key of AWS"},
		{anthropicHost, openaiHost, messages, nil, "", ""},
		// A compatible server may take any key, in the headers of these formats.
		{anthropicHost, compatible, chat, []string{"Authorization", "Bearer sk-ant-k", "X-Api-Key", "k", "Api-Key", "k"}, "Api-Key Authorization X-Api-Key", ""},
		{anthropicHost, compatible, chat, []string{"X-Goog-Api-Key", "planted"}, "refused", "127.0.0.1:11434 does not take the credential in X-Goog-Api-Key"},
		{compatible, openaiHost, messages, []string{"Api-Key", "k"}, "Api-Key", ""},
		{anthropicHost, azureHost, "/openai/deployments/big/chat/completions?api-version=1", []string{"Api-Key", "k"}, "Api-Key", ""},
		{anthropicHost, googleHost, chat, []string{"Authorization", "Bearer AIzak"}, "Authorization", ""},
		{anthropicHost, googleHost, chat, []string{"X-Goog-Api-Key", "k"}, "X-Goog-Api-Key", ""},
	} {
		w, reached := askVendors(t, tt.anthropic, tt.openai, request("POST", tt.path, tt.headers...))
		got := "refused"
		if reached != nil {
			var names []string
			for _, name := range []string{"Api-Key", "Authorization", "X-Api-Key", "X-Goog-Api-Key"} {
				if reached.Header.Get(name) != "" {
					names = append(names, name)
				}
			}
			got = strings.Join(names, " ")
		}
		if got != tt.want || got == "refused" != (w.Code == http.StatusUnauthorized) || !strings.Contains(w.Body.String(), tt.words) {
			t.Errorf("%s %v, Anthropic at %s, OpenAI at %s: %q arrives, want %q: %d %s", tt.path, tt.headers, tt.anthropic, tt.openai, got, tt.want, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), "planted") || reached != nil && strings.Contains(reached.URL.String()+strings.Join(headerValues(reached), " "), "planted") {
			t.Errorf("%s %v: a credential is where it must not be: %s", tt.path, tt.headers, w.Body)
		}
	}
}

func headerValues(r *http.Request) (all []string) {
	for _, values := range r.Header {
		all = append(all, values...)
	}
	return all
}

// The words that a query holds beside a key do not matter.
func TestQueryStays(t *testing.T) {
	query := url.Values{"key": {"of-a-proxy"}, "beta": {"true"}}.Encode()
	_, reached := askVendors(t, anthropicHost, compatible, request("POST", "/v1/chat/completions?"+query, "Authorization", "Bearer k"))
	if reached == nil || reached.URL.RawQuery != query {
		t.Errorf("the provider got %v", reached)
	}
}
