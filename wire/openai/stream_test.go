package openai

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/protocol"
)

// events writes a stream; those of Responses are named after their type.
func events(list ...string) string {
	var out []byte
	for _, data := range list {
		typ := ""
		if strings.HasPrefix(data, "{") {
			typ = rawjson.Unquote(rawjson.Field([]byte(data), "type"))
		}
		out = sse.Append(out, sse.Event{Type: typ, Data: []byte(data), HasData: true})
	}
	return string(out)
}

// assemble feeds a stream cut into pieces.
func assemble(t testing.TB, c protocol.Codec, pieces ...string) (*protocol.Reply, error) {
	t.Helper()
	a := c.(protocol.ReplyCodec).NewAssembler()
	s := new(sse.Scanner)
	feed := func(e sse.Event, err error) {
		if err != nil {
			t.Fatal(err)
		}
		if e.HasData && !e.Open {
			_ = a.Feed(e.Type, e.Data)
		}
	}
	for _, p := range pieces {
		for e, err := range s.Feed([]byte(p)) {
			feed(e, err)
		}
	}
	for e, err := range s.Close() {
		feed(e, err)
	}
	return a.Reply()
}

func decodeReply(t testing.TB, c protocol.Codec, status int, body string) *protocol.Reply {
	t.Helper()
	reply, err := c.(protocol.ReplyCodec).DecodeReply(status, []byte(body))
	if err != nil {
		t.Fatalf("decode %s: %v", body, err)
	}
	return reply
}

// chunk is a chunk of a chat stream with one choice.
func chunk(delta, finish string) string {
	if finish != "null" {
		finish = string(quote(finish))
	}
	return `{"id":"chatcmpl-1","object":"chat.completion.chunk","model":"gpt-test","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}],"usage":null}`
}

func says(delta string) string { return chunk(delta, "null") }

const (
	usageChunk = `{"id":"chatcmpl-1","object":"chat.completion.chunk","model":"gpt-test","choices":[],"usage":` + chatUsage + `}`
	chatUsage  = `{"prompt_tokens":120,"completion_tokens":30,"total_tokens":150,"prompt_tokens_details":{"cached_tokens":100},"completion_tokens_details":{"reasoning_tokens":8}}`
	done       = `[DONE]`
)

func completion(message, finish string) string {
	return `{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-test","choices":[{"index":0,"message":` + message + `,"finish_reason":"` + finish + `"}],"usage":` + chatUsage + `}`
}

// fragment is an element of tool_calls.
func fragment(index int, fields string) string {
	return fmt.Sprintf(`{"tool_calls":[{"index":%d,%s}]}`, index, fields)
}

const (
	respUsage = `{"input_tokens":120,"input_tokens_details":{"cached_tokens":100},"output_tokens":30,"output_tokens_details":{"reasoning_tokens":8},"total_tokens":150}`
	created   = `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"gpt-test","output":[],"usage":null}}`
	reason1   = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Think."}],"encrypted_content":"ZW5j"}`
	message1  = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Grüße, W𝄞rld","annotations":[]}]}`
	call1     = `{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"read","arguments":"{\"path\": \"aé.go\"}"}`
	custom1   = `{"id":"ctc_1","type":"custom_tool_call","status":"completed","call_id":"call_2","name":"patch","input":"*** Begin\n+x"}`
	search1   = `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}}`
	compact1  = `{"id":"cmp_1","type":"compaction","encrypted_content":"ZW5jMg=="}`
	new1      = `{"id":"n_1","type":"brand_new","x":1.50}`
)

func response(status, details string, items ...string) string {
	return fmt.Sprintf(`{"id":"resp_1","object":"response","status":%q,"model":"gpt-test","incomplete_details":%s,"error":null,"output":[%s],"usage":%s}`,
		status, details, strings.Join(items, ","), respUsage)
}

func responseEnd(status, details string, items ...string) string {
	return fmt.Sprintf(`{"type":"response.%s","sequence_number":99,"response":%s}`, status, response(status, details, items...))
}

func added(at int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"sequence_number":1,"item":%s}`, at, item)
}

func itemDone(at int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"sequence_number":2,"item":%s}`, at, item)
}

func respDelta(typ string, at, content int, field, text string) string {
	return fmt.Sprintf(`{"type":"response.%s","item_id":"x","output_index":%d,"content_index":%d,%q:%s,"sequence_number":3}`, typ, at, content, field, quote(text))
}

