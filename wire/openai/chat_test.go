package openai

import (
	"errors"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

func TestChatDecodeMessage(t *testing.T) {
	tests := []struct {
		name, raw string
		role      furl.Role
		want      []furl.Block
	}{
		{"string", `{"role":"user","content":"a \"b\" \u00e9 \ud83d\ude00"}`, furl.RoleUser, []furl.Block{text("a \"b\" é 😀")}},
		{"system", `{"role":"system","content":"be brief"}`, furl.RoleSystem, []furl.Block{text("be brief")}},
		{"developer", `{"role":"developer","content":"be brief"}`, furl.RoleDeveloper, []furl.Block{text("be brief")}},
		{"parts", `{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"https://example.com/cat.png"}}]}`, furl.RoleUser,
			[]furl.Block{text("look"), {Kind: furl.KindImage, Media: []furl.Media{{Kind: furl.KindImage, Bytes: 27}}}}},
		{"data URL", `{"role":"user","content":[{"type":"image_url","image_url":{"detail":"low","url":"data:image/png;base64,` + onePixel + `"}}]}`, furl.RoleUser,
			[]furl.Block{{Kind: furl.KindImage, Media: []furl.Media{{Kind: furl.KindImage, Type: "image/png", Bytes: len(onePixel), Width: 1, Height: 2}}}}},
		{"data URL without a type", `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:;base64,` + onePixel + `"}}]}`, furl.RoleUser,
			[]furl.Block{{Kind: furl.KindImage, Media: []furl.Media{{Kind: furl.KindImage, Type: "image/png", Bytes: len(onePixel), Width: 1, Height: 2}}}}},
		{"file and audio", `{"role":"user","content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,JVBERi0=","filename":"a.pdf"}},{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}},{"type":"file","file":{"file_id":"file-1"}}]}`, furl.RoleUser,
			[]furl.Block{
				{Kind: furl.KindDocument, Media: []furl.Media{{Kind: furl.KindDocument, Type: "application/pdf", Bytes: 8}}},
				{Kind: furl.KindDocument, Media: []furl.Media{{Kind: furl.KindDocument, Type: "audio/wav", Bytes: 8}}},
				{Kind: furl.KindDocument, Media: []furl.Media{{Kind: furl.KindDocument, Bytes: 6}}},
			}},
		{"cache breakpoint", `{"role":"user","content":[{"type":"text","text":"a","prompt_cache_breakpoint":{"mode":"explicit"}},{"type":"text","text":"b","cache_control":null}]}`, furl.RoleUser,
			[]furl.Block{{Kind: furl.KindText, Text: "a", CacheMark: true}, text("b")}},
		{"unknown part", `{"role":"user","content":[{"type":"video","url":"https://example.com/v","notes":["x",{"y":"z"}],"data":"QUJD"}]}`, furl.RoleUser,
			[]furl.Block{{Kind: furl.KindOpaque, Name: "video", Text: "https://example.com/v\nx\nz", Signature: 4}}},
		{"a string among the parts", `{"role":"user","content":["a",{"type":"text","text":"b"}]}`, furl.RoleUser, []furl.Block{text("a"), text("b")}},
		{"calls", `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"n\": 1.0}"}},{"id":"c2","type":"function","function":{"name":"g","arguments":""}}]}`, furl.RoleAssistant,
			[]furl.Block{call("c1", "f", `{"n": 1.0}`), call("c2", "g", `""`)}},
		{"broken arguments", `{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"n\": "}}]}`, furl.RoleAssistant,
			[]furl.Block{call("c1", "f", `"{\"n\": "`)}},
		{"arguments that are an object", `{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":{"n":1}}}]}`, furl.RoleAssistant,
			[]furl.Block{call("c1", "f", `{"n":1}`)}},
		{"no arguments", `{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f"}}]}`, furl.RoleAssistant,
			[]furl.Block{call("c1", "f", `{}`)}},
		{"free-form call", `{"role":"assistant","tool_calls":[{"id":"c1","type":"custom","custom":{"name":"patch","input":"{\"a\":1}"}}]}`, furl.RoleAssistant,
			[]furl.Block{call("c1", "patch", `"{\"a\":1}"`)}},
		{"call of an unknown type", `{"role":"assistant","tool_calls":[{"id":"c1","type":"magic","magic":{"a":1}}]}`, furl.RoleAssistant,
			[]furl.Block{fixed(call("c1", "magic", `{"id":"c1","type":"magic","magic":{"a":1}}`))}},
		{"legacy call", `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`, furl.RoleAssistant,
			[]furl.Block{call("function:f", "f", `{}`)}},
		{"legacy result", `{"role":"function","name":"f","content":"done"}`, furl.RoleTool, []furl.Block{result("function:f", "done")}},
		{"all of an assistant's", `{"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}],"audio":{"id":"audio_1"},"refusal":"no","content":"words","reasoning_content":"hm","role":"assistant"}`, furl.RoleAssistant,
			[]furl.Block{{Kind: furl.KindThinking, Text: "hm"}, text("words"), text("no"), {Kind: furl.KindOpaque, Name: "audio", ID: "audio_1"}, call("c1", "f", `{}`)}},
		{"refusal part", `{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`, furl.RoleAssistant, []furl.Block{text("no")}},
		{"reasoning with details", `{"role":"assistant","content":"a","reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm"},{"type":"reasoning.encrypted","data":"QUJDRA=="}]}`, furl.RoleAssistant,
			[]furl.Block{{Kind: furl.KindThinking, Text: "hm"}, {Kind: furl.KindThinking, Signature: 8}, text("a")}},
		{"details alone", `{"role":"assistant","content":"a","reasoning":null,"reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"QUJD"}]}`, furl.RoleAssistant,
			[]furl.Block{{Kind: furl.KindThinking, Text: "hm", Signature: 4}, text("a")}},
		{"no reasoning", `{"role":"assistant","content":"a","reasoning_content":"","reasoning_details":[ ]}`, furl.RoleAssistant, []furl.Block{text("a")}},
		{"empty content next to a call", `{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`, furl.RoleAssistant,
			[]furl.Block{call("c1", "f", `{}`)}},
		{"nothing", `{"role":"assistant","content":null}`, furl.RoleAssistant, []furl.Block{text("")}},
		{"result", `{"role":"tool","tool_call_id":"c1","content":"42"}`, furl.RoleTool, []furl.Block{result("c1", "42")}},
		{"result in parts", `{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"a"},{"type":"text","text":"b","prompt_cache_breakpoint":{"mode":"explicit"}}]}`, furl.RoleTool,
			[]furl.Block{{Kind: furl.KindResult, ID: "c1", Text: "a\nb", CacheMark: true}}},
		{"A6 failed result", `{"role":"tool","tool_call_id":"c1","content":"Exit code: 1\nWall time: 0.1 seconds\nOutput:\nno such file"}`, furl.RoleTool,
			[]furl.Block{{Kind: furl.KindResult, ID: "c1", Text: "Exit code: 1\nWall time: 0.1 seconds\nOutput:\nno such file", Error: true}}},
		{"last of duplicate keys", `{"role":"user","content":[{"type":"text","text":"a"}],"content":"b","role":"assistant","tool_calls":[{"id":"c1"}],"tool_calls":null}`, furl.RoleAssistant, []furl.Block{text("b")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := message(t, Chat, tt.raw)
			if m.Role != tt.role || m.Format != furl.FormatChat || string(m.Raw) != tt.raw {
				t.Errorf("got role %q, format %q, raw %s", m.Role, m.Format, m.Raw)
			}
			sameBlocks(t, m.Blocks, tt.want)
			if m.Digest.IsZero() {
				t.Error("not sealed")
			}
		})
	}
}

// Start and End delimit parts and calls in Raw, wherever the message is in
// the body.
func TestChatOffsets(t *testing.T) {
	elem := ` { "role" : "assistant" , "content" : [ {"type":"text","text":"a"} , {"type":"text","text":"b"} ] , ` +
		`"tool_calls" : [ {"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}} ] } `
	want := []string{`{"type":"text","text":"a"}`, `{"type":"text","text":"b"}`, `{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}`}
	req := request(t, Chat, `{"model":"m","messages":[`+elem+`,`+elem+`]}`)
	messages := []*furl.Message{&req.Messages[0], &req.Messages[1], message(t, Chat, elem)}
	for i, m := range messages {
		if string(m.Raw) != strings.TrimSpace(elem) {
			t.Fatalf("message %d: raw is %q", i, m.Raw)
		}
		for j, b := range m.Blocks {
			if got := string(m.Raw[b.Start:b.End]); got != want[j] {
				t.Errorf("message %d block %d is at %q, want %q", i, j, got, want[j])
			}
		}
		if m.Digest != messages[2].Digest {
			t.Errorf("message %d: the digest depends on the position", i)
		}
	}
	if at := req.Offsets[1]; string(req.Body[at:at+len(req.Messages[1].Raw)]) != strings.TrimSpace(elem) {
		t.Errorf("offset %d is not where the second message is", at)
	}
	if &req.Messages[0].Raw[0] != &req.Body[req.Offsets[0]] {
		t.Error("raw does not alias the body")
	}
}

func TestChatDecodeRequest(t *testing.T) {
	req := request(t, Chat, ` { "model" : "gpt-5" , "stream" : true , "max_tokens" : 7 , "max_completion_tokens" : 4096 , "seed" : 12345678901234567890 ,
		"tools" : [ {"type":"function","function":{"name":"f","parameters":{}}} ] , "functions" : [ {"name":"g"} ] ,
		"messages" : [ {"role":"system","content":"s"} , {"role":"user","content":"u"} ] } `)
	if req.Format != furl.FormatChat || req.Model != "gpt-5" || !req.Stream || req.MaxTokens != 4096 || len(req.Messages) != 2 {
		t.Errorf("got %+v", req)
	}
	sameBlocks(t, req.Preamble, []furl.Block{
		{Kind: furl.KindOpaque, Name: "function", ID: "f", Text: `{"type":"function","function":{"name":"f","parameters":{}}}`},
		{Kind: furl.KindOpaque, Name: "function", ID: "g", Text: `{"name":"g"}`},
	})
	if req := request(t, Chat, `{"messages":[],"max_tokens":7}`); req.MaxTokens != 7 {
		t.Errorf("max_tokens alone gives %d, want 7", req.MaxTokens)
	}
}

func TestChatPreambleDigest(t *testing.T) {
	digest := func(body string) furl.Digest { return request(t, Chat, body).PreambleDigest }
	base := digest(`{"tools":[{"type":"function","function":{"name":"f"}}],"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"}]}`)
	tests := []struct {
		name, body string
		same       bool
	}{
		{"another text of the user", `{"tools":[{"type":"function","function":{"name":"f"}}],"messages":[{"role":"system","content":"s"},{"role":"user","content":"v"}]}`, true},
		{"spacing and the form of content", `{"tools":[ {"type": "function", "function": {"name":"f"}} ],"messages":[{"role":"system","content":[{"type":"text","text":"s"}]}]}`, true},
		{"another system prompt", `{"tools":[{"type":"function","function":{"name":"f"}}],"messages":[{"role":"system","content":"t"}]}`, false},
		{"another tool", `{"tools":[{"type":"function","function":{"name":"g"}}],"messages":[{"role":"system","content":"s"}]}`, false},
		{"no tools", `{"messages":[{"role":"system","content":"s"}]}`, false},
	}
	for _, tt := range tests {
		if got := digest(tt.body) == base; got != tt.same {
			t.Errorf("%s: same digest: %v, want %v", tt.name, got, tt.same)
		}
	}
}

// Changes by clients that do not change the meaning do not change the digest.
func TestChatDigest(t *testing.T) {
	tests := []struct{ name, a, b string }{
		{"key order", `{"role":"assistant","content":"a","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1,\"b\":2}"}}]}`,
			`{"tool_calls":[{"function":{"arguments":"{ \"b\": 2, \"a\": 1 }","name":"f"},"id":"c"}],"content":"a","role":"assistant"}`},
		{"string and parts", `{"role":"user","content":"a"}`, `{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}`},
		{"null and empty content", `{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}`,
			`{"role":"assistant","content":"","refusal":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}`},
		{"thinking", `{"role":"assistant","content":"a","reasoning_content":"hm"}`, `{"role":"assistant","content":"a"}`},
		{"a cleared result", `{"role":"tool","tool_call_id":"c","content":"all of it"}`, `{"role":"tool","tool_call_id":"c","content":"[cleared]"}`},
	}
	for _, tt := range tests {
		if message(t, Chat, tt.a).Digest != message(t, Chat, tt.b).Digest {
			t.Errorf("%s: the digests differ", tt.name)
		}
	}
	if message(t, Chat, `{"role":"user","content":"a"}`).Digest == message(t, Chat, `{"role":"user","content":"b"}`).Digest {
		t.Error("another text has the same digest")
	}
}

func TestDecodeErrors(t *testing.T) {
	deep := strings.Repeat("[", rawjson.MaxDepth+1) + strings.Repeat("]", rawjson.MaxDepth+1)
	tests := []struct {
		name   string
		codec  protocol.Codec
		body   string
		offset int
	}{
		{"nothing", Chat, ``, 0},
		{"no object", Chat, `[]`, 0},
		{"cut off", Chat, `{"messages":[{"role":"user","content":"abc`, 38},
		{"messages of another type", Chat, `{"messages":{}}`, 12},
		{"a message that is none", Chat, `{"messages":["a"]}`, 13},
		{"a call that is none", Chat, `{"messages":[{"tool_calls":[1]}]}`, 28},
		{"trailing bytes", Chat, `{"messages":[]} x`, 16},
		{"too deep", Chat, `{"x":` + deep + `}`, 5 + rawjson.MaxDepth - 1},
		{"input of another type", Responses, `{"input":{}}`, 9},
		{"an item that is none", Responses, `{"input":[1]}`, 10},
		{"cut off", Responses, `{"input":[{"type":"message"`, 27},
		{"too deep", Responses, `{"x":` + deep + `}`, 5 + rawjson.MaxDepth - 1},
	}
	for _, tt := range tests {
		t.Run(string(tt.codec.Format())+"/"+tt.name, func(t *testing.T) {
			_, err := tt.codec.DecodeRequest([]byte(tt.body))
			var at *rawjson.Error
			if !errors.As(err, &at) || at.Offset != tt.offset {
				t.Errorf("got %v, want an error at offset %d", err, tt.offset)
			}
		})
	}
	// The maximum depth.
	deep = strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	request(t, Chat, `{"messages":[{"role":"user","content":[{"type":"x","v":`+deep+`}]}]}`)
	request(t, Responses, `{"input":[{"type":"x","v":`+deep+`}]}`)
}
