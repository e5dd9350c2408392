package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
)

// X5, X6 and M8 are guarantees about replacements of hidden content.
func TestChatEncodeMessage(t *testing.T) {
	const calls = `{"role":"assistant","content":"hm","reasoning_content":"so","tool_calls":[ {"id":"c1","type":"function","function":{"name":"f","arguments":"{\"path\":\"a\"}"},"extra_content":{"google":{"thought_signature":"QUJD"}}} , {"id":"c2","type":"custom","custom":{"name":"g","input":"text"}} ],"x":1.0}`
	const parts = `{"role":"user","content":[ {"type":"text","text":"a"} , {"type":"image_url","image_url":{"url":"https://e.com/i"},"prompt_cache_breakpoint":{"mode":"explicit"}},{"type":"text","text":"c"} ]}`
	tests := []struct {
		name, raw string
		change    func(*furl.Shown)
		want      string // "": all blocks are hidden
	}{
		{"as recorded", calls, func(*furl.Shown) {}, calls},
		{"string content", `{"content" : "a\u00e9" , "role":"user"}`, func(s *furl.Shown) { edit(s, 0, "<b> & \"é\"\n") },
			`{"content" : "<b> & \"é\"\n" , "role":"user"}`},
		{"text part", parts, func(s *furl.Shown) { edit(s, 2, "C") },
			`{"role":"user","content":[ {"type":"text","text":"a"} , {"type":"image_url","image_url":{"url":"https://e.com/i"},"prompt_cache_breakpoint":{"mode":"explicit"}},{"type":"text","text":"C"} ]}`},
		{"X6 image", parts, func(s *furl.Shown) { edit(s, 1, "[image hidden]") },
			`{"role":"user","content":[ {"type":"text","text":"a"} , {"type":"text","text":"[image hidden]","prompt_cache_breakpoint":{"mode":"explicit"}},{"type":"text","text":"c"} ]}`},
		{"first part hidden", parts, func(s *furl.Shown) { hide(s, 0) },
			`{"role":"user","content":[ {"type":"image_url","image_url":{"url":"https://e.com/i"},"prompt_cache_breakpoint":{"mode":"explicit"}},{"type":"text","text":"c"} ]}`},
		{"last part hidden", parts, func(s *furl.Shown) { hide(s, 2) },
			`{"role":"user","content":[ {"type":"text","text":"a"} , {"type":"image_url","image_url":{"url":"https://e.com/i"},"prompt_cache_breakpoint":{"mode":"explicit"}} ]}`},
		{"all hidden", parts, func(s *furl.Shown) { hide(s, 0, 1, 2) }, ""},
		{"thinking hidden", calls, func(s *furl.Shown) { hide(s, 0) }, strings.Replace(calls, `"reasoning_content":"so",`, "", 1)},
		{"text hidden", calls, func(s *furl.Shown) { hide(s, 1) }, strings.Replace(calls, `"content":"hm"`, `"content":null`, 1)},
		{"calls hidden", calls, func(s *furl.Shown) { hide(s, 2, 3) }, `{"role":"assistant","content":"hm","reasoning_content":"so","x":1.0}`},
		{"one call hidden", calls, func(s *furl.Shown) { hide(s, 3) },
			`{"role":"assistant","content":"hm","reasoning_content":"so","tool_calls":[ {"id":"c1","type":"function","function":{"name":"f","arguments":"{\"path\":\"a\"}"},"extra_content":{"google":{"thought_signature":"QUJD"}}} ],"x":1.0}`},
		{"X5 arguments", calls, func(s *furl.Shown) { edit(s, 2, `{"path":"[shortened]"}`) },
			strings.Replace(calls, `"{\"path\":\"a\"}"`, `"{\"path\":\"[shortened]\"}"`, 1)},
		{"X5 arguments that are not JSON", calls, func(s *furl.Shown) { edit(s, 2, `shortened "x"`) },
			strings.Replace(calls, `"{\"path\":\"a\"}"`, `"{\"furl_shortened\":\"shortened \\\"x\\\"\"}"`, 1)},
		{"X5 arguments that are not an object", calls, func(s *furl.Shown) { edit(s, 2, `[1]`) },
			strings.Replace(calls, `"{\"path\":\"a\"}"`, `"{\"furl_shortened\":\"[1]\"}"`, 1)},
		{"X5 free-form input, given as JSON", calls, func(s *furl.Shown) { edit(s, 3, `"short\n"`) }, strings.Replace(calls, `"text"}}`, `"short\n"}}`, 1)},
		{"X5 free-form input, given as text", calls, func(s *furl.Shown) { edit(s, 3, `short "1"`) }, strings.Replace(calls, `"text"}}`, `"short \"1\""}}`, 1)},
		{"X5 arguments that were an object", `{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":{"a":1}}}]}`,
			func(s *furl.Shown) { edit(s, 0, `{"a":2}`) }, `{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":{"a":2}}}]}`},
		{"call of an unknown type", `{"role":"assistant","tool_calls":[{"id":"c","type":"magic","magic":{}}]}`,
			func(s *furl.Shown) { edit(s, 0, `{"a":2}`) }, `{"role":"assistant","tool_calls":[{"id":"c","type":"magic","magic":{}}]}`},
		{"X5 legacy call", `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`,
			func(s *furl.Shown) { edit(s, 0, `{"a":2}`) }, `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"a\":2}"}}`},
		{"legacy call hidden", `{"role":"assistant","content":"a","function_call":{"name":"f","arguments":"{}"}}`,
			func(s *furl.Shown) { hide(s, 1) }, `{"role":"assistant","content":"a"}`},
		{"M8 result", `{"role":"tool","name":"f","tool_call_id":"c1","content":"long"}`, func(s *furl.Shown) { edit(s, 0, "[masked]") },
			`{"role":"tool","name":"f","tool_call_id":"c1","content":"[masked]"}`},
		{"M8 result in parts", `{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"long"},{"type":"text","text":"er"}]}`, func(s *furl.Shown) { edit(s, 0, "[masked]") },
			`{"role":"tool","tool_call_id":"c1","content":"[masked]"}`},
		{"M8 marked result", `{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"long","cache_control":{"type":"ephemeral"}}]}`, func(s *furl.Shown) { edit(s, 0, "[masked]") },
			`{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"[masked]","cache_control":{"type":"ephemeral"}}]}`},
		{"result without content", `{"role":"tool","tool_call_id":"c1"}`, func(s *furl.Shown) { edit(s, 0, "x") }, `{"role":"tool","tool_call_id":"c1","content":"x"}`},
		{"result hidden", `{"role":"tool","tool_call_id":"c1","content":"long"}`, func(s *furl.Shown) { hide(s, 0) }, ""},
		{"refusal and audio", `{"role":"assistant","refusal":"no","audio":{"id":"a1"},"content":null}`, func(s *furl.Shown) { edit(s, 0, "[no]") },
			`{"role":"assistant","refusal":"[no]","audio":{"id":"a1"},"content":null}`},
		{"refusal hidden", `{"role":"assistant","refusal":"no","audio":{"id":"a1"},"content":null}`, func(s *furl.Shown) { hide(s, 0) },
			`{"role":"assistant","audio":{"id":"a1"},"content":null}`},
		{"audio hidden", `{"role":"assistant","refusal":"no","audio":{"id":"a1"},"content":null}`, func(s *furl.Shown) { hide(s, 1) },
			`{"role":"assistant","refusal":"no","content":null}`},
		{"null content", `{"role":"assistant","content":null}`, func(s *furl.Shown) { edit(s, 0, "x") }, `{"role":"assistant","content":"x"}`},
		{"no content", `{"role":"assistant"}`, func(s *furl.Shown) { edit(s, 0, "x") }, `{"role":"assistant","content":"x"}`},
		{"the last of two contents", `{"role":"user","content":"a","content":"b"}`, func(s *furl.Shown) { edit(s, 0, "x") }, `{"role":"user","content":"a","content":"x"}`},
		{"a string among the parts", `{"role":"user","content":["a","b"]}`, func(s *furl.Shown) { edit(s, 1, "x"); hide(s, 0) }, `{"role":"user","content":["x"]}`},
		{"several changes", calls, func(s *furl.Shown) { edit(s, 1, "HM"); edit(s, 3, "TEXT"); hide(s, 0, 2) },
			`{"role":"assistant","content":"HM","tool_calls":[ {"id":"c2","type":"custom","custom":{"name":"g","input":"TEXT"}} ],"x":1.0}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := message(t, Chat, tt.raw)
			s := shown(m, 0)
			tt.change(&s)
			got, err := Chat.EncodeMessage(s)
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == "" {
				sameElements(t, got)
				return
			}
			sameElements(t, got, tt.want)
			if string(m.Raw) != tt.raw {
				t.Error("the recorded bytes have changed")
			}
		})
	}
}

const anthropicCall = `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"text","text":"a"},{"type":"tool_use","id":"t1","name":"f","input":{"a":1}}]}`

// foreign is a message of another format with the given blocks.
func foreign(role furl.Role, blocks ...furl.Block) *furl.Message {
	m := &furl.Message{Role: role, Format: furl.FormatAnthropic, Raw: []byte(anthropicCall), Blocks: blocks}
	m.Seal()
	return m
}

func TestChatEncodeForeign(t *testing.T) {
	tests := []struct {
		name string
		msg  *furl.Message
		want []string
	}{
		{"marker", furl.TextMessage(furl.RoleUser, "[3 messages hidden]"), []string{`{"role":"user","content":"[3 messages hidden]"}`}},
		{"system marker", furl.TextMessage(furl.RoleSystem, "note"), []string{`{"role":"system","content":"note"}`}},
		{"two texts", foreign(furl.RoleUser, text("a"), text("b")), []string{`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`}},
		{"thinking, text and calls", foreign(furl.RoleAssistant, furl.Block{Kind: furl.KindThinking, Text: "hm"}, text("a"), call("t1", "f", `{"a": 1}`), call("t2", "g", `"free"`)),
			[]string{`{"role":"assistant","content":"a","tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}},{"id":"t2","type":"function","function":{"name":"g","arguments":"{\"input\":\"free\"}"}}]}`}},
		{"a call alone", foreign(furl.RoleAssistant, call("t1", "f", ``)), []string{`{"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{}"}}]}`}},
		{"broken arguments", foreign(furl.RoleAssistant, call("t1", "f", `{"a`)), []string{`{"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{\"input\":\"{\\\"a\"}"}}]}`}},
		{"results, then text", foreign(furl.RoleUser, result("t1", "one"), result("t2", ""), text("go on")),
			[]string{`{"role":"tool","tool_call_id":"t1","content":"one"}`, `{"role":"tool","tool_call_id":"t2","content":"(no output)"}`, `{"role":"user","content":"go on"}`}},
		{"media", foreign(furl.RoleUser, furl.Block{Kind: furl.KindResult, ID: "t1", Text: "shot", Media: []furl.Media{{Kind: furl.KindImage, Type: "image/png", Width: 2, Height: 3, Bytes: 9}}}, furl.Block{Kind: furl.KindDocument, Media: []furl.Media{{Kind: furl.KindDocument, Type: "application/pdf"}}}),
			[]string{`{"role":"tool","tool_call_id":"t1","content":"shot\n[image, image/png, 2×3 pixels, 9 bytes]"}`, `{"role":"user","content":"[document, application/pdf]"}`}},
		{"opaque with text", foreign(furl.RoleUser, furl.Block{Kind: furl.KindOpaque, Name: "context_compaction", Text: "so far"}), []string{`{"role":"user","content":"so far"}`}},
		{"nothing that can be encoded", foreign(furl.RoleAssistant, furl.Block{Kind: furl.KindThinking, Text: "hm"}, furl.Block{Kind: furl.KindOpaque, Name: "x"}, text("")), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Chat.EncodeMessage(shown(tt.msg, 0))
			if err != nil {
				t.Fatal(err)
			}
			sameElements(t, got, tt.want...)
		})
	}
}

// Edited blocks keep their new text in another format.
func TestChatEncodeForeignEdited(t *testing.T) {
	m := foreign(furl.RoleUser, furl.Block{Kind: furl.KindResult, ID: "t1", Text: "long", Media: []furl.Media{{Kind: furl.KindImage}}})
	s := shown(m, 0)
	edit(&s, 0, "[masked]")
	got, err := Chat.EncodeMessage(s)
	if err != nil {
		t.Fatal(err)
	}
	sameElements(t, got, `{"role":"tool","tool_call_id":"t1","content":"[masked]"}`)
	m = foreign(furl.RoleAssistant, call("t1", "f", `{"a":1}`))
	s = shown(m, 0)
	edit(&s, 0, `{"a":"[shortened]"}`)
	if got, err = Chat.EncodeMessage(s); err != nil {
		t.Fatal(err)
	}
	sameElements(t, got, `{"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{\"a\":\"[shortened]\"}"}}]}`)
}

func TestImagesGoOverToOtherFormats(t *testing.T) {
	raw := `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + onePixel + `"}}]}`
	start := strings.Index(raw, `{"type"`)
	m := &furl.Message{Role: furl.RoleUser, Format: furl.FormatAnthropic, Raw: []byte(raw), Blocks: []furl.Block{
		{Kind: furl.KindImage, Media: []furl.Media{{Kind: furl.KindImage}}, Start: start, End: len(raw) - 2}}}
	url := "data:image/png;base64," + onePixel
	encode := func(c protocol.Codec, m *furl.Message) []json.RawMessage {
		got, err := c.EncodeMessage(shown(m, 0))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	chatForm := `{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + url + `"}}]}`
	itemForm := `{"type":"message","role":"user","content":[{"type":"input_image","image_url":"` + url + `"}]}`
	sameElements(t, encode(Chat, m), chatForm)
	sameElements(t, encode(Responses, m), itemForm)
	sameElements(t, encode(Chat, message(t, Responses, itemForm)), chatForm)
	sameElements(t, encode(Responses, message(t, Chat, chatForm)), itemForm)
	m.Blocks[0].Start, m.Blocks[0].End = 0, 0
	sameElements(t, encode(Chat, m), `{"role":"user","content":"[image]"}`)
}

