package sim_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/furlhq/furl/sim"
)

type geminiDialect struct {
	extra string
	// pieces sends each piece of a stream as a content of its own, as the chats of @google/genai do.
	pieces bool
}

func (geminiDialect) path() string { return "" }

func (geminiDialect) method(model string, stream bool) string {
	if stream {
		return "/v1beta/models/" + model + ":streamGenerateContent?alt=sse"
	}
	return "/v1beta/models/" + model + ":generateContent"
}

func (geminiDialect) user(text string) json.RawMessage {
	return json.RawMessage(`{"role":"user","parts":[{"text":` + quote(text) + `}]}`)
}

func (geminiDialect) result(id, text string) json.RawMessage {
	if id != "" {
		id = `"id":` + quote(id) + `,`
	}
	return json.RawMessage(`{"role":"user","parts":[{"functionResponse":{` + id + `"name":"read_file","response":{"output":` + quote(text) + `}}}]}`)
}

func (d geminiDialect) body(model string, list []json.RawMessage, stream bool) string {
	return d.method(model, stream) + "\n" + fmt.Sprintf(`{"contents":%s,"systemInstruction":{"parts":[{"text":"You are a test."}],"role":"user"},"tools":[{"functionDeclarations":[{"name":"read_file","description":"Reads","parametersJsonSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]}]%s}`,
		listOf(list), d.extra)
}

// geminiAnswer is a response or a piece of one.
type geminiAnswer struct {
	Candidates []struct {
		Content struct {
			Role  string
			Parts []json.RawMessage
		}
		FinishReason string
	}
	Usage map[string]any `json:"usageMetadata"`
}

type geminiPart struct {
	Text         *string
	Thought      bool
	Signature    string `json:"thoughtSignature"`
	FunctionCall *struct {
		ID, Name string
		Args     map[string]any
	}
}

func (d geminiDialect) read(t *testing.T, body []byte, stream bool) (back []json.RawMessage, calls []string, text string) {
	t.Helper()
	pieces := []json.RawMessage{body}
	if stream {
		_, pieces = events(t, body)
	}
	var parts []json.RawMessage
	for i, raw := range pieces {
		var a geminiAnswer
		mustJSON(t, raw, &a)
		if len(a.Candidates) != 1 || len(a.Candidates[0].Content.Parts) == 0 || a.Candidates[0].Content.Role != "model" || a.Usage["promptTokenCount"] == nil {
			t.Fatalf("piece %d lacks parts, the role or the usage: %s", i, raw)
		}
		if ends := a.Candidates[0].FinishReason != ""; ends != (i == len(pieces)-1) {
			t.Errorf("piece %d of %d ends with %q", i, len(pieces), a.Candidates[0].FinishReason)
		}
		if d.pieces {
			back = append(back, json.RawMessage(`{"parts":`+listOf(a.Candidates[0].Content.Parts)+`,"role":"model"}`))
		}
		parts = append(parts, a.Candidates[0].Content.Parts...)
	}
	for _, raw := range parts {
		var p geminiPart
		mustJSON(t, raw, &p)
		switch {
		case p.FunctionCall != nil:
			calls = append(calls, p.FunctionCall.ID)
		case p.Text != nil && !p.Thought:
			text += *p.Text
		}
	}
	if !d.pieces {
		back = []json.RawMessage{json.RawMessage(`{"parts":` + listOf(parts) + `,"role":"model"}`)}
	}
	return back, calls, text
}