// wholeResponse is a stream as the provider sends it.
var wholeResponse = []string{
	created, `{"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","status":"in_progress"}}`,
	added(0, `{"id":"rs_1","type":"reasoning","summary":[]}`),
	`{"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}`,
	`{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"Think."}`,
	itemDone(0, reason1),
	added(1, `{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}`),
	`{"type":"response.content_part.added","item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`,
	respDelta("output_text.delta", 1, 0, "delta", "Grüße, "), respDelta("output_text.delta", 1, 0, "delta", "W𝄞rld"),
	respDelta("output_text.done", 1, 0, "text", "Grüße, W𝄞rld"),
	itemDone(1, message1),
	added(2, `{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"call_1","name":"read","arguments":""}`),
	respDelta("function_call_arguments.delta", 2, 0, "delta", `{"path": `), respDelta("function_call_arguments.delta", 2, 0, "delta", `"aé.go"}`),
	respDelta("function_call_arguments.done", 2, 0, "arguments", `{"path": "aé.go"}`),
	itemDone(2, call1),
	added(3, `{"id":"ctc_1","type":"custom_tool_call","status":"in_progress","call_id":"call_2","name":"patch","input":""}`),
	respDelta("custom_tool_call_input.delta", 3, 0, "delta", "*** Begin\n+x"),
	itemDone(3, custom1),
	added(4, search1), itemDone(4, search1), added(5, compact1), itemDone(5, compact1), itemDone(6, new1),
	responseEnd("completed", "null", reason1, message1, call1, custom1, search1, compact1, new1),
}