// A step of Responses is many items; in Chat Completions its calls are one
// message, followed by the results.
func TestEncodeChatJoins(t *testing.T) {
	item := func(raw string) *furl.Message { return message(t, Responses, raw) }
	fc := func(id string) *furl.Message {
		return item(`{"type":"function_call","call_id":"` + id + `","name":"f","arguments":"{}"}`)
	}
	out := func(id string) *furl.Message {
		return item(`{"type":"function_call_output","call_id":"` + id + `","output":"o"}`)
	}
	tool := func(id string) string {
		return `{"id":"` + id + `","type":"function","function":{"name":"f","arguments":"{}"}}`
	}
	own := `{ "role":"user","content":"as it came" }`
	v := viewOf(message(t, Chat, own), item(`{"type":"reasoning","id":"rs_1","summary":[]}`), item(`{"role":"assistant","content":"a"}`), fc("c1"), fc("c2"),
		item(`{"type":"tool_search_output","call_id":"c0","tools":[{"name":"found"}]}`), out("c2"), out("c1"), fc("c3"), out("c3"), item(`{"role":"user","content":"u"}`))
	v.Messages = append(v.Messages, mark("[hidden]"))
	got, err := EncodeChat(v)
	if err != nil {
		t.Fatal(err)
	}
	sameElements(t, got, own,
		`{"role":"assistant","content":"a","tool_calls":[`+tool("c1")+`,`+tool("c2")+`]}`,
		`{"role":"tool","tool_call_id":"c2","content":"o"}`, `{"role":"tool","tool_call_id":"c1","content":"o"}`, `{"role":"user","content":"{\"type\":\"tool_search_output\",\"call_id\":\"c0\",\"tools\":[{\"name\":\"found\"}]}"}`,
		`{"role":"assistant","content":null,"tool_calls":[`+tool("c3")+`]}`, `{"role":"tool","tool_call_id":"c3","content":"o"}`,
		`{"role":"user","content":"u"}`, `{"role":"user","content":"[hidden]"}`)
	elems := make([]string, len(got))
	for i := range got {
		elems[i] = string(got[i])
	}
	if err := Chat.Validate(request(t, Chat, `{"messages":[`+strings.Join(elems, ",")+`]}`), furl.Model{}); err != nil {
		t.Error(err)
	}
}