// Requests that violate a rule get Google's status and text.
func TestGeminiRefusals(t *testing.T) {
	const (
		user   = `{"role":"user","parts":[{"text":"hi"}]}`
		call   = `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"}]}`
		result = `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"x"}}}]}`
		twin   = `{"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{}}},{"functionResponse":{"id":"1","name":"f","response":{}}}]}`
		bare   = `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}`
		two    = `{"role":"model","parts":[{"functionCall":{"name":"f"},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"name":"g"}}]}`
	)
	contents := func(list ...string) string { return `{"contents":[` + strings.Join(list, ",") + `]}` }
	const path = "/v1beta/models/gemini-3.1-pro-preview:generateContent"
	tests := []struct {
		name, path, body string
		headers          []string
		status           int
		code, text       string // text "": not refused
	}{
		{"a call and its result", path, contents(user, call, result), nil, 200, "", ""},
		{"a project of Vertex", "/v1/projects/p/locations/l/publishers/google/models/gemini-3.1-pro-preview:generateContent", contents(user), nil, 200, "", ""},
		{"Vertex with a key", "/v1beta1/publishers/google/models/gemini-3.1-pro-preview:generateContent", contents(user), nil, 200, "", ""},
		{"v1", "/v1/models/gemini-3.1-pro-preview:generateContent", contents(user), nil, 200, "", ""},
		{"snake case, and objects in place of lists", path, `{"contents":{"role":"USER","parts":{"text":"hi"}},"generation_config":{"max_output_tokens":5}}`, nil, 200, "", ""},
		{"a result twice", path, contents(user, call, twin), nil, 200, "", ""},
		{"calls of an earlier turn without a signature", path, contents(user, bare, result, user), nil, 200, "", ""},
		{"an older model's call without one", "/v1beta/models/gemini-2.5-pro:generateContent", contents(user, bare, result), nil, 200, "", ""},
		{"the second call of a step without one", path, contents(user, two, `{"role":"user","parts":[{"functionResponse":{"name":"f"}},{"functionResponse":{"name":"g"}}]}`), nil, 200, "", ""},
		{"no key", path, contents(user), []string{"Authorization", ""}, 403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers"},
		{"not JSON", path, `{"contents":`, nil, 400, "INVALID_ARGUMENT", "Invalid JSON payload received."},
		{"nothing", path, `{}`, nil, 400, "INVALID_ARGUMENT", "* GenerateContentRequest.contents: contents is not specified"},
		{"no parts", path, contents(user, `{"role":"model","parts":[]}`, user), nil, 400, "INVALID_ARGUMENT", "* GenerateContentRequest.contents[1].parts: contents.parts must not be empty."},
		{"an empty part", path, contents(`{"role":"user","parts":[{}]}`), nil, 400, "INVALID_ARGUMENT", "contents[0].parts[0].data: required oneof field 'data' must have one initialized field"},
		{"two kinds", path, contents(`{"role":"user","parts":[{"text":"a","functionCall":{"name":"f"}}]}`), nil, 400, "INVALID_ARGUMENT", "oneof field 'data' is already set. Cannot set 'functionCall'"},
		{"role", path, contents(`{"role":"assistant","parts":[{"text":"a"}]}`), nil, 400, "INVALID_ARGUMENT", "Please use a valid role: user, model."},
		{"unknown model", "/v1beta/models/gemini-x:generateContent", contents(user), nil, 404, "NOT_FOUND", "models/gemini-x is not found for API version v1beta"},
		{"unknown method", "/v1beta/models/gemini-2.5-pro:explode", contents(user), nil, 404, "NOT_FOUND", "The requested URL was not found"},
		{"unknown field", path, `{"stream":true,"contents":[` + user + `]}`, nil, 400, "INVALID_ARGUMENT", `Invalid JSON payload received. Unknown name "stream": Cannot find field.`},
		{"unknown fields", path, `{"contents":[{"role":"user","content":"x","parts":[{"text":"a","cache":1}]}]}`, nil, 400, "INVALID_ARGUMENT", "Invalid JSON payload received. Unknown name \"content\" at 'contents[0]': Cannot find field.\nInvalid JSON payload received. Unknown name \"cache\" at 'contents[0].parts[0]': Cannot find field."},
		{"unknown field of a schema", path, `{"contents":[` + user + `],"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","properties":{"a":{"type":"STRING"},"b":{"const":1}}}}]}]}`, nil, 400, "INVALID_ARGUMENT", `Unknown name "const" at 'tools[0].function_declarations[0].parameters.properties[1].value': Cannot find field.`},
		{"a list of types", path, `{"contents":[` + user + `],"generationConfig":[1]}`, nil, 400, "INVALID_ARGUMENT", `Unknown name "generation_config": Proto field is not repeating, cannot start list.`},
		{"an object as text", path, contents(`{"role":"user","parts":[{"text":{"a":1}}]}`), nil, 400, "INVALID_ARGUMENT", "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), Starting an object on a scalar field"},
		{"a text as response", path, contents(user, call, `{"role":"user","parts":[{"functionResponse":{"name":"f","response":"x"}}]}`), nil, 400, "INVALID_ARGUMENT", "Invalid value at 'contents[2].parts[0].function_response.response' (type.googleapis.com/google.protobuf.Struct), \"x\""},
		{"a response without a name", path, contents(user, call, `{"role":"user","parts":[{"functionResponse":{"response":{}}}]}`), nil, 400, "INVALID_ARGUMENT", "contents[2].parts[0].function_response.name: Name cannot be empty."},
		{"a call first", path, contents(call, result), nil, 400, "INVALID_ARGUMENT", "Please ensure that function call turn comes immediately after a user turn or after a function response turn."},
		{"a result first", path, contents(result), nil, 400, "INVALID_ARGUMENT", "Please ensure that function response turn comes immediately after a function call turn."},
		{"an open call", path, contents(user, call), nil, 400, "INVALID_ARGUMENT", "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."},
		{"a call without its result", path, contents(user, call, user), nil, 400, "INVALID_ARGUMENT", "Please ensure that the number of function response parts"},
		{"one result of two", path, contents(user, two, result), nil, 400, "INVALID_ARGUMENT", "Please ensure that the number of function response parts"},
		{"results in two contents", path, contents(user, two, result, result), nil, 400, "INVALID_ARGUMENT", "Please ensure that the number of function response parts"},
		{"no signature", path, contents(user, call, result, bare, result), nil, 400, "INVALID_ARGUMENT", "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:f` , position 4."},
		{"a signature that is none", path, contents(user, `{"role":"model","parts":[{"functionCall":{"name":"f"},"thoughtSignature":"*"}]}`, result), nil, 400, "INVALID_ARGUMENT", "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed"},
		{"a changed signature", path, contents(user, `{"role":"model","parts":[{"functionCall":{"name":"f"},"thoughtSignature":"AAAA"}]}`, result), nil, 400, "INVALID_ARGUMENT", "Corrupted thought signature."},
		{"a tool twice", path, `{"contents":[` + user + `],"tools":[{"functionDeclarations":[{"name":"f"},{"name":"f"}]}]}`, nil, 400, "INVALID_ARGUMENT", "Duplicate function declaration found: f"},
		{"a cache that is gone", path, `{"cachedContent":"cachedContents/1","contents":[` + user + `]}`, nil, 403, "PERMISSION_DENIED", "CachedContent not found (or permission denied)"},
		{"too much output on Vertex", "/v1/publishers/google/models/gemini-3.1-pro-preview:generateContent", `{"contents":[` + user + `],"generationConfig":{"maxOutputTokens":99999999}}`, nil, 400, "INVALID_ARGUMENT", "maxOutputTokens value of 99999999 but the supported range is from 1 (inclusive) to 65537 (exclusive)"},
		{"rate limit", path, contents(user), []string{sim.FaultHeader, "429"}, 429, "RESOURCE_EXHAUSTED", "Resource has been exhausted"},
		{"overload", path, contents(user), []string{sim.FaultHeader, "503"}, 503, "UNAVAILABLE", "The model is overloaded. Please try again later."},
		{"overflow", path, contents(user), []string{sim.FaultHeader, "overflow"}, 400, "INVALID_ARGUMENT", "The input token count (200001) exceeds the maximum number of tokens allowed (200000)."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, srv := serve(t, nil)
			a := post(t, srv, tt.path, tt.body, tt.headers...)
			var body struct {
				Error struct {
					Code            int
					Status, Message string
					Details         []map[string]any
				}
			}
			mustJSON(t, a.body, &body)
			if a.status != tt.status || body.Error.Status != tt.code || tt.text == "" != (a.status == 200) || !strings.Contains(body.Error.Message, tt.text) {
				t.Errorf("status %d: %s\nwant %d %s: …%s…", a.status, a.body, tt.status, tt.code, tt.text)
			}
			if tt.code != "" && body.Error.Code != tt.status {
				t.Errorf("the error's code is %d", body.Error.Code)
			}
			if strings.Contains(tt.text, "Unknown name") && body.Error.Details[0]["@type"] != "type.googleapis.com/google.rpc.BadRequest" {
				t.Errorf("details %v", body.Error.Details)
			}
			if e := s.Requests()[0]; e.API != "gemini" || (e.Verdict == sim.VerdictOK) != (a.status == 200) {
				t.Errorf("journal %+v", e)
			}
		})
	}
}