// streamed are replies as events and as one body.
var streamed = []struct {
	name   string
	codec  protocol.Codec
	events []string
	body   string
}{
	{"chat: text", Chat, []string{
		says(`{"role":"assistant","content":"","refusal":null}`), says(`{"content":"Grüße, "}`), says(`{"content":"W𝄞rld \"x\"\n"}`),
		says(`{"content":null}`), chunk(`{}`, "stop"), usageChunk, done,
	}, completion(`{"role":"assistant","content":"Grüße, W𝄞rld \"x\"\n","refusal":null,"annotations":[]}`, "stop")},
	{"chat: parallel calls, reasoning", Chat, []string{
		says(`{"role":"assistant","content":null,"reasoning_content":"Let "}`), says(`{"reasoning_content":"me see."}`),
		says(fragment(0, `"id":"call_1","type":"function","function":{"name":"read","arguments":""}`)),
		says(fragment(0, `"function":{"arguments":"{\"pa"}`)),
		says(fragment(1, `"id":"call_2","type":"custom","custom":{"name":"patch","input":"*** Be"}`)),
		says(fragment(0, `"function":{"arguments":"th\": \"a\\u00e9.go\", \"n\": 12345678901234567890}"}`)),
		says(fragment(1, `"custom":{"input":"gin\n+x"}`)),
		says(fragment(2, `"id":"call_3","type":"function","function":{"name":"list","arguments":"{}"},"extra_content":{"google":{"thought_signature":"c2ln"}}`)),
		chunk(`{}`, "tool_calls"), usageChunk, done,
	}, completion(`{"role":"assistant","content":null,"reasoning_content":"Let me see.","tool_calls":[`+
		`{"id":"call_1","type":"function","function":{"name":"read","arguments":"{\"path\": \"aé.go\", \"n\": 12345678901234567890}"}},`+
		`{"id":"call_2","type":"custom","custom":{"name":"patch","input":"*** Begin\n+x"}},`+
		`{"id":"call_3","type":"function","function":{"name":"list","arguments":"{}"},"extra_content":{"google":{"thought_signature":"c2ln"}}}]}`, "tool_calls")},
	{"chat: the legacy call", Chat, []string{
		says(`{"role":"assistant","content":null,"function_call":{"name":"read","arguments":""}}`), says(`{"function_call":{"arguments":"{\"a\":"}}`),
		says(`{"function_call":{"arguments":"1}"}}`), chunk(`{}`, "function_call"), usageChunk, done,
	}, completion(`{"role":"assistant","content":null,"function_call":{"name":"read","arguments":"{\"a\":1}"}}`, "function_call")},
	{"chat: a refusal", Chat, []string{
		says(`{"role":"assistant","content":"","refusal":""}`), says(`{"refusal":"I will "}`), says(`{"refusal":"not."}`), chunk(`{}`, "stop"), usageChunk, done,
	}, completion(`{"role":"assistant","content":null,"refusal":"I will not."}`, "stop")},
	{"chat: reasoning in details, then content as parts", Chat, []string{
		says(`{"role":"assistant","content":"","reasoning":"A ","reasoning_details":[{"type":"reasoning.text","text":"A ","index":0,"format":"f"}]}`),
		says(`{"reasoning":"B","reasoning_details":[{"type":"reasoning.text","text":"B","index":0,"signature":"c2ln"}]}`),
		says(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"ZW5j","index":1}]}`),
		says(`{"content":[{"type":"text","text":"wo"}]}`), says(`{"content":[{"type":"text","text":"rds"}]}`), chunk(`{}`, "stop"), usageChunk, done,
	}, completion(`{"role":"assistant","content":"words","reasoning":"A B","reasoning_details":[{"type":"reasoning.text","text":"A B","index":0,"format":"f","signature":"c2ln"},{"type":"reasoning.encrypted","data":"ZW5j","index":1}]}`, "stop")},
	{"chat: audio", Chat, []string{
		says(`{"role":"assistant","audio":{"id":"audio_1","transcript":"he"}}`), says(`{"audio":{"data":"QUJD","transcript":"y"}}`), says(`{"audio":{"expires_at":5}}`),
		chunk(`{}`, "stop"), usageChunk, done,
	}, completion(`{"role":"assistant","content":null,"audio":{"id":"audio_1","data":"QUJD","transcript":"hey","expires_at":5}}`, "stop")},
	{"chat: no content", Chat, []string{says(`{"role":"assistant","content":""}`), chunk(`{}`, "stop"), usageChunk, done}, completion(`{"role":"assistant","content":""}`, "stop")},
	{"responses: everything", Responses, wholeResponse, response("completed", "null", reason1, message1, call1, custom1, search1, compact1, new1)},
	{"responses: out of room", Responses, []string{
		created, added(0, `{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}`),
		respDelta("output_text.delta", 0, 0, "delta", "half"),
		itemDone(0, `{"id":"msg_1","type":"message","status":"incomplete","role":"assistant","content":[{"type":"output_text","text":"half"}]}`),
		responseEnd("incomplete", `{"reason":"max_output_tokens"}`),
	}, response("incomplete", `{"reason":"max_output_tokens"}`, `{"id":"msg_1","type":"message","status":"incomplete","role":"assistant","content":[{"type":"output_text","text":"half"}]}`)},
	{"responses: items in the end alone", Responses, []string{created, responseEnd("completed", "null", message1, call1)}, response("completed", "null", message1, call1)},
}

// sameReply compares an assembled reply with one decoded from a body, except
// for the bytes. It returns "" or the difference.
func sameReply(want, got *protocol.Reply) string {
	a, b := withoutBytes(want), withoutBytes(got)
	if reflect.DeepEqual(a, b) {
		return ""
	}
	return cmp.Diff(a, b)
}

func withoutBytes(r *protocol.Reply) *protocol.Reply {
	out := *r
	out.Messages = nil
	for _, m := range r.Messages {
		m := *m
		m.Raw, m.Blocks = nil, slices.Clone(m.Blocks)
		for i := range m.Blocks {
			b := &m.Blocks[i]
			b.Start, b.End, b.Args = 0, 0, nil // the digest covers the arguments
		}
		out.Messages = append(out.Messages, &m)
	}
	return &out
}

// inPieces cuts a stream into pieces of n bytes.
func inPieces(in string, n int) []string {
	var out []string
	for len(in) > n {
		out, in = append(out, in[:n]), in[n:]
	}
	return append(out, in)
}

// However a stream is cut, it gives the same reply as the body of that reply.
func TestStreamIsTheReply(t *testing.T) {
	for _, tc := range streamed {
		t.Run(tc.name, func(t *testing.T) {
			want := decodeReply(t, tc.codec, 200, tc.body)
			if wantUsage := (furl.Usage{Input: 20, CacheRead: 100, Output: 30, Reasoning: 8}); want.Usage != wantUsage || !want.Complete {
				t.Fatalf("the body gives %+v", want)
			}
			in := events(tc.events...)
			for _, n := range []int{1, 2, 3, 5, 64, len(in)} {
				got, err := assemble(t, tc.codec, inPieces(in, n)...)
				if err != nil {
					t.Fatalf("pieces of %d: %v", n, err)
				}
				if diff := sameReply(want, got); diff != "" {
					t.Fatalf("pieces of %d, -body +stream:\n%s", n, diff)
				}
			}
		})
	}
}

// The reply in the client's next request matches the recorded one, by digest.
func TestReplyMatchesTheHistory(t *testing.T) {
	got, err := assemble(t, Chat, events(streamed[1].events...))
	if err != nil {
		t.Fatal(err)
	}
	sent := message(t, Chat, `{"role":"assistant", "content":"", "tool_calls":[
		{"type":"function","id":"call_1","function":{"arguments":"{\"n\":12345678901234567890,\"path\":\"a\u00e9.go\"}","name":"read"}},
		{"id":"call_2","type":"custom","custom":{"name":"patch","input":"*** Begin\n+x"}},
		{"id":"call_3","type":"function","function":{"name":"list","arguments":"{}"}}]}`)
	if got.Messages[0].Digest != sent.Digest {
		t.Errorf("recorded\n%s\nsent\n%s", got.Messages[0].Raw, sent.Raw)
	}
	// The client of Responses omits ids and statuses.
	got, err = assemble(t, Responses, events(wholeResponse...))
	if err != nil {
		t.Fatal(err)
	}
	for at, raw := range map[int]string{
		1: `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Grüße, W𝄞rld"}]}`,
		2: `{"type":"function_call","name":"read","arguments":"{\"path\":\"aé.go\"}","call_id":"call_1"}`,
		3: `{"type":"custom_tool_call","name":"patch","input":"*** Begin\n+x","call_id":"call_2"}`,
	} {
		if sent := message(t, Responses, raw); got.Messages[at].Digest != sent.Digest {
			t.Errorf("recorded\n%s\nsent\n%s", got.Messages[at].Raw, sent.Raw)
		}
	}
	if string(got.Messages[0].Raw) != reason1 {
		t.Errorf("reasoning is %s", got.Messages[0].Raw)
	}
}

