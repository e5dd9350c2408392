package anthropic

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
)

// Pieces of lists.
const (
	u  = `{"role":"user","content":"go"}`
	a  = `{"role":"assistant","content":"done"}`
	sy = `{"role":"system","content":"note"}`
)

func calls(ids ...string) string {
	var parts []string
	for _, id := range ids {
		parts = append(parts, `{"type":"tool_use","id":"`+id+`","name":"f","input":{}}`)
	}
	return `{"role":"assistant","content":[` + strings.Join(parts, ",") + `]}`
}

func byProgram(id string) string {
	return `{"type":"tool_use","id":"` + id + `","name":"f","input":{},"caller":{"type":"code_execution_20250825","tool_id":"p1"}}`
}

func result(id string) string {
	return `{"type":"tool_result","tool_use_id":"` + id + `","content":"r"}`
}

func results(ids ...string) string {
	var parts []string
	for _, id := range ids {
		parts = append(parts, result(id))
	}
	return `{"role":"user","content":[` + strings.Join(parts, ",") + `]}`
}

func user(blocks string) string      { return `{"role":"user","content":[` + blocks + `]}` }
func assistant(blocks string) string { return `{"role":"assistant","content":[` + blocks + `]}` }
func marked(text, ttl string) string {
	if ttl != "" {
		ttl = `,"ttl":"` + ttl + `"`
	}
	return `{"type":"text","text":"` + text + `","cache_control":{"type":"ephemeral"` + ttl + `}}`
}
func list(messages ...string) string { return `{"messages":[` + strings.Join(messages, ",") + `]}` }

const (
	word     = `{"type":"text","text":"w"}`
	thought  = `{"type":"thinking","thinking":"hm","signature":"QUI="}`
	redacted = `{"type":"redacted_thinking","data":"QUI="}`
	search   = `{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"q"}}`
	found    = `{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}`
	// byProgramSearch is search, called by program.
	byProgramSearch = `{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"q"},"caller":{"type":"code_execution_20250825","tool_id":"p1"}}`
	program         = `{"type":"server_tool_use","id":"p1","name":"code_execution","input":{"code":"x()"}}`
	ran             = `{"type":"code_execution_tool_result","tool_use_id":"p1","content":{}}`
	thinking        = `"thinking":{"type":"enabled","budget_tokens":1024},`
)

var (
	plain    = furl.Model{ID: "plain"}
	prefills = furl.Model{ID: "prefills", Prefill: true}
	insides  = furl.Model{ID: "insides", SystemInside: true}
	requires = furl.Model{ID: "requires", Thinking: furl.Thinking{Required: true}}
)

