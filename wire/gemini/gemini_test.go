package gemini

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
)

// conversation is a request as Gemini CLI 0.61 sends it, shortened.
const conversation = `{"contents":[{"role":"user","parts":[{"text":"read a.go"}]},` +
	`{"role":"model","parts":[{"functionCall":{"id":"read_1","name":"read_file","args":{"path":"a.go"}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"ls","args":{}}}]},` +
	`{"role":"user","parts":[{"functionResponse":{"id":"read_1","name":"read_file","response":{"output":"package a"}}},{"functionResponse":{"name":"ls","response":{"error":"no such folder"}}}]},` +
	`{"parts":[{"text":"It is ","thoughtSignature":""},{"text":"empty.","thoughtSignature":"c2ln"}],"role":"model"},` +
	`{"role":"user","parts":[{"text":"thanks"},{"text":"bye"}]}],` +
	`"systemInstruction":{"role":"user","parts":[{"text":"You are an agent."}]},` +
	`"tools":[{"functionDeclarations":[{"name":"read_file","parametersJsonSchema":{"type":"object"}},{"name":"ls"}]}],"generationConfig":{"maxOutputTokens":100}}`

// snakeConversation has the other names of the same fields.
const snakeConversation = `{"contents":[{"role":"user","parts":[{"text":"read a.go"}]},` +
	`{"role":"model","parts":[{"function_call":{"name":"read_file","args":{"path":"a.go"}},"thought_signature":"c2ln"},{"function_call":{"name":"ls"}}]},` +
	`{"role":"function","parts":[{"function_response":{"name":"read_file","response":{"output":"package a"}}},{"function_response":{"name":"ls","response":{"error":"no such folder"}}}]},` +
	`{"role":"model","parts":[{"text":"It is empty."}]},` +
	`{"role":"user","parts":[{"text":"thanks"},{"text":"bye"}]}],` +
	`"system_instruction":{"parts":[{"text":"You are an agent."}]},` +
	`"tools":[{"function_declarations":[{"name":"read_file","parametersJsonSchema":{"type":"object"}},{"name":"ls"}]}],"generation_config":{"max_output_tokens":100}}`

const streamed = `{"candidates":[{"content":{"parts":[{"text":"think","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":10},"modelVersion":"gemini-3-pro","responseId":"r"}
{"candidates":[{"content":{"parts":[{"text":"Hel"}],"role":"model"},"index":0}],"responseId":"r"}
{"candidates":[{"content":{"parts":[{"text":"lo"}],"role":"model"},"index":0}],"responseId":"r"}
{"candidates":[{"content":{"parts":[{"functionCall":{"name":"ls","args":{"p":"."}},"thoughtSignature":"c2ln"}],"role":"model"},"index":0}]}
{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"ZW5k"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":7,"thoughtsTokenCount":3,"toolUsePromptTokenCount":5,"totalTokenCount":115}}`

func kinds(m *furl.Message) string {
	var b strings.Builder
	for i := range m.Blocks {
		fmt.Fprintf(&b, "%v ", m.Blocks[i].Kind)
	}
	return strings.TrimSpace(b.String())
}

func TestDecodeRequest(t *testing.T) {
	req := decode(t, conversation)
	if req.MaxTokens != 100 || len(req.Preamble) != 3 || req.Preamble[0].Text != "You are an agent." || req.Preamble[2].ID != "ls" || req.Ambiguous != "" {
		t.Errorf("%+v", req)
	}
	for i, want := range []string{"text", "call call", "result result", "text", "text text"} {
		if got := kinds(&req.Messages[i]); got != want {
			t.Errorf("content %d: %s, want %s", i, got, want)
		}
	}
	calls, results := req.Messages[1].Blocks, req.Messages[2].Blocks
	if calls[0].ID != "read_1" || calls[0].Signature != 4 || string(calls[0].Args) != `{"path":"a.go"}` || string(calls[1].Args) != `{}` {
		t.Errorf("calls %+v", calls)
	}
	if results[0].Text != "package a" || results[0].Error || results[1].Text != "no such folder" || !results[1].Error || results[1].Name != "ls" {
		t.Errorf("results %+v", results)
	}
	if text := req.Messages[3].Blocks[0].Text; text != "It is empty." {
		t.Errorf("the text of the model is %q", text)
	}
}