const chatBody = `{ "model":"m", "temperature":1.0, "seed":12345678901234567890,
  "messages" : [ {"role":"system","content":"s"} ,
    {"role":"user","content":"u\u0041"},
    {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"r"} , {"role":"user","content":"v"}
  ] , "stream":true }`

func TestChatEncodeRequest(t *testing.T) {
	tests := []struct {
		name   string
		change func(v *furl.View)
		want   func(body string) string
	}{
		{"nothing", func(*furl.View) {}, func(b string) string { return b }},
		{"M8 a masked result", func(v *furl.View) { edit(&v.Messages[3], 0, "[masked]") }, func(b string) string { return strings.Replace(b, `"r"`, `"[masked]"`, 1) }},
		{"a step hidden under a marker", func(v *furl.View) { v.Messages = append(v.Messages[:2:2], mark("[2 hidden]"), v.Messages[4]) },
			func(b string) string {
				i, j := strings.Index(b, `,"tool_calls"`), strings.Index(b, ` , {"role":"user","content":"v"`)
				i = strings.LastIndex(b[:i], `{"role"`)
				return strings.TrimRight(b[:i], " \n,") + `,{"role":"user","content":"[2 hidden]"}` + b[j:]
			}},
		{"a marker at the start", func(v *furl.View) { v.Messages = append([]furl.Shown{mark("m")}, v.Messages...) },
			func(b string) string {
				return strings.Replace(b, `[ {"role":"system"`, `[ {"role":"user","content":"m"},{"role":"system"`, 1)
			}},
		{"a marker at the end", func(v *furl.View) { v.Messages = append(v.Messages, mark("m")) },
			func(b string) string {
				return strings.Replace(b, `"v"}`, `"v"},{"role":"user","content":"m"}`, 1)
			}},
		{"nothing shown", func(v *furl.View) { v.Messages = nil }, func(b string) string {
			i, j := strings.Index(b, `[ {"role"`), strings.LastIndex(b, `]`)
			return b[:i+1] + b[j:]
		}},
		{"only markers", func(v *furl.View) { v.Messages = []furl.Shown{mark("m")} }, func(b string) string {
			i, j := strings.Index(b, `[ {"role"`), strings.LastIndex(b, `]`)
			return b[:i+2] + `{"role":"user","content":"m"}` + "\n  " + b[j:]
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := request(t, Chat, chatBody)
			v := identity(req)
			tt.change(v)
			got, err := Chat.EncodeRequest(req, v)
			if err != nil {
				t.Fatal(err)
			}
			if want := tt.want(chatBody); string(got) != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if same := &got[0] == &req.Body[0]; same != (tt.name == "nothing") {
				t.Errorf("returned the body itself: %v", same)
			}
			if _, err := Chat.DecodeRequest(got); err != nil {
				t.Error(err)
			}
		})
	}
}