// Of an interrupted stream, everything that can be sent back is kept: texts
// are prefixes of the whole ones, and no call is partial.
func TestCutStream(t *testing.T) {
	for _, tc := range streamed {
		full, err := assemble(t, tc.codec, events(tc.events...))
		if err != nil {
			t.Fatal(err)
		}
		ended := false
		for i, data := range tc.events {
			half := "data: " + data[:len(data)/2]
			for _, in := range []string{events(tc.events[:i]...), events(tc.events[:i]...) + half} {
				got, err := assemble(t, tc.codec, in)
				if err != nil || got.Complete != ended {
					t.Fatalf("%s cut at event %d: complete %v, %v", tc.name, i, got.Complete, err)
				}
				for _, m := range got.Messages {
					for _, b := range m.Blocks {
						if !partOf(full, &b) {
							t.Fatalf("%s cut at event %d: %s", tc.name, i, m.Raw)
						}
					}
				}
			}
			ended = ended || strings.Contains(data, `"finish_reason":"`) || strings.Contains(data, `"sequence_number":99`)
		}
	}
}

// partOf reports whether a block is in the reply, or its text is the start of
// one.
func partOf(full *protocol.Reply, b *furl.Block) bool {
	return slices.ContainsFunc(full.Messages, func(m *furl.Message) bool {
		return slices.ContainsFunc(m.Blocks, func(f furl.Block) bool {
			return f.Kind == b.Kind && f.ID == b.ID && f.Name == b.Name && strings.HasPrefix(f.Text, b.Text) && string(callArgs(f.Args)) == string(callArgs(b.Args))
		})
	})
}

