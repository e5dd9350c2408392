package openai

import (
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

func TestResponsesDecodeMessage(t *testing.T) {
	think := func(id, text string, signature int) furl.Block {
		return furl.Block{Kind: furl.KindThinking, ID: id, Text: text, Signature: signature}
	}
	opaque := func(name, id, text string, signature int) furl.Block {
		return furl.Block{Kind: furl.KindOpaque, Name: name, ID: id, Text: text, Signature: signature}
	}
	failed := func(id, text string) furl.Block {
		return furl.Block{Kind: furl.KindResult, ID: id, Text: text, Error: true}
	}
	tests := []struct {
		name, raw string
		role      furl.Role
		want      []furl.Block
	}{
		{"an input that is a string", `"hel\u006co"`, furl.RoleUser, []furl.Block{text("hello")}},
		{"message", `{"type":"message","role":"developer","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]}`, furl.RoleDeveloper, []furl.Block{text("a"), text("b")}},
		{"no type", `{"role":"assistant","content":"a"}`, furl.RoleAssistant, []furl.Block{text("a")}},
		{"no role", `{"content":"a"}`, furl.RoleUser, []furl.Block{text("a")}},
		{"no content", `{"role":"user","content":[]}`, furl.RoleUser, []furl.Block{text("")}},
		{"output parts", `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"a","annotations":[]},{"type":"refusal","refusal":"no"}]}`, furl.RoleAssistant, []furl.Block{text("a"), text("no")}},
		{"media", `{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,` + onePixel + `"},{"type":"input_image","file_id":"file-1","image_url":null},{"type":"input_file","file_url":"https://e.com/a.pdf"},{"type":"input_text","text":"x","prompt_cache_breakpoint":{"mode":"explicit"}}]}`, furl.RoleUser,
			[]furl.Block{
				{Kind: furl.KindImage, Media: []furl.Media{{Kind: furl.KindImage, Type: "image/png", Bytes: len(onePixel), Width: 1, Height: 2}}},
				{Kind: furl.KindImage, Media: []furl.Media{{Kind: furl.KindImage, Bytes: 6}}},
				{Kind: furl.KindDocument, Media: []furl.Media{{Kind: furl.KindDocument, Bytes: 19}}},
				{Kind: furl.KindText, Text: "x", CacheMark: true},
			}},
		{"reasoning", `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"content":[{"type":"reasoning_text","text":"c"}],"encrypted_content":"QUJDRA=="}`, furl.RoleAssistant,
			[]furl.Block{think("rs_1", "a\n\nb\n\nc", 8)}},
		{"reasoning withheld", `{"summary":[],"type":"reasoning","encrypted_content":null}`, furl.RoleAssistant, []furl.Block{think("", "", 0)}},
		{"function call", `{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{\"a\": 1.0}","status":"completed"}`, furl.RoleAssistant, []furl.Block{call("c1", "f", `{"a": 1.0}`)}},
		{"function call, broken", `{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a"}`, furl.RoleAssistant, []furl.Block{call("c1", "f", `"{\"a"`)}},
		{"function call, bare", `{"type":"function_call","call_id":"c1","name":"f"}`, furl.RoleAssistant, []furl.Block{call("c1", "f", `{}`)}},
		{"custom call", `{"type":"custom_tool_call","call_id":"c1","name":"apply_patch","input":"*** Begin\n"}`, furl.RoleAssistant, []furl.Block{call("c1", "apply_patch", `"*** Begin\n"`)}},
		{"local shell call", `{"type":"local_shell_call","id":"ls_1","call_id":"c1","action":{"type":"exec","command":["ls"],"env":{}},"status":"completed"}`, furl.RoleAssistant, []furl.Block{call("c1", "local_shell", `{"type":"exec","command":["ls"],"env":{}}`)}},
		{"local shell call by its id", `{"type":"local_shell_call","id":"ls_1","action":{"type":"exec","command":["ls"]}}`, furl.RoleAssistant, []furl.Block{call("ls_1", "local_shell", `{"type":"exec","command":["ls"]}`)}},
		{"shell call", `{"type":"shell_call","call_id":"c1","action":{"commands":["ls"]}}`, furl.RoleAssistant, []furl.Block{call("c1", "shell", `{"commands":["ls"]}`)}},
		{"patch call", `{"type":"apply_patch_call","call_id":"c1","operation":{"type":"delete_file","path":"a"}}`, furl.RoleAssistant, []furl.Block{call("c1", "apply_patch", `{"type":"delete_file","path":"a"}`)}},
		{"output", `{"type":"function_call_output","call_id":"c1","output":"42"}`, furl.RoleTool, []furl.Block{result("c1", "42")}},
		{"output in parts", `{"type":"custom_tool_call_output","call_id":"c1","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"https://e.com/i"},{"type":"input_text","text":"b"}]}`, furl.RoleTool,
			[]furl.Block{{Kind: furl.KindResult, ID: "c1", Text: "a\nb", Media: []furl.Media{{Kind: furl.KindImage, Bytes: 15}}}}},
		{"A6 output of a failed process", `{"type":"function_call_output","call_id":"c1","output":"Chunk ID: 0a\nProcess exited with code 1\nOutput:\n"}`, furl.RoleTool, []furl.Block{failed("c1", "Chunk ID: 0a\nProcess exited with code 1\nOutput:\n")}},
		{"local shell output", `{"type":"local_shell_call_output","id":"ls_1","output":"{\"exit_code\":0}"}`, furl.RoleTool, []furl.Block{result("ls_1", `{"exit_code":0}`)}},
		{"A6 shell output", `{"type":"shell_call_output","call_id":"c1","output":[{"stdout":"a\n","stderr":"b","outcome":{"type":"exit","exit_code":0}},{"stdout":"","stderr":"c","outcome":{"type":"exit","exit_code":2}}]}`, furl.RoleTool, []furl.Block{failed("c1", "a\nb\nc")}},
		{"A6 shell output out of time", `{"type":"shell_call_output","call_id":"c1","output":[{"stdout":"a","stderr":"","outcome":{"type":"timeout"}}]}`, furl.RoleTool, []furl.Block{failed("c1", "a")}},
		{"A6 patch output", `{"type":"apply_patch_call_output","call_id":"c1","status":"failed","output":"no such line"}`, furl.RoleTool, []furl.Block{failed("c1", "no such line")}},
		{"patch output without text", `{"type":"apply_patch_call_output","call_id":"c1","status":"completed"}`, furl.RoleTool, []furl.Block{result("c1", "")}},
		{"compaction", `{"type":"compaction","id":"cmp_1","encrypted_content":"QUJDRA=="}`, furl.RoleSystem, []furl.Block{opaque("compaction", "cmp_1", "", 8)}},
		{"compaction trigger", `{"type":"compaction_trigger"}`, furl.RoleUser, []furl.Block{opaque("compaction_trigger", "", "", 0)}},
		{"reference", `{"type":"item_reference","id":"rs_1"}`, furl.RoleAssistant, []furl.Block{opaque("item_reference", "rs_1", "", 0)}},
		{"web search", `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"go iterators"}}`, furl.RoleAssistant, []furl.Block{opaque("web_search_call", "ws_1", "go iterators", 0)}},
		{"tool search", `{"type":"tool_search_output","call_id":"c1","tools":[{"name":"found"}]}`, furl.RoleTool, []furl.Block{half(furl.HalfAnswer, fixed(opaque("tool_search_output", "c1", `{"type":"tool_search_output","call_id":"c1","tools":[{"name":"found"}]}`, 0)))}},
		{"approval", `{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}`, furl.RoleTool, []furl.Block{half(furl.HalfAnswer, opaque("mcp_approval_response", "mcpr_1", "mcpr_1", 0))}},
		{"screenshot", `{"type":"computer_call_output","call_id":"c1","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,` + onePixel + `"}}`, furl.RoleTool,
			[]furl.Block{{Kind: furl.KindOpaque, Half: furl.HalfAnswer, Name: "computer_call_output", ID: "c1", Media: []furl.Media{{Kind: furl.KindImage, Type: "image/png", Bytes: len(onePixel), Width: 1, Height: 2}}}}},
		{"generated image", `{"type":"image_generation_call","id":"ig_1","status":"completed","result":"` + onePixel + `"}`, furl.RoleAssistant,
			[]furl.Block{{Kind: furl.KindOpaque, Name: "image_generation_call", ID: "ig_1", Media: []furl.Media{{Kind: furl.KindImage, Type: "image/png", Bytes: len(onePixel), Width: 1, Height: 2}}}}},
		{"program", `{"type":"program","id":"prog_1","call_id":"p1","code":"x()","fingerprint":"f1"}`, furl.RoleAssistant, []furl.Block{half(furl.HalfCall, opaque("program", "p1", "x()\nf1", 0))}},
		{"call by a program", `{"type":"function_call","call_id":"c1","name":"f","arguments":"{}","caller":{"type":"program","caller_id":"p1"}}`, furl.RoleAssistant, []furl.Block{{Kind: furl.KindCall, ID: "c1", Name: "f", Args: []byte("{}"), Caller: "p1"}}},
		{"program output", `{"type":"program_output","id":"out_1","call_id":"p1","result":"done","status":"completed"}`, furl.RoleAssistant, []furl.Block{half(furl.HalfAnswer, opaque("program_output", "p1", "done", 0))}},
		{"program output that is an object", `{"type":"program_output","call_id":"p1","result":{"files":["a.go"],"n": 2}}`, furl.RoleAssistant, []furl.Block{half(furl.HalfAnswer, opaque("program_output", "p1", `{"files":["a.go"],"n": 2}`, 0))}},
		{"program output that is a number", `{"type":"program_output","call_id":"p1","result":1234567}`, furl.RoleAssistant, []furl.Block{half(furl.HalfAnswer, opaque("program_output", "p1", "1234567", 0))}},
		{"program output with an image", `{"type":"program_output","call_id":"p1","result":[{"type":"text","text":"seen"},{"image_url":"data:image/png;base64,QUJD"}]}`, furl.RoleAssistant, []furl.Block{half(furl.HalfAnswer, opaque("program_output", "p1", "seen", 26))}},
		{"program output that is null", `{"type":"program_output","call_id":"p1","result":null}`, furl.RoleAssistant, []furl.Block{half(furl.HalfAnswer, opaque("program_output", "p1", "", 0))}},
		{"a search that the provider runs", `{"type":"tool_search_call","id":"tsc_1","execution":"server","call_id":null,"status":"completed","arguments":{"q":"x"}}`, furl.RoleAssistant, []furl.Block{opaque("tool_search_call", "tsc_1", "server\nx", 0)}},
		{"a type of the future", `{"type":"thing","id":"th_1","deep":{"deeper":["words"]},"n":1}`, "", []furl.Block{fixed(opaque("thing", "th_1", "words", 0))}},
		{"a type of the future with a role", `{"type":"thing","id":"th_1","role":"developer"}`, furl.RoleDeveloper, []furl.Block{fixed(opaque("thing", "th_1", "", 0))}},
		{"tools in the list", `{"type":"additional_tools","role":"developer","tools":[]}`, furl.RoleDeveloper, []furl.Block{fixed(opaque("additional_tools", "", `{"type":"additional_tools","role":"developer","tools":[]}`, 0))}},
		{"message of an agent", `{"type":"agent_message","author":"/a","recipient":"/b","content":[]}`, "", []furl.Block{fixed(opaque("agent_message", "", "/a\n/b", 0))}},
		{"last of duplicate keys", `{"type":"reasoning","type":"message","role":"user","content":"a","content":[{"type":"input_text","text":"b"}]}`, furl.RoleUser, []furl.Block{text("b")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := message(t, Responses, tt.raw)
			if m.Role != tt.role || m.Format != furl.FormatResponses || string(m.Raw) != tt.raw {
				t.Errorf("got role %q, format %q, raw %s", m.Role, m.Format, m.Raw)
			}
			sameBlocks(t, m.Blocks, tt.want)
			// The same in a request.
			body := `{"input" : [ ` + tt.raw + ` ] }`
			if tt.raw[0] == '"' {
				body = `{"input" : ` + tt.raw + ` }`
			}
			req := request(t, Responses, body)
			if len(req.Messages) != 1 || req.Messages[0].Digest != m.Digest || string(req.Messages[0].Raw) != tt.raw {
				t.Errorf("in a request it decodes to %+v", req.Messages)
			}
			if at := req.Offsets[0]; body[at:at+len(tt.raw)] != tt.raw {
				t.Errorf("offset %d is not where the item is", at)
			}
		})
	}
}

func TestResponsesOffsets(t *testing.T) {
	elem := ` {"type":"message" , "role" : "user" , "content" : [ {"type":"input_text","text":"a"} , {"type":"input_text","text":"b"} ] } `
	req := request(t, Responses, `{"input":[`+elem+`,`+elem+`,{"type":"function_call","call_id":"c"} ]}`)
	for i := range 2 {
		m := &req.Messages[i]
		for j, want := range []string{`{"type":"input_text","text":"a"}`, `{"type":"input_text","text":"b"}`} {
			if b := m.Blocks[j]; string(m.Raw[b.Start:b.End]) != want {
				t.Errorf("item %d block %d is at %q, want %q", i, j, m.Raw[b.Start:b.End], want)
			}
		}
	}
	if m := &req.Messages[2]; m.Blocks[0].Start != 0 || m.Blocks[0].End != len(m.Raw) {
		t.Errorf("a call is at %d to %d of its item", m.Blocks[0].Start, m.Blocks[0].End)
	}
}

func TestResponsesDecodeRequest(t *testing.T) {
	req := request(t, Responses, `{"model":"gpt-5","instructions":"be brief","max_output_tokens":9,"stream":true,"tools":[{"type":"function","name":"f"},{"type":"web_search"}],"input":"hi"}`)
	if req.Model != "gpt-5" || !req.Stream || req.MaxTokens != 9 || len(req.Messages) != 1 {
		t.Errorf("got %+v", req)
	}
	sameBlocks(t, req.Preamble, []furl.Block{
		text("be brief"),
		{Kind: furl.KindOpaque, Name: "function", ID: "f", Text: `{"type":"function","name":"f"}`},
		{Kind: furl.KindOpaque, Name: "web_search", Text: `{"type":"web_search"}`},
	})
	other := request(t, Responses, `{"instructions":"be long","tools":[{"type":"function","name":"f"},{"type":"web_search"}],"input":"hi"}`)
	if other.PreambleDigest == req.PreambleDigest {
		t.Error("other instructions have the same digest")
	}
	if req := request(t, Responses, `{"input":null,"instructions":null}`); len(req.Messages) != 0 || len(req.Preamble) != 0 {
		t.Errorf("got %+v", req)
	}
}

func TestStateful(t *testing.T) {
	for body, want := range map[string]bool{
		`{"input":"a"}`: false,
		`{"input":"a","previous_response_id":null,"conversation":null}`: false,
		`{"input":"a","previous_response_id":"resp_1"}`:                 true,
		`{"conversation":{"id":"conv_1"},"input":[]}`:                   true,
	} {
		if got := isStateful(request(t, Responses, body)); got != want {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
	if isStateful(request(t, Chat, `{"messages":[],"conversation":"x"}`)) {
		t.Error("Chat Completions keeps no state")
	}
}

func TestWordsAreBounded(t *testing.T) {
	long := strings.Repeat("é", maxWords)
	m := message(t, Responses, `{"type":"thing","a":"`+long+`","b":"more"}`)
	if n := len(m.Blocks[0].Text); n > maxWords || n < maxWords-8 {
		t.Errorf("%d bytes of text, want close to %d", n, maxWords)
	}
	if m := message(t, Responses, `{"type":"thing","a":`+strings.Repeat(`{"a":`, 100)+`"deep"`+strings.Repeat(`}`, 100)+`}`); m.Blocks[0].Text != "" {
		t.Errorf("text from a depth of 100: %q", m.Blocks[0].Text)
	}
}

func half(h furl.Half, b furl.Block) furl.Block {
	b.Half = h
	return b
}