// A view is made of the recorded messages; a client need not have sent the
// recorded reasoning.
func TestChatEncodeRequestWithoutRecordedThinking(t *testing.T) {
	recorded := message(t, Chat, `{"role":"assistant","reasoning_content":"hm","content":"long words","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`)
	req := request(t, Chat, `{"messages":[{"role":"assistant","content":"long words","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}]}`)
	v := viewOf(recorded)
	got, err := Chat.EncodeRequest(req, v)
	if err != nil || string(got) != string(req.Body) {
		t.Fatalf("got %s, %v", got, err)
	}
	edit(&v.Messages[0], 1, "short")
	hide(&v.Messages[0], 0)
	if got, err = Chat.EncodeRequest(req, v); err != nil || !strings.Contains(string(got), `"content":"short","tool_calls"`) {
		t.Errorf("got %s, %v", got, err)
	}
	v = viewOf(message(t, Chat, `{"role":"assistant","content":"other"}`))
	edit(&v.Messages[0], 0, "x")
	if _, err = Chat.EncodeRequest(req, v); err == nil {
		t.Error("a message recorded with other blocks was accepted as the request's")
	}
}

func TestEncodeRequestErrors(t *testing.T) {
	req := request(t, Chat, chatBody)
	tests := []struct {
		name   string
		change func(req *protocol.Request, v *furl.View)
	}{
		{"out of order", func(_ *protocol.Request, v *furl.View) { v.Messages[0], v.Messages[1] = v.Messages[1], v.Messages[0] }},
		{"twice", func(_ *protocol.Request, v *furl.View) { v.Messages = append(v.Messages, v.Messages[4]) }},
		{"beyond the request", func(_ *protocol.Request, v *furl.View) { v.Messages[4].Index = 5 }},
		{"no offsets", func(r *protocol.Request, _ *furl.View) { r.Offsets = nil }},
		{"offsets outside", func(r *protocol.Request, _ *furl.View) { r.Offsets = []int{1, 2, 3, 4, 1 << 30} }},
		{"blocks out of order", func(_ *protocol.Request, v *furl.View) {
			s := &v.Messages[4]
			s.Blocks = append(s.Blocks, s.Blocks[0])
		}},
	}
	for _, tt := range tests {
		r, v := *req, identity(req)
		tt.change(&r, v)
		if got, err := Chat.EncodeRequest(&r, v); err == nil {
			t.Errorf("%s: got %s, want an error", tt.name, got)
		}
	}
}