func TestCutStreamKeepsWordsAndWholeCalls(t *testing.T) {
	kinds := func(r *protocol.Reply) string {
		var out []string
		for _, m := range r.Messages {
			for _, b := range m.Blocks {
				out = append(out, b.Kind.String()+b.ID)
			}
		}
		return strings.Join(out, " ")
	}
	got, err := assemble(t, Chat, events(streamed[1].events[:7]...))
	if want := "thinking callcall_1"; err != nil || got.Complete || kinds(got) != want {
		t.Errorf("chat kept %s, want %s (complete %v, %v)", kinds(got), want, got.Complete, err)
	}
	got, err = assemble(t, Responses, events(wholeResponse[:9]...))
	if want := "thinkingrs_1 text"; err != nil || got.Complete || kinds(got) != want || got.Messages[1].Blocks[0].Text != "Grüße, " {
		t.Errorf("responses kept %s, want %s (complete %v, %v)", kinds(got), want, got.Complete, err)
	}
	if want := `{"id":"msg_1","type":"message","status":"incomplete","role":"assistant","content":[{"type":"output_text","text":"Grüße, ","annotations":[]}]}`; string(got.Messages[1].Raw) != want {
		t.Errorf("message is\n%s, want\n%s", got.Messages[1].Raw, want)
	}
	got, err = assemble(t, Responses, events(wholeResponse[:16]...))
	if want := "thinkingrs_1 text callcall_1"; err != nil || kinds(got) != want {
		t.Errorf("responses kept %s, want %s (%v)", kinds(got), want, err)
	}
}

// Deviations of compatible servers.
func TestChatStreamsOfOtherServers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		events []string
		want   []furl.Block
		usage  int
	}{
		{"every call has index 0 and an id of its own", []string{
			says(fragment(0, `"id":"a","function":{"name":"f","arguments":"{}"}`)), says(fragment(0, `"id":"b","function":{"name":"g","arguments":"{\"x\":"}`)),
			says(fragment(0, `"function":{"arguments":"1}"}`)), chunk(`{}`, "stop"),
		}, []furl.Block{call("a", "f", "{}"), call("b", "g", `{"x":1}`)}, 0},
		{"no index", []string{
			says(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]}`), says(`{"tool_calls":[{"function":{"arguments":"}"}}]}`),
			says(`{"tool_calls":[{"id":"b","function":{"name":"g","arguments":"{}"}},null]}`), done,
		}, []furl.Block{call("a", "f", "{}"), call("b", "g", "{}")}, 0},
		{"id and name in every fragment, arguments as an object", []string{
			says(fragment(0, `"id":"a","function":{"name":"f","arguments":""}`)), says(fragment(0, `"id":"a","function":{"name":"f","arguments":{"x":1}}`)),
			says(fragment(0, `"id":"a","function":{"name":"f"}`)), chunk(`{}`, "tool_calls"),
		}, []furl.Block{call("a", "f", `{"x":1}`)}, 0},
		{"a name in pieces", []string{says(fragment(0, `"id":"a","function":{"name":"re"}`)), says(fragment(0, `"function":{"name":"ad","arguments":"{}"}`)), done},
			[]furl.Block{call("a", "read", "{}")}, 0},
		{"usage inside the choice, other choices", []string{
			`{"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"yes"},"finish_reason":"stop","usage":{"prompt_tokens":7,"completion_tokens":1}}]}`, done,
		}, []furl.Block{text("yes")}, 7},
	} {
		got, err := assemble(t, Chat, events(tc.events...))
		if err != nil || !got.Complete || len(got.Messages) != 1 {
			t.Errorf("%s: %+v, %v", tc.name, got, err)
			continue
		}
		sameBlocks(t, got.Messages[0].Blocks, tc.want)
		if got.Usage.Prompt() != tc.usage {
			t.Errorf("%s: usage %+v", tc.name, got.Usage)
		}
	}
}

func TestResponsesStreamWithoutIndexes(t *testing.T) {
	got, err := assemble(t, Responses, events(
		`{"type":"response.output_item.added","item":{"id":"m","type":"message","role":"assistant","content":[]}}`,
		`{"type":"response.output_text.delta","item_id":"m","delta":"hi"}`,
		`{"type":"response.output_item.added","item":{"id":"f","type":"function_call","call_id":"c","name":"n","arguments":""}}`,
		`{"type":"response.function_call_arguments.delta","item_id":"f","delta":"{}"}`,
		`{"type":"response.output_text.delta","item_id":"m","delta":" there"}`,
		`{"type":"response.completed","response":{"id":"r","status":"completed"}}`))
	if err != nil || !got.Complete || len(got.Messages) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	sameBlocks(t, got.Messages[0].Blocks, []furl.Block{text("hi there")})
	sameBlocks(t, got.Messages[1].Blocks, []furl.Block{call("c", "n", "{}")})
}