// A prompt that is too long for the window is refused with both numbers, and counted.
func TestGeminiOverflow(t *testing.T) {
	_, srv := serve(t, &sim.Options{Window: 1000})
	body := `{"contents":[{"role":"user","parts":[{"text":"` + strings.Repeat(" word", 1200) + `"}]}]}`
	a := post(t, srv, "/v1beta/models/gemini-2.5-pro:generateContent", body)
	if !strings.Contains(string(a.body), "The input token count (1204) exceeds the maximum number of tokens allowed (1000).") {
		t.Errorf("%s", a.body)
	}
	for _, counted := range []string{body, `{"generateContentRequest":{"model":"models/gemini-2.5-pro",` + body[1:] + `}`} {
		a = post(t, srv, "/v1beta/models/gemini-2.5-pro:countTokens", counted)
		if !strings.HasPrefix(string(a.body), `{"totalTokens":1204,`) {
			t.Errorf("%s", a.body)
		}
	}
}

// The stream is an array unless events are asked for. Each piece has the usage, and an answer
// without a call signs an empty text at its end, or without a stream the text.
func TestGeminiStream(t *testing.T) {
	script, err := sim.ParseScript("test", []byte("-- 1 --\nthink: hm\ntext: A text that is cut into several pieces, with “ü”.\nrepeat: 9\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, srv := serve(t, &sim.Options{Player: script})
	const body = `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`
	a := post(t, srv, "/v1beta/models/gemini-3.1-pro-preview:streamGenerateContent", body)
	if got := a.header.Get("Content-Type"); got != "application/json; charset=UTF-8" {
		t.Errorf("the array has the type %s", got)
	}
	var array []json.RawMessage
	mustJSON(t, a.body, &array)
	_, list := events(t, post(t, srv, "/v1beta/models/gemini-3.1-pro-preview:streamGenerateContent?alt=sse", body).body)
	for _, pieces := range [][]json.RawMessage{array, list} {
		var text strings.Builder
		for i, raw := range pieces {
			var piece geminiAnswer
			var part geminiPart
			mustJSON(t, raw, &piece)
			mustJSON(t, piece.Candidates[0].Content.Parts[0], &part)
			text.WriteString(*part.Text)
			if last := i == len(pieces)-1; (part.Signature != "") != last || last && *part.Text != "" || part.Thought {
				t.Errorf("part %d of %d: %s", i, len(pieces), raw)
			}
			if piece.Usage["thoughtsTokenCount"] == nil {
				t.Errorf("piece %d has no tokens of thoughts: %s", i, raw)
			}
		}
		if text.String() != "A text that is cut into several pieces, with “ü”." || len(pieces) < 3 {
			t.Errorf("%d pieces of %q", len(pieces), text.String())
		}
	}
	a = post(t, srv, "/v1beta/models/gemini-3.1-pro-preview:generateContent", body)
	if !strings.Contains(string(a.body), `“ü”.","thoughtSignature":"`) {
		t.Errorf("the text is not signed: %s", a.body)
	}
	a = post(t, srv, "/v1beta/models/gemini-2.5-pro:generateContent", `{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{"thinkingConfig":{"includeThoughts":true}}}`)
	if !strings.Contains(string(a.body), `{"text":"hm","thought":true}`) {
		t.Errorf("no thought: %s", a.body)
	}
	a = post(t, srv, "/v1beta/models/gemini-2.5-pro:streamGenerateContent", body, sim.FaultHeader, "error=1")
	mustJSON(t, a.body, &array)
	if !strings.Contains(string(array[1]), `"status":"UNAVAILABLE"`) {
		t.Errorf("the error in the array: %s", a.body)
	}
}

// What a prompt repeats is read from the cache once it is long enough, and part of the prompt's count.
func TestGeminiCache(t *testing.T) {
	s, srv := serve(t, nil)
	for _, tt := range []struct {
		words int
		want  bool
	}{{500, false}, {9000, true}} {
		body := `{"contents":[{"role":"user","parts":[{"text":"` + strings.Repeat(" word", tt.words) + `"}]}]}`
		for range 2 {
			if a := post(t, srv, "/v1beta/models/gemini-3.1-pro-preview:generateContent", body); a.status != http.StatusOK {
				t.Fatalf("%s", a.body)
			}
		}
		all := s.Requests()
		u := all[len(all)-1].Usage
		if (u.CacheRead > 0) != tt.want || u.CacheWrite != 0 {
			t.Errorf("%d words: %+v", tt.words, u)
		}
	}
}

// Google's list of models, and one of them.
func TestGeminiModels(t *testing.T) {
	_, srv := serve(t, &sim.Options{Window: 5000})
	if _, list := get(t, http.MethodGet, srv.URL+"/v1beta/models"); !strings.Contains(string(list), `"name":"models/gemini-2.5-pro"`) || strings.Contains(string(list), "claude") {
		t.Errorf("%s", list)
	}
	if _, one := get(t, http.MethodGet, srv.URL+"/v1/models/gemini-2.5-pro", "x-goog-api-key", "k"); !strings.Contains(string(one), `"inputTokenLimit":5000,"outputTokenLimit":65536,`) {
		t.Errorf("%s", one)
	}
}