// The two names of a field, ids, signatures, the role of results and the number of
// pieces of a text make no difference.
func TestSameDigests(t *testing.T) {
	a, b := decode(t, conversation), decode(t, snakeConversation)
	if a.MaxTokens != b.MaxTokens || a.PreambleDigest != b.PreambleDigest {
		t.Error("the settings differ")
	}
	for i := range a.Messages {
		if a.Messages[i].Digest != b.Messages[i].Digest {
			t.Errorf("content %d differs", i)
		}
	}
}

// A reply has one chain of digests whether its pieces come back joined or as they came.
func TestPiecesOfAReply(t *testing.T) {
	whole := decode(t, `{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"text":"Hello"},{"functionCall":{"id":"x","args":{"b":1,"a":2},"name":"ls"}}]}]}`)
	want := chains(whole.Messages)
	for _, pieces := range []string{
		`{"role":"model","parts":[{"text":"Hel"}]},{"role":"model","parts":[{"text":"lo"}]},{"role":"model","parts":[{"functionCall":{"name":"ls","args":{"a":2,"b":1}},"thoughtSignature":"skip_thought_signature_validator"}]}`,
		`{"role":"model","parts":[{"text":"t","thought":true}]},{"role":"model","parts":[{"text":"Hel"},{"text":"","thoughtSignature":"eA=="}]},{"role":"model","parts":[{"text":"","thoughtSignature":"eA=="}]},{"role":"model","parts":[{"text":"lo"},{"functionCall":{"name":"ls","args":{"a":2,"b":1}}}]}`,
		`{"parts":[{"text":"H"},{"text":"el"}],"role":"model"},{"role":"model","parts":[{"text":"l"},{"text":"x","thought":true},{"text":"o"}]},{"role":"model","parts":[{"functionCall":{"args":{"a":2,"b":1},"name":"ls"}}]}`,
	} {
		got := chains(decode(t, `{"contents":[{"role":"user","parts":[{"text":"q"}]},`+pieces+`]}`).Messages)
		if got[len(got)-1] != want[1] {
			t.Errorf("another chain: %s", pieces)
		}
	}
	other := chains(decode(t, `{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"text":"Hell"}]},{"role":"model","parts":[{"functionCall":{"name":"ls","args":{"a":2,"b":1}}}]}]}`).Messages)
	if other[2] == want[1] {
		t.Error("another text has the same chain")
	}
}

func chains(msgs []furl.Message) (list []furl.Digest) {
	list = make([]furl.Digest, len(msgs))
	for i := range msgs {
		list[i] = furl.ChainAt(msgs, list, i)
	}
	return list
}