func TestChatNewMessage(t *testing.T) {
	tests := []struct {
		name   string
		role   furl.Role
		blocks []furl.Block
		want   string // "": an error
	}{
		{"words", furl.RoleUser, []furl.Block{text("a")}, `{"role":"user","content":"a"}`},
		{"a step", furl.RoleAssistant, []furl.Block{{Kind: furl.KindThinking, Text: "hm"}, text("a"), call("c1", "f", `{"x":1}`)},
			`{"role":"assistant","content":"a","reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]}`},
		{"thinking alone", furl.RoleAssistant, []furl.Block{{Kind: furl.KindThinking, Text: "hm"}}, `{"role":"assistant","reasoning_content":"hm"}`},
		{"a result", furl.RoleTool, []furl.Block{{Kind: furl.KindResult, ID: "c1", Text: "went wrong", Error: true}}, `{"role":"tool","tool_call_id":"c1","content":"went wrong"}`},
		{"two results", furl.RoleTool, []furl.Block{result("c1", "a"), result("c2", "b")}, ""},
		{"nothing", furl.RoleUser, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Chat.NewMessage(tt.role, tt.blocks)
			if tt.want == "" {
				if err == nil {
					t.Errorf("got %s, want an error", m.Raw)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(m.Raw) != tt.want || m.Role != tt.role || m.Format != furl.FormatChat {
				t.Errorf("got %s\nwant %s", m.Raw, tt.want)
			}
			sameBlocks(t, m.Blocks, tt.blocks)
		})
	}
}