func TestStreamThatEndsInAnError(t *testing.T) {
	for _, tc := range []struct {
		codec    protocol.Codec
		event    string
		want     protocol.Refusal
		overflow *protocol.Overflow
	}{
		{Chat, `{"error":{"message":"busy","type":"server_error","param":null,"code":null}}`, protocol.Refusal{Status: 500, Type: "server_error", Message: "busy"}, nil},
		{Chat, `{"error":{"message":"slow down","code":429},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`,
			protocol.Refusal{Status: 429, Type: "rate_limit_error", Message: "slow down"}, nil},
		{Chat, string(ErrorBody(Overflow(furl.FormatChat, 300, 200))), *Overflow(furl.FormatChat, 300, 200), &protocol.Overflow{Tokens: 300, Limit: 200}},
		{Chat, `{"object":"error","message":"bad","code":400}`, protocol.Refusal{Status: 400, Type: "invalid_request_error", Message: "bad"}, nil},
		{Responses, `{"type":"error","code":"rate_limit_exceeded","message":"slow down","param":null,"sequence_number":4}`,
			protocol.Refusal{Status: 429, Type: "rate_limit_error", Code: "rate_limit_exceeded", Message: "slow down"}, nil},
		{Responses, `{"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."},"output":[]}}`,
			protocol.Refusal{Status: 400, Type: "invalid_request_error", Code: "context_length_exceeded", Message: "Your input exceeds the context window of this model."}, &protocol.Overflow{}},
	} {
		before := says(`{"content":"so far"}`)
		if tc.codec == Responses {
			before = itemDone(0, message1)
		}
		got, err := assemble(t, tc.codec, events(before, tc.event, done))
		if err != nil || got.Complete || len(got.Messages) != 1 {
			t.Fatalf("%s: %+v, %v", tc.event, got, err)
		}
		if diff := cmp.Diff(&tc.want, got.Refusal); diff != "" {
			t.Errorf("%s: %s", tc.event, diff)
		}
		if diff := cmp.Diff(tc.overflow, got.Overflow); diff != "" {
			t.Errorf("%s: %s", tc.event, diff)
		}
	}
}

func TestDecodeReplyOfRefusals(t *testing.T) {
	for _, tc := range []struct {
		codec    protocol.Codec
		status   int
		body     string
		want     protocol.Refusal
		overflow *protocol.Overflow
	}{
		{Chat, 400, string(ErrorBody(Overflow(furl.FormatChat, 300, 200))), *Overflow(furl.FormatChat, 300, 200), &protocol.Overflow{Tokens: 300, Limit: 200}},
		{Responses, 400, string(ErrorBody(Overflow(furl.FormatResponses, 300, 200))), *Overflow(furl.FormatResponses, 300, 200), &protocol.Overflow{}},
		{Chat, 429, `{"error":{"message":"m","type":"tokens","code":"rate_limit_exceeded"}}`, protocol.Refusal{Status: 429, Type: "tokens", Code: "rate_limit_exceeded", Message: "m"}, nil},
		{Chat, 503, "upstream connect error", protocol.Refusal{Status: 503, Type: "server_error", Message: "upstream connect error"}, nil},
		{Responses, 200, `{"object":"response","status":"failed","error":{"code":"server_error","message":"m"},"output":[]}`, protocol.Refusal{Status: 500, Type: "server_error", Code: "server_error", Message: "m"}, nil},
		{Chat, 200, `{"error":{"message":"m","code":502}}`, protocol.Refusal{Status: 502, Type: "server_error", Message: "m"}, nil},
	} {
		got := decodeReply(t, tc.codec, tc.status, tc.body)
		if got.Complete {
			t.Errorf("%s is complete", tc.body)
		}
		if diff := cmp.Diff(&tc.want, got.Refusal); diff != "" {
			t.Errorf("%s: %s", tc.body, diff)
		}
		if diff := cmp.Diff(tc.overflow, got.Overflow); diff != "" {
			t.Errorf("%s: %s", tc.body, diff)
		}
	}
}