// A log gives calls without an id one, and results those of their calls, whatever ids the
// client sends. Its chains are those of the request.
func TestCallsInALog(t *testing.T) {
	req := decode(t, `{"contents":[{"role":"user","parts":[{"text":"q"}]},
		{"role":"model","parts":[{"functionCall":{"name":"ls","args":{"p":"a"}}},{"functionCall":{"name":"ls","args":{"p":"b"}}},{"functionCall":{"id":"c3","name":"cat"}}]},
		{"role":"user","parts":[{"functionResponse":{"id":"other","name":"cat","response":{"output":"3"}}},{"functionResponse":{"id":"x","name":"ls","response":{"output":"1"}}},{"functionResponse":{"name":"ls","response":{"output":"2"}}}]},
		{"role":"model","parts":[{"functionCall":{"id":"c3","name":"ls","args":{"p":"a"}}}]},
		{"role":"user","parts":[{"functionResponse":{"id":"c3","name":"ls","response":{"output":"4"}}}]}]}`)
	log, want := furl.NewLog(), chains(req.Messages)
	ids := make(map[string]bool)
	for i := range req.Messages {
		r, err := log.Append(log.Head(), time.Time{}, furl.Client, &req.Messages[i])
		if err != nil {
			t.Fatal(err)
		}
		if r.Chain != want[i] {
			t.Errorf("the chain at content %d is another", i)
		}
		for _, b := range r.Body.(*furl.Message).Blocks {
			if b.Kind == furl.KindCall && (ids[b.ID] || b.ID == "") {
				t.Errorf("a call has the id %q", b.ID)
			}
			if b.Kind == furl.KindResult && !ids[b.ID] {
				t.Errorf("a result has the id %q", b.ID)
			}
			ids[b.ID] = true
		}
	}
	if open := log.State().OpenCalls(); len(open) != 0 {
		t.Errorf("open calls: %q", open)
	}
	_, calls := log.State().Message(1)
	_, results := log.State().Message(2)
	if results.Blocks[1].ID != calls.Blocks[0].ID || results.Blocks[2].ID != calls.Blocks[1].ID || results.Blocks[0].ID != "c3" {
		t.Errorf("results %+v of calls %+v", results.Blocks, calls.Blocks)
	}
}

// Gemini CLI sends each result twice after it resumes a session. The second one changes no
// digest, and is removed once anything there is hidden.
func TestRepeatedResults(t *testing.T) {
	result := `{"functionResponse":{"id":"a","name":"ls","response":{"output":"the files"}}}`
	head := `{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"id":"a","name":"ls"},"thoughtSignature":"x"}]},{"role":"user","parts":[` + result + `]}`
	once := decode(t, head+`]}`)
	for _, tc := range []struct{ body, want string }{
		{head + `,{"role":"user","parts":[` + result + `]}]}`, head + `]}`},
		{head + `,{"role":"user","parts":[` + result + `]},{"role":"user","parts":[{"text":"go on"}]}]}`, head + `,{"role":"user","parts":[{"text":"go on"}]}]}`},
		{strings.Replace(head, result, result+`, `+result, 1) + `]}`, head + `]}`},
	} {
		req := decode(t, tc.body)
		if got := chains(req.Messages); got[2] != chains(once.Messages)[2] || len(got) > 3 && strings.Count(tc.body, `"parts"`) == 4 && got[3] != got[2] {
			t.Errorf("another chain: %s", tc.body)
		}
		if err := Codec.Validate(req, furl.Model{}); err != nil {
			t.Errorf("%v: %s", err, tc.body)
		}
		v := viewOf(req.Messages)
		edit(v, 2, 0, "[hidden]")
		out, err := Codec.EncodeRequest(req, v)
		if want := strings.Replace(tc.want, "the files", "[hidden]", 1); err != nil || string(out) != want {
			t.Errorf("%v\n%s, want\n%s", err, out, want)
		}
	}
}