func TestValidateAccepts(t *testing.T) {
	for _, test := range []struct {
		name  string
		model furl.Model
		body  string
	}{
		{"one message", plain, list(u)},
		{"a conversation", plain, list(u, a, u)},
		{"neighbours of one role", plain, list(u, u, a, a, u)},
		{"a step", plain, list(u, calls("a", "b"), results("b", "a"))},
		{"text after results", plain, list(u, calls("a"), user(result("a")+","+word))},
		{"calls and results over several messages", plain, list(u, calls("a"), calls("b"), results("a"), results("b"), u)},
		{"text and calls", plain, list(u, assistant(word+`,{"type":"tool_use","id":"a","name":"f","input":{}}`), results("a"), a, u)},
		{"empty final assistant", prefills, list(u, `{"role":"assistant","content":[]}`)},
		{"prefill", prefills, list(u, a)},
		{"blank text beside another block", plain, list(u, assistant(`{"type":"text","text":"\n\n"},{"type":"tool_use","id":"a","name":"f","input":{}}`), results("a"))},
		{"blank text in a message next to one with more", plain, list(u, assistant(`{"type":"text","text":"\n\n"}`), calls("a"), results("a"))},
		{"settings of a turn", insides, list(u, `{"role":"system","content":[],"output_config":{"effort":"low"}}`, a, u)},
		{"empty result", plain, list(u, calls("a"), user(`{"type":"tool_result","tool_use_id":"a","content":""}`))},
		{"four breakpoints", plain, list(user(marked("a", "1h")), a, user(marked("b", "1h")), a, user(marked("c", "")+","+marked("d", "5m")))},
		{"automatic breakpoint on a block that has one", plain, `{"cache_control":{"type":"ephemeral"},"messages":[` + user(marked("a", "5m")) + `]}`},
		{"system after the user, last", insides, list(u, sy)},
		{"system that adds a tool", insides, list(u, `{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_reference","name":"f"}}]}`)},
		{"system before the assistant", insides, list(u, sy, a, u)},
		{"system after a server tool", insides, list(u, assistant(search+","+found), sy, a, u)},
		{"leading compaction", plain, list(assistant(`{"type":"compaction","content":"so far","signature":"QUI="}`), u)},
		{"compaction in place", plain, list(u, assistant(`{"type":"compaction","content":"so far","encrypted_content":"QUI="},`+word), u)},
		{"server tool", plain, list(u, assistant(search+","+found+","+word), u)},
		{"paused server tool", plain, list(u, assistant(search))},
		{"server tool that waits for the client", plain, list(u, assistant(search+`,{"type":"tool_use","id":"a","name":"f","input":{}}`), results("a"), assistant(found+","+word), u)},
		{"a server tool in each of several rounds", plain, list(u, assistant(search+`,{"type":"tool_use","id":"a","name":"f","input":{}}`), results("a"),
			assistant(found+`,`+strings.Replace(search, "s1", "s2", 1)+`,{"type":"tool_use","id":"b","name":"f","input":{}}`), results("b"))},
		{"a program that calls tools over several rounds", plain, list(u, assistant(program+","+byProgram("a")), results("a"), assistant(byProgram("b")), results("b"), assistant(ran+","+word), u)},
		{"a program that waits for its second round", plain, list(u, assistant(program+","+byProgram("a")), results("a"), assistant(byProgram("b")), results("b"))},
		{"a program that calls a server tool, and goes on by its calls", plain, list(u, assistant(program+","+byProgram("a")), results("a"),
			assistant(byProgramSearch+`,{"type":"tool_use","id":"b","name":"f","input":{},"caller":{"tool_id":"s1"}}`), results("b"),
			assistant(`{"type":"tool_use","id":"c","name":"f","input":{},"caller":{"tool_id":"s1"}}`), results("c"), assistant(found+","+ran), u)},
		{"a program that goes on with the result of its server tool", plain, list(u, assistant(program+","+byProgramSearch+","+byProgram("a")), results("a"),
			assistant(found+","+byProgram("b")), results("b"), assistant(ran+","+word), u)},
		{"a reply in two messages, the result in the second", plain, list(u, assistant(search+`,{"type":"tool_use","id":"a","name":"f","input":{}}`), results("a"), assistant(word), assistant(found+","+word), u)},
		{"instructions before the reply with the result", insides, list(u, assistant(search+`,{"type":"tool_use","id":"a","name":"f","input":{}}`), results("a"), sy, assistant(found+","+word), u)},
		{"thinking first in the loop", requires, `{` + thinking + `"messages":[` + u + "," + assistant(thought+`,{"type":"tool_use","id":"a","name":"f","input":{}}`) + "," + results("a") + `]}`},
		{"thinking at the beginning of the loop only", requires, `{` + thinking + `"messages":[` +
			strings.Join([]string{u, assistant(redacted + `,{"type":"tool_use","id":"a","name":"f","input":{}}`), results("a"), calls("b"), results("b")}, ",") + `]}`},
		{"no thinking outside a loop", requires, `{` + thinking + `"messages":[` + strings.Join([]string{u, calls("a"), results("a"), a, u}, ",") + `]}`},
		{"thinking off", requires, `{"messages":[` + strings.Join([]string{u, calls("a"), results("a")}, ",") + `]}`},
	} {
		if err := Codec.Validate(decode(t, test.body), test.model); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestValidateRefuses(t *testing.T) {
	many := make([]string, 5)
	for i := range many {
		many[i] = marked(fmt.Sprint(i), "")
	}
	expected := "Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block " +
		"(preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`. " +
		"Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
	missing := ": `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
	unexpected := ": unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
	order := ".cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`."
	for _, test := range []struct {
		name  string
		model furl.Model
		body  string
		want  string
	}{
		{"no messages", plain, list(), "messages: at least one message is required"},
		{"assistant first", plain, list(a, u), `messages: first message must use the "user" role`},
		{"unknown role", plain, list(u, `{"role":"gnome","content":"x"}`), "messages.1.role: Input should be 'user' or 'assistant'"},

		{"call without result", plain, list(u, calls("a", "b"), results("a"), a, u), "messages.1" + fmt.Sprintf(missing, "b")},
		{"calls without results", plain, list(u, calls("a", "b"), u), "messages.1" + fmt.Sprintf(missing, "a, b")},
		{"call at the end", plain, list(u, calls("a")), "messages.1" + fmt.Sprintf(missing, "a")},
		{"call in the second of two neighbours", plain, list(u, a, calls("a"), u), "messages.2" + fmt.Sprintf(missing, "a")},
		{"text before the results", plain, list(u, calls("a"), user(word+","+result("a"))), "messages.1" + fmt.Sprintf(missing, "a")},
		{"text between the results", plain, list(u, calls("a", "b"), results("a"), u, results("b")), "messages.1" + fmt.Sprintf(missing, "b")},
		{"assistant between", plain, list(u, calls("a"), calls("b"), results("b"), a, results("a")), "messages.1" + fmt.Sprintf(missing, "a")},
		{"system between", insides, list(u, calls("a"), u, sy), "messages.1" + fmt.Sprintf(missing, "a")},
		{"result without call", plain, list(u, a, results("x")), "messages.2.content.0" + fmt.Sprintf(unexpected, "x")},
		{"result first", plain, list(results("x")), "messages.0.content.0" + fmt.Sprintf(unexpected, "x")},
		{"result of an older call", plain, list(u, calls("a"), results("a"), calls("b"), results("b", "a")), "messages.4.content.1" + fmt.Sprintf(unexpected, "a")},
		{"two results", plain, list(u, calls("a"), results("a", "a")),
			"messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a"},
		{"two calls of one id", plain, list(u, calls("a", "a"), results("a")), "messages.1.content.1: tool_use ids must be unique"},
		{"an id used again", plain, list(u, calls("a"), results("a"), calls("a"), results("a")), "messages.3.content.0: tool_use ids must be unique"},
		{"result in an assistant message", plain, list(u, assistant(result("a"))), "messages.1: `tool_result` blocks can only be in `user` messages"},
		{"call in a user message", plain, list(user(`{"type":"tool_use","id":"a","name":"f","input":{}}`)), "messages.0: `tool_use` blocks can only be in `assistant` messages"},
		{"thinking in a user message", plain, list(user(thought + "," + word)), "messages.0.content.0: `thinking` blocks may only be in `assistant` messages"},

		{"empty instructions", insides, list(u, `{"role":"system","content":[]}`, a, u), "messages.1: all messages must have non-empty content except for the optional final assistant message"},
		{"empty list", plain, list(`{"role":"user","content":[]}`), "messages.0: all messages must have non-empty content except for the optional final assistant message"},
		{"empty string", plain, list(u, `{"role":"assistant","content":""}`, u), "messages.1: all messages must have non-empty content except for the optional final assistant message"},
		{"no content", plain, list(u, a, `{"role":"user"}`), "messages.2: all messages must have non-empty content except for the optional final assistant message"},
		{"empty text block", plain, list(user(`{"type":"text","text":""},` + word)), "messages: text content blocks must be non-empty"},
		{"blank message", plain, list(user(`{"type":"text","text":" "},{"type":"text","text":"\n"}`)), "messages: text content blocks must contain non-whitespace text"},

		{"five breakpoints", plain, list(user(strings.Join(many, ","))), "A maximum of 4 blocks with cache_control may be provided. Found 5."},
		{"breakpoints everywhere", plain, `{"tools":[{"name":"f","cache_control":{"type":"ephemeral"}}],"system":[` + marked("s", "") + `],"messages":[` +
			user(many[0]+","+many[1]+","+many[2]) + `]}`, "A maximum of 4 blocks with cache_control may be provided. Found 5."},
		{"automatic breakpoint as the fifth", plain, `{"cache_control":{"type":"ephemeral"},"messages":[` + user(strings.Join(many[:4], ",")) + "," + a + "," + u + `]}`,
			"A maximum of 4 blocks with cache_control may be provided. Found 5."},
		{"breakpoint on thinking", plain, list(u, assistant(`{"type":"thinking","thinking":"hm","signature":"a","cache_control":{"type":"ephemeral"}},`+word), u),
			"messages.1.content.0.thinking.cache_control: Extra inputs are not permitted"},
		{"breakpoint on redacted thinking", plain, list(u, assistant(`{"type":"redacted_thinking","data":"a","cache_control":{"type":"ephemeral"}},`+word), u),
			"messages.1.content.0.redacted_thinking.cache_control: Extra inputs are not permitted"},
		{"breakpoint on empty text", plain, list(user(word + `,{"type":"text","text":"","cache_control":{"type":"ephemeral"}}`)),
			"messages.0.content.1.text: cache_control cannot be set for empty text blocks"},
		{"an hour after five minutes", plain, list(user(marked("a", "")), a, user(word+","+marked("b", "1h"))), "messages.2.content.1" + order},
		{"an hour after tools of five minutes", plain, `{"messages":[` + user(marked("a", "1h")) + `],"tools":[{"name":"f","cache_control":{"type":"ephemeral"}}]}`, "messages.0.content.0" + order},
		{"system after tools", plain, `{"tools":[{"name":"f","cache_control":{"type":"ephemeral","ttl":"5m"}}],"system":[{"type":"text","text":"a"},` + marked("s", "1h") + `],"messages":[` + u + `]}`,
			"system.1" + order},
		{"automatic hour after five minutes", plain, `{"cache_control":{"type":"ephemeral","ttl":"1h"},"messages":[` + user(marked("a", "")) + "," + a + "," + u + `]}`, order[1:]},
		{"automatic breakpoint of another lifetime", plain, `{"cache_control":{"type":"ephemeral","ttl":"1h"},"messages":[` + user(marked("a", "")) + `]}`,
			"cache_control: the last block already has a cache_control with a different ttl"},

		{"prefill", plain, list(u, a), "This model does not support assistant message prefill. The conversation must end with a user message."},
		{"empty prefill", plain, list(u, `{"role":"assistant","content":[]}`), "This model does not support assistant message prefill. The conversation must end with a user message."},
		{"prefill that ends in space", prefills, list(u, `{"role":"assistant","content":"so "}`), "messages: final assistant content cannot end with trailing whitespace"},
		{"prefill that ends in thinking", prefills, list(u, assistant(word+","+thought)), "messages.1: The final block in an assistant message cannot be `thinking`."},

		{"system inside", plain, list(u, sy), "role 'system' is not supported on this model"},
		{"system first", insides, list(sy, a, u), `messages: first message must use the "user" role`},
		{"system before the user", insides, list(u, sy, u), "messages.1: role 'system' must precede an 'assistant' message or end the array"},
		{"system after the assistant", insides, list(u, a, sy), "messages.2: role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool use"},
		{"system with an image", insides, list(u, `{"role":"system","content":[{"type":"image","source":{}}]}`), "messages.1.content.0: role 'system' accepts text blocks only"},

		{"loop without thinking", requires, `{` + thinking + `"messages":[` + strings.Join([]string{u, calls("a"), results("a")}, ",") + `]}`,
			"messages.1.content.0.type: " + fmt.Sprintf(expected, "tool_use")},
		{"long loop without thinking", requires, `{"thinking":{"type":"adaptive"},"messages":[` +
			strings.Join([]string{u, calls("a"), results("a"), assistant(word), assistant(`{"type":"tool_use","id":"b","name":"f","input":{}}`), results("b")}, ",") + `]}`,
			"messages.3.content.0.type: " + fmt.Sprintf(expected, "text")},

		{"server result without its call", plain, list(u, assistant(found+","+word), u),
			"messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result` blocks: s1. Each `web_search_tool_result` block must have a corresponding `server_tool_use` block before it."},
		{"server call without its result", plain, list(u, assistant(search+","+word), u, a, u),
			"messages.1: `web_search` tool use with id `s1` was found without a corresponding `web_search_tool_result` block"},
		{"text of the user between a server call and its result", plain, list(u, assistant(search+`,{"type":"tool_use","id":"a","name":"f","input":{}}`), results("a"), u, assistant(found+","+word), u),
			"messages.1: `web_search` tool use with id `s1` was found without a corresponding `web_search_tool_result` block"},
		{"text after the client's results", plain, list(u, assistant(search+`,{"type":"tool_use","id":"a","name":"f","input":{}}`), user(result("a")+","+word)),
			"messages.1: `web_search` tool use with id `s1` was found without a corresponding `web_search_tool_result` block"},
		{"text between the rounds of a program", plain, list(u, assistant(program+","+byProgram("a")), results("a"), assistant(byProgram("b")), user(result("b")+","+word)),
			"messages.1: `code_execution` tool use with id `p1` was found without a corresponding `code_execution_tool_result` block"},
		{"a later reply with neither the result nor calls of the program", plain, list(u, assistant(program+","+byProgram("a")), results("a"), calls("b"), results("b"), assistant(ran+","+word), u),
			"messages.1: `code_execution` tool use with id `p1` was found without a corresponding `code_execution_tool_result` block"},
		{"the result one reply too late", plain, list(u, assistant(search+`,{"type":"tool_use","id":"a","name":"f","input":{}}`), results("a"), calls("b"), results("b"), assistant(found+","+word), u),
			"messages.1: `web_search` tool use with id `s1` was found without a corresponding `web_search_tool_result` block"},
		{"a later reply without the result at the end", plain, list(u, assistant(search+`,{"type":"tool_use","id":"a","name":"f","input":{}}`), results("a"), calls("b"), results("b")),
			"messages.1: `web_search` tool use with id `s1` was found without a corresponding `web_search_tool_result` block"},
		{"a last reply without the result", prefills, list(u, assistant(search+`,{"type":"tool_use","id":"a","name":"f","input":{}}`), results("a"), a),
			"messages.1: `web_search` tool use with id `s1` was found without a corresponding `web_search_tool_result` block"},
		{"one of two calls is answered", plain, list(u, assistant(search+`,`+program+`,{"type":"tool_use","id":"a","name":"f","input":{}}`), results("a"), assistant(found+`,{"type":"tool_use","id":"b","name":"f","input":{}}`), results("b")),
			"messages.1: `code_execution` tool use with id `p1` was found without a corresponding `code_execution_tool_result` block"},
		{"calls of another program", plain, list(u, assistant(search+`,{"type":"tool_use","id":"a","name":"f","input":{}}`), results("a"), assistant(byProgram("b")), results("b")),
			"messages.1: `web_search` tool use with id `s1` was found without a corresponding `web_search_tool_result` block"},
		{"a program that pauses for a round", plain, list(u, assistant(program+","+byProgram("a")), results("a"), assistant(byProgram("b")), results("b"), calls("c"), results("c")),
			"messages.1: `code_execution` tool use with id `p1` was found without a corresponding `code_execution_tool_result` block"},
		{"a call that names itself as its caller", plain, list(u, assistant(strings.Replace(program, `"input"`, `"caller":{"tool_id":"p1"},"input"`, 1)+","+byProgram("a")), results("a"), calls("c"), results("c")),
			"messages.1: `code_execution` tool use with id `p1` was found without a corresponding `code_execution_tool_result` block"},
		{"mcp result without its call", plain, list(u, assistant(`{"type":"mcp_tool_result","tool_use_id":"m1","content":[]},`+word), u),
			"messages.1.content.0: unexpected `tool_use_id` found in `mcp_tool_result` blocks: m1. Each `mcp_tool_result` block must have a corresponding `mcp_tool_use` block before it."},

		{"signed compaction not first", plain, list(u, assistant(`{"type":"compaction","content":"so far","signature":"QUI="}`), u),
			"messages.1.content.0: compaction_block_misplaced: a signed compaction block must be the first block of the first message"},
		{"two signed compactions", plain, list(assistant(`{"type":"compaction","content":"a","signature":"QUI="},{"type":"compaction","content":"b","signature":"QUI="}`), u),
			"messages.0.content.1: compaction_block_misplaced: a signed compaction block must be the first block of the first message"},
		{"signed compaction with context management", plain, `{"context_management":{"edits":[]},"messages":[` + assistant(`{"type":"compaction","content":"a","signature":"QUI="}`) + "," + u + `]}`,
			"context_management: cannot be combined with a signed compaction block"},

		{"too many messages", furl.Model{MaxMessages: 2}, list(u, a, u), "messages: List should have at most 2 items after validation, not 3"},
		{"too many images", furl.Model{MaxImages: 1}, list(user(`{"type":"image","source":{}},{"type":"image","source":{}}`)), "messages: Too much media: 0 document pages + 2 images > 1"},
		{"an image above the limit for many images", furl.Model{Sides: furl.ImageSides{Max: 8000, Many: 2000, Above: 1}}, list(user(image(10, 10) + "," + image(2400, 300))),
			"messages.0.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"},
		{"an image above the limit of any request", furl.Model{Sides: furl.ImageSides{Max: 8000, Many: 2000, Above: 1}}, list(user(image(300, 8001))),
			"messages.0.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels"},
	} {
		t.Run(test.name, func(t *testing.T) {
			req := decode(t, test.body)
			err := Codec.Validate(req, test.model)
			var r *protocol.Refusal
			if !errors.As(err, &r) {
				t.Fatalf("got %v, want a refusal: %s", err, test.want)
			}
			if r.Message != test.want || r.Status != 400 || r.Type != "invalid_request_error" || r.Code != "" || r.Param != "" {
				t.Errorf("got  %d %s: %s\nwant 400 invalid_request_error: %s", r.Status, r.Type, r.Message, test.want)
			}
		})
	}
}

func TestValidateSize(t *testing.T) {
	req := decode(t, list(u))
	req.Body = append(req.Body, strings.Repeat(" ", 32<<20)...)
	for name, test := range map[string]struct {
		req   *protocol.Request
		model furl.Model
	}{
		"body over 32 MB":           {req, plain},
		"the model's own limit":     {decode(t, list(u)), furl.Model{MaxBytes: 10}},
		"no body, messages counted": {&protocol.Request{Messages: req.Messages}, furl.Model{MaxBytes: 10}},
	} {
		var r *protocol.Refusal
		if err := Codec.Validate(test.req, test.model); !errors.As(err, &r) || r.Status != 413 || r.Type != "request_too_large" || r.Message != "Request exceeds the maximum size" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Without a body, as in a replay that checks what it would have sent, the
// rules on messages are still checked.
func TestValidateWithoutBody(t *testing.T) {
	for _, test := range []struct {
		messages []string
		model    furl.Model
		want     string
	}{
		{[]string{u, calls("a"), results("a")}, requires, ""},
		{[]string{u, assistant(thought + "," + word), u, calls("a"), results("a")}, requires, ""},
		{[]string{u, assistant(word + "," + thought), calls("a"), results("a")}, requires, "Expected `thinking`"},
		{[]string{u, calls("a"), u}, plain, "without `tool_result` blocks"},
		{[]string{user(marked("a", "")), a, user(marked("b", "1h"))}, plain, "must not come after"},
	} {
		req := &protocol.Request{Format: furl.FormatAnthropic, Messages: decode(t, list(test.messages...)).Messages}
		err := Codec.Validate(req, test.model)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", test.messages, err, test.want)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		msgs := []string{u}
		for i := range n {
			id := fmt.Sprint("t", i)
			msgs = append(msgs, calls(id), results(id))
		}
		req := decode(b, list(msgs...))
		req.Body = nil
		b.Run(fmt.Sprintf("steps=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := Codec.Validate(req, plain); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// image returns an image block whose PNG header has these sides.
func image(w, h uint32) string {
	head := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR"), 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0)
	binary.BigEndian.PutUint32(head[16:], w)
	binary.BigEndian.PutUint32(head[20:], h)
	return `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + base64.StdEncoding.EncodeToString(head) + `"}}`
}