func TestDecodeReplyOfOtherAnswers(t *testing.T) {
	if got := decodeReply(t, Responses, 200, `{"object":"response.input_tokens","input_tokens":77}`); !got.Complete || got.Usage.Input != 77 {
		t.Errorf("a count: %+v", got)
	}
	got := decodeReply(t, Responses, 200, `{"id":"resp_2","object":"response.compaction","output":[{"type":"message","role":"user","content":"q"},`+compact1+`],"usage":`+respUsage+`}`)
	if !got.Complete || len(got.Messages) != 2 || got.Messages[0].Role != furl.RoleUser || got.Messages[1].Blocks[0].Name != "compaction" {
		t.Errorf("a compaction: %+v", got)
	}
	if got := decodeReply(t, Responses, 200, `{"id":"r","status":"queued"}`); got.Complete || got.Stop != "" {
		t.Errorf("a response in the background: %+v", got)
	}
	for _, body := range []string{``, `[]`, `{"choices":[`, `{}`} {
		for _, c := range []protocol.Codec{Chat, Responses} {
			if _, err := c.(protocol.ReplyCodec).DecodeReply(200, []byte(body)); err == nil {
				t.Errorf("%s %s: no error", c.Format(), body)
			}
		}
	}
}

func TestStreamThatIsNone(t *testing.T) {
	for _, tc := range []struct {
		codec        protocol.Codec
		events, want string
	}{
		{Chat, "data: {nope\n\n", "read Chat Completions stream: JSON at offset 1: expected a field name"},
		{Chat, "data: 7\n\n", "read Chat Completions stream: expected an object"},
		{Responses, "event: x\ndata: 7\n\n", `read Responses stream: event "x": expected an object`},
		{Responses, events(`{"type":"response.output_item.added","output_index":0,"item":7}`), "read Responses stream: response.output_item.added: expected an item"},
		{Responses, events(respDelta("output_text.delta", 3, 0, "delta", "x")), `read Responses stream: response.output_text.delta: item 3 "x" was not added`},
	} {
		got, err := assemble(t, tc.codec, tc.events, events(chunk(`{"content":"late"}`, "stop"), done))
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s: %v, want %s", tc.events, err, tc.want)
		}
		if got.Complete || len(got.Messages) > 0 {
			t.Errorf("%s: %+v", tc.events, got)
		}
	}
}

func TestErrorsAreTheProvidersOwn(t *testing.T) {
	r := &protocol.Refusal{Status: 504, Message: "too \"slow\""}
	want := `{"error":{"message":"too \"slow\"","type":"server_error","param":null,"code":null}}`
	for _, c := range []protocol.Codec{Chat, Responses} {
		if got := c.(protocol.ReplyCodec).ErrorBody(r, "req"); string(got) != want {
			t.Errorf("%s: body %s, want %s", c.Format(), got, want)
		}
		a := c.(protocol.ReplyCodec).NewAssembler()
		event, data := c.(protocol.ReplyCodec).ErrorEvent(r)
		if err := a.Feed(event, data); err != nil {
			t.Fatal(err)
		}
		if got, _ := a.Reply(); got.Refusal == nil || got.Refusal.Message != r.Message || got.Refusal.Type != "server_error" {
			t.Errorf("%s: %s %s reads as %+v", c.Format(), event, data, got.Refusal)
		}
	}
}

// FuzzStream: any input gives a reply that can be sent back, and it does not
// depend on how the bytes are cut.
func FuzzStream(f *testing.F) {
	for _, tc := range streamed {
		f.Add([]byte(events(tc.events...)), 10)
	}
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		for _, c := range []protocol.Codec{Chat, Responses} {
			got, err := assemble(t, c, string(in))
			at := max(0, min(cut, len(in)))
			again, err2 := assemble(t, c, string(in[:at]), string(in[at:]))
			if diff := cmp.Diff(got, again); diff != "" || fmt.Sprint(err) != fmt.Sprint(err2) {
				t.Fatalf("cut at %d: %v, %v\n%s", at, err, err2, diff)
			}
			for _, m := range got.Messages {
				if again, err := c.DecodeMessage(m.Raw); err != nil || again.Digest != m.Digest {
					t.Fatalf("%s: %v", m.Raw, err)
				}
			}
			if err != nil && got.Complete {
				t.Fatalf("complete in spite of %v", err)
			}
		}
	})
}

// FuzzDecodeReply: no body causes a panic.
func FuzzDecodeReply(f *testing.F) {
	for _, tc := range streamed {
		f.Add(200, []byte(tc.body))
	}
	f.Add(400, ErrorBody(Overflow(furl.FormatChat, 3, 2)))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		for _, c := range []protocol.Codec{Chat, Responses} {
			got, err := c.(protocol.ReplyCodec).DecodeReply(status, body)
			if err == nil && got.Complete && got.Refusal != nil {
				t.Fatalf("complete and refused: %+v", got.Refusal)
			}
		}
	})
}