func TestEncodeRequest(t *testing.T) {
	req := decode(t, conversation)
	for name, tc := range map[string]struct {
		change   func(v *furl.View)
		old, new string
	}{
		"a result":  {func(v *furl.View) { edit(v, 2, 0, "[hidden]") }, `{"output":"package a"}`, `{"output":"[hidden]"}`},
		"a failure": {func(v *furl.View) { edit(v, 2, 1, "[hidden]") }, `{"error":"no such folder"}`, `{"error":"[hidden]"}`},
		"a call":    {func(v *furl.View) { edit(v, 1, 0, `{"path":"…"}`) }, `{"path":"a.go"}`, `{"path":"…"}`},
		"a reply": {func(v *furl.View) { edit(v, 3, 0, "short") }, `{"text":"It is ","thoughtSignature":""},{"text":"empty.","thoughtSignature":"c2ln"}`,
			`{"text":"short","thoughtSignature":"c2ln"}`},
		"a step": {func(v *furl.View) { mark(v, 1, 3, "[3 messages]") }, conversation[strings.Index(conversation, `{"role":"model"`):strings.Index(conversation, `,{"parts":[{"text":"It`)],
			`{"role":"user","parts":[{"text":"[3 messages]"}]}`},
	} {
		v := viewOf(req.Messages)
		tc.change(v)
		out, err := Codec.EncodeRequest(req, v)
		if want := strings.Replace(conversation, tc.old, tc.new, 1); err != nil || string(out) != want {
			t.Errorf("%s: %v\n%s, want\n%s", name, err, out, want)
		}
		if err := Codec.Validate(decode(t, string(out)), furl.Model{ID: "gemini-3-pro"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The results of furl's tools are in one content with those of the client.
func TestOwnResultsJoinTheClients(t *testing.T) {
	req := decode(t, conversation)
	v := viewOf(req.Messages)
	own, err := Codec.ToolResults([]furl.Block{{Kind: furl.KindResult, ID: "furl_call_4_0", Name: "memory_get", Text: "found", Own: true}})
	if err != nil {
		t.Fatal(err)
	}
	own[0].Blocks[0].Own = true
	s := shownOf(own[0], 0)
	s.Index = -1
	v.Messages = append(v.Messages[:2:2], append([]furl.Shown{s}, v.Messages[2:]...)...)
	result := `{"functionResponse":{"name":"memory_get","response":{"output":"found"}}}`
	out, err := Codec.EncodeRequest(req, v)
	if want := strings.Replace(conversation, `"parts":[{"functionResponse"`, `"parts":[`+result+`,{"functionResponse"`, 1); err != nil || string(out) != want {
		t.Errorf("%v\n%s, want\n%s", err, out, want)
	}
	list, err := Codec.EncodeView(v)
	if err != nil || len(list) != 5 || !strings.HasPrefix(string(list[2]), `{"role":"user","parts":[`+result+`,{"functionResponse":{"id":"read_1"`) {
		t.Errorf("%v %s", err, list)
	}
}

func TestStream(t *testing.T) {
	a := Codec.NewAssembler()
	for line := range strings.SplitSeq(streamed, "\n") {
		if err := a.Feed("", []byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	reply, err := a.Reply()
	if err != nil || !reply.Complete || reply.Stop != "STOP" || reply.ID != "r" || reply.Model != "gemini-3-pro" {
		t.Fatalf("%+v, %v", reply, err)
	}
	if want := (furl.Usage{Input: 45, CacheRead: 60, Output: 10, Reasoning: 3}); reply.Usage != want {
		t.Errorf("usage %+v, want %+v", reply.Usage, want)
	}
	want := `{"parts":[{"text":"think","thought":true},{"text":"Hello"},{"functionCall":{"name":"ls","args":{"p":"."}},"thoughtSignature":"c2ln"},{"text":"","thoughtSignature":"ZW5k"}],"role":"model"}`
	if got := string(reply.Messages[0].Raw); got != want {
		t.Errorf("got %s, want\n%s", got, want)
	}
	body := "[" + strings.ReplaceAll(streamed, "\n", ",\r\n") + "]"
	list, err := Codec.DecodeReply(200, []byte(body))
	if diff := cmp.Diff(reply, list); err != nil || diff != "" {
		t.Errorf("as a list: %v\n%s", err, diff)
	}
}

func TestReplies(t *testing.T) {
	for body, check := range map[string]func(r *protocol.Reply) bool{
		`{"totalTokens":31,"promptTokensDetails":[]}`: func(r *protocol.Reply) bool { return r.Complete && r.Usage.Input == 31 },
		`{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4}}`: func(r *protocol.Reply) bool {
			return r.Complete && r.Stop == "SAFETY" && len(r.Messages) == 0 && r.Usage.Input == 4
		},
		`{"candidates":[{"finishReason":"PROHIBITED_CONTENT","index":0}]}`: func(r *protocol.Reply) bool { return r.Complete && r.Stop == "PROHIBITED_CONTENT" },
		`{"candidates":[{"index":1,"content":{"parts":[{"text":"second"}]}},{"content":{"parts":[{"text":"first"}]},"index":0}]}`: func(r *protocol.Reply) bool {
			return r.Messages[0].Blocks[0].Text == "first"
		},
	} {
		if r, err := Codec.DecodeReply(200, []byte(body)); err != nil || !check(r) {
			t.Errorf("%s: %+v, %v", body, r, err)
		}
	}
	if r, err := Codec.DecodeReply(200, []byte(`{"models":[]}`)); err == nil {
		t.Errorf("no reply was decoded: %+v", r)
	}
}

func TestRefusals(t *testing.T) {
	for message, want := range map[string]protocol.Overflow{
		PromptTooLong(1048577, 1048576).Message: {Tokens: 1048577, Limit: 1048576},
		"Unable to submit request because the input token count is 70000 but model only supports up to 65536. Reduce the input token count and try again.": {Tokens: 70000, Limit: 65536},
		"The input token count exceeds the maximum number of tokens allowed 32768.":                                                                        {Limit: 32768},
		BodyTooLarge(20971520).Message: {},
	} {
		for _, list := range []bool{false, true} {
			body := Codec.ErrorBody(&protocol.Refusal{Status: 400, Message: message}, "")
			if list {
				body = bracketed(body)
			}
			r, err := Codec.DecodeReply(400, body)
			if err != nil || r.Overflow == nil || *r.Overflow != want || r.Refusal.Type != "INVALID_ARGUMENT" || r.Refusal.Message != message {
				t.Errorf("%s: %+v, %+v, %v", message, r.Overflow, r.Refusal, err)
			}
		}
	}
	for _, r := range []*protocol.Refusal{{Status: 429, Message: "later"}, {Status: 502}, {Status: 418, Type: "invalid_request_error"}, {Type: "UNAVAILABLE"}} {
		var got struct {
			Error struct {
				Code            int
				Message, Status string
			}
		}
		if err := json.Unmarshal(Codec.ErrorBody(r, ""), &got); err != nil || got.Error.Code < 400 || got.Error.Message == "" || got.Error.Status == "" || strings.ToUpper(got.Error.Status) != got.Error.Status {
			t.Errorf("%+v: %+v, %v", r, got, err)
		}
	}
}

// A call of furl's tools and what follows the end of a stream are held back, and no piece
// for the client lacks parts.
func TestJoin(t *testing.T) {
	own := func(name string) bool { return name == "memory_get" }
	piece := func(parts, finish string) string {
		return `{"candidates":[{"content":{"parts":[` + parts + `],"role":"model"}` + finish + `,"index":0}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":1},"responseId":"r"}`
	}
	const call, stop = `{"functionCall":{"name":"memory_get","args":{}},"thoughtSignature":"c2ln"}`, `,"finishReason":"STOP"`
	j := Codec.NewJoiner(own)
	var out []string
	send := func(data string) {
		if b := j.Event("", []byte(data), []byte("data: "+data+"\n\n")); len(b) > 0 {
			checkPieces(t, []byte(data), b)
			out = append(out, strings.TrimSpace(string(b)))
		}
	}
	send(piece(`{"text":"a"}`, ""))
	send(piece(call, ""))
	send(piece(`{"text":"!"}`, stop))
	if !j.Called() {
		t.Fatal("the call was not recognized")
	}
	j.Next()
	send(strings.Replace(piece(`{"text":"b"}`, ""), `"r"`, `"s"`, 1))
	send(piece(`{"text":"c"}`, stop))
	end := strings.TrimSpace(string(j.End(furl.Usage{Input: 20, Output: 2}, false)))
	want := []string{"data: " + piece(`{"text":"a"}`, ""),
		"data: " + `{"candidates":[{"content":{"parts":[{"text":"!"}],"role":"model"},"index":0}],"responseId":"r"}` + "\n\ndata: " + piece(`{"text":"b"}`, "")}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
	if want := "data: " + `{"candidates":[{"content":{"parts":[{"text":"c"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":20,"candidatesTokenCount":2,"totalTokenCount":22},"responseId":"r"}`; end != want {
		t.Errorf("end %s, want\n%s", end, want)
	}
	before, err := Codec.DecodeReply(200, []byte(piece(`{"text":"a"},`+call, stop)))
	if err != nil {
		t.Fatal(err)
	}
	before.Messages[0].Blocks[1].Own = true
	for _, body := range []string{piece(`{"text":"c"}`, stop), "[" + piece(`{"text":"c"}`, stop) + "]"} {
		joined, err := Codec.JoinBodies([]*protocol.Reply{before}, []byte(body), own, furl.Usage{Input: 20, Output: 2}, false)
		r, derr := Codec.DecodeReply(200, joined)
		if err != nil || derr != nil || r.Messages[0].Blocks[0].Text != "ac" || r.Usage.Input != 20 || Codec.Calls(joined, own) || !Codec.Calls([]byte(piece(call, "")), own) {
			t.Errorf("%v, %v: %s", err, derr, joined)
		}
	}
}

func TestValidate(t *testing.T) {
	const user, call, result = `{"role":"user","parts":[{"text":"q"}]}`, `{"role":"model","parts":[{"functionCall":{"name":"ls"},"thoughtSignature":"c2ln"}]}`, `{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{}}}]}`
	unsigned := strings.Replace(call, `,"thoughtSignature":"c2ln"`, "", 1)
	list := func(contents ...string) string { return `{"contents":[` + strings.Join(contents, ",") + `]}` }
	for body, want := range map[string]string{
		list(user, call, result):   "",
		list(result, call, result): "", // the client lost a turn
		list(user, call, call, strings.Replace(result, `]}`, `,{"functionResponse":{"name":"ls","response":{}}}]}`, 1)): "",
		list(user, call):                                 "",
		list(user, call, user):                           "the number of function response parts is equal",
		list(user, call, result, result):                 "function response turn comes immediately after",
		list(call, result):                               "function call turn comes immediately after",
		list(user, unsigned, result):                     "missing a thought_signature",
		list(user, unsigned, result, user):               "", // an earlier turn
		list(user, call, result, unsigned):               "missing a thought_signature",
		list():                                           "contents is not specified",
		list(`{"role":"user","parts":[]}`):               "parts must not be empty",
		list(`{"role":"system","parts":[{"text":"x"}]}`): "valid role",
		list(`{"role":"user","parts":[{"txt":"x"}]}`):    `Unknown name "txt" at 'contents[0].parts[0]'`,
		list(`{"role":"user","parts":[{}]}`):             "required oneof field 'data'",
		list(`{"role":"user","parts":[{"functionResponse":{"response":{}}}]}`):      "Name cannot be empty",
		`{"contents":[` + user + `],"messages":[]}`:                                 `Unknown name "messages": Cannot find field`,
		`{"contents":[` + user + `],"cachedContent":"cachedContents/x","tools":[]}`: "CachedContent can not be used",
		`{"contents":[` + user + `],"safety_settings":[],"generation_config":{}}`:   "",
	} {
		err := Codec.Validate(decode(t, body), furl.Model{ID: "gemini-3-pro-preview"})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
	if err := Codec.Validate(decode(t, list(user, unsigned, result)), furl.Model{ID: "gemini-2.5-pro"}); err != nil {
		t.Errorf("Gemini 2.5 needs no signatures: %v", err)
	}
}

func TestTools(t *testing.T) {
	for tools, want := range map[string]string{
		`[{"functionDeclarations":[{"name":"a"}, {"name":"b"} ]},{"googleSearch":{}}]`:       `[{"functionDeclarations":[{"name":"a"}, {"name":"b"}|`,
		`[{"function_declarations":[{"name":"a"}]},{"functionDeclarations":[{"name":"b"}]}]`: `[{"function_declarations":[{"name":"a"}]},{"functionDeclarations":[{"name":"b"}|`,
		`[{"googleSearch":{}}]`: "", `[]`: "", `{}`: "",
	} {
		end, ok := Codec.LastTool([]byte(tools))
		if ok != (want != "") || ok && tools[:end]+"|" != want {
			t.Errorf("%s: %d, %v", tools, end, ok)
		}
	}
	for body, want := range map[string]bool{
		conversation: true,
		`{"contents":[],"generationConfig":{"candidateCount":2}}`:                                         false,
		`{"contents":[],"generation_config":{"response_mime_type":"application/json"}}`:                   false,
		`{"contents":[],"generationConfig":{"responseJsonSchema":{}}}`:                                    false,
		`{"contents":[],"cachedContent":"cachedContents/x"}`:                                              false,
		`{"contents":[],"toolConfig":{"functionCallingConfig":{"mode":"any"}}}`:                           false,
		`{"contents":[],"tool_config":{"function_calling_config":{"mode":"AUTO"}},"generationConfig":{}}`: true,
	} {
		if got := Codec.TakesTools(decode(t, body)); got != want {
			t.Errorf("%s: %v", body, got)
		}
	}
}

// What furl's programs write, the validator accepts.
func TestRequestOfAProgram(t *testing.T) {
	body, err := Codec.NewRequest(&protocol.Params{Model: "gemini-3-pro", System: "s", Thinking: "low", MaxTokens: 9, Options: json.RawMessage(`{"safetySettings":[]}`),
		Tools: []protocol.Tool{{Name: "f", Description: "d", Schema: json.RawMessage(`{"type":"object"}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := Codec.UserMessage([]protocol.Part{{Text: "look"}, {Type: "image/png", Data: []byte{1, 2}}})
	if err != nil || kinds(m) != "text image" {
		t.Fatalf("%v, %v", m, err)
	}
	r, err := Codec.ResultMessage(furl.Block{ID: "furl_call_2_0", Name: "f"}, []protocol.Part{{Text: "out"}, {Type: "image/png", Data: []byte{1}}}, true)
	if err != nil || r.Blocks[0].ID != "" || r.Blocks[0].Name != "f" || !r.Blocks[0].Error || len(r.Blocks[0].Media) != 1 {
		t.Fatalf("%v, %v", r, err)
	}
	body = append(body[:len(body)-2], m.Raw...)
	req := decode(t, string(body)+"]}")
	if err := Codec.Validate(req, furl.Model{ID: "gemini-3-pro"}); err != nil || req.MaxTokens != 9 || len(req.Preamble) != 2 {
		t.Errorf("%v %s", err, req.Body)
	}
	asked, ok := Codec.Ask(req.Body, "summarize")
	if !ok {
		t.Fatal("no list")
	}
	limited, _ := Codec.WithLimit(Codec.Unforced(asked), 10, 5, 0)
	again := decode(t, string(limited))
	if again.MaxTokens != 15 || len(again.Messages) != 2 || !strings.Contains(string(limited), `"mode":"NONE"`) {
		t.Errorf("%s", limited)
	}
	for _, stream := range []protocol.Endpoint{{}, {Stream: true}, {Stream: true, List: true}} {
		stream.Complete(req)
		kind, reply := Codec.TextReply(req, "1", "done", time.Time{})
		reply = []byte(strings.TrimPrefix(string(reply), "data: "))
		got, err := Codec.DecodeReply(200, reply)
		if err != nil || got.Messages[0].Blocks[0].Text != "done" || strings.HasPrefix(kind, "text/event-stream") != (stream.Stream && !stream.List) {
			t.Errorf("%+v: %s %s, %v", stream, kind, reply, err)
		}
		req.Stream = false
	}
}
