package anthropic

import (
	"errors"
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

var replies protocol.ReplyCodec = Codec

// stream writes events as the provider does; each argument is the data of
// one.
func stream(events ...string) string {
	var out []byte
	for _, data := range events {
		typ := readFields(rawjson.NewReader([]byte(data))).typ
		out = sse.Append(out, sse.Event{Type: typ, Data: []byte(data), HasData: true})
	}
	return string(out)
}

// assemble feeds a stream cut into pieces.
func assemble(t testing.TB, pieces ...string) (*protocol.Reply, error) {
	t.Helper()
	a := replies.NewAssembler()
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

const started = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-test","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":30,"cache_read_input_tokens":200,"cache_creation":{"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":10},"output_tokens":1}}}`

func ended(reason string, output int) string {
	return fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}}`, reason, output)
}

// whole is the body of the same reply, not streamed.
func whole(content, reason string, output int) string {
	return fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"claude-test","content":[%s],"stop_reason":%q,"stop_sequence":null,`+
		`"usage":{"input_tokens":10,"cache_creation_input_tokens":30,"cache_read_input_tokens":200,"cache_creation":{"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":10},"output_tokens":%d}}`,
		content, reason, output)
}

func begin(i int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, block)
}

func delta(i int, typ, field, text string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%s}}`, i, typ, field, rawjson.AppendString(nil, text))
}

func stop(i int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i) }

const (
	ping     = `{"type": "ping"}`
	finished = `{"type":"message_stop"}`
)

// streamed are replies as events and as one body.
var streamed = []struct {
	name   string
	events []string
	body   string
}{
	{"words", []string{
		started, begin(0, `{"type":"text","text":""}`), ping, delta(0, "text_delta", "text", "Grüße, "), delta(0, "text_delta", "text", ""),
		delta(0, "text_delta", "text", "W𝄞rld\n\"quoted\"\u2028"), stop(0), ended("end_turn", 9), finished,
	}, whole(`{"type":"text","text":"Grüße, W𝄞rld\n\"quoted\"\u2028"}`, "end_turn", 9)},
	{"thinking, text and two calls, one without input", []string{
		started,
		begin(0, `{"type":"thinking","thinking":"","signature":""}`), delta(0, "thinking_delta", "thinking", "Let me "), delta(0, "thinking_delta", "thinking", "see."),
		delta(0, "signature_delta", "signature", "c2lnbmVk"), stop(0),
		begin(1, `{"type":"redacted_thinking","data":"c2VjcmV0"}`), stop(1),
		begin(2, `{"type":"text","text":""}`), delta(2, "text_delta", "text", "Reading."), stop(2),
		begin(3, `{"type":"tool_use","id":"toolu_1","name":"read","input":{},"caller":{"type":"direct"}}`),
		begin(4, `{"type":"tool_use","id":"toolu_2","name":"list","input":{}}`),
		delta(3, "input_json_delta", "partial_json", ""), delta(3, "input_json_delta", "partial_json", `{"pa`), delta(4, "input_json_delta", "partial_json", ""),
		delta(3, "input_json_delta", "partial_json", `th": "a\u00e9.go", "n": 1`), delta(3, "input_json_delta", "partial_json", `2345678901234567890}`),
		stop(4), stop(3), ended("tool_use", 77), finished,
	}, whole(`{"type":"thinking","thinking":"Let me see.","signature":"c2lnbmVk"},{"type":"redacted_thinking","data":"c2VjcmV0"},{"type":"text","text":"Reading."},`+
		`{"type":"tool_use","id":"toolu_1","name":"read","input":{"path":"aé.go","n":12345678901234567890},"caller":{"type":"direct"}},`+
		`{"type":"tool_use","id":"toolu_2","name":"list","input":{}}`, "tool_use", 77)},
	{"a search of the provider's own, cited", []string{
		started,
		begin(0, `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`), delta(0, "input_json_delta", "partial_json", `{"query":"sails"}`), stop(0),
		begin(1, `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://x.example","title":"Sails","encrypted_content":"ZW5j"}]}`), stop(1),
		begin(2, `{"type":"text","text":"","citations":[]}`), delta(2, "text_delta", "text", "Furl them."),
		`{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"https://x.example","cited_text":"Furl"}}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"type":"char_location","document_index":0}}}`,
		stop(2), ended("pause_turn", 12), finished,
	}, whole(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"sails"}},`+
		`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://x.example","title":"Sails","encrypted_content":"ZW5j"}]},`+
		`{"type":"text","text":"Furl them.","citations":[{"type":"web_search_result_location","url":"https://x.example","cited_text":"Furl"},{"type":"char_location","document_index":0}]}`, "pause_turn", 12)},
	{"compaction, then an empty text and an unknown type", []string{
		started,
		begin(0, `{"type":"compaction","content":""}`),
		`{"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"What was done.","encrypted_content":"ZW5j"}}`, stop(0),
		begin(1, `{"type":"text","text":""}`), stop(1),
		begin(2, `{"type":"new_thing","x":{"y":1.50}}`), stop(2),
		`{"type":"news","anything":[1,2]}`, stop(9),
		ended("end_turn", 5), finished, `{"type":"message_stop"}`,
	}, whole(`{"type":"compaction","content":"What was done.","encrypted_content":"ZW5j"},{"type":"text","text":""},{"type":"new_thing","x":{"y":1.50}}`, "end_turn", 5)},
	{"no content", []string{started, ended("end_turn", 0), finished}, whole(``, "end_turn", 0)},
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
			want, err := replies.DecodeReply(200, []byte(tc.body))
			if err != nil || !want.Complete {
				t.Fatalf("decode the body: %v, complete %v", err, want.Complete)
			}
			if tc.name == "words" && want.Usage.Output == 1 {
				t.Fatal("the usage is that of the start")
			}
			in := stream(tc.events...)
			for _, n := range []int{1, 2, 3, 5, 64, len(in)} {
				got, err := assemble(t, inPieces(in, n)...)
				if err != nil {
					t.Fatalf("pieces of %d: %v", n, err)
				}
				if want.Usage.Output == 0 {
					got.Usage.Output = 0 // the start says 1
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
	got, err := assemble(t, stream(streamed[1].events...))
	if err != nil {
		t.Fatal(err)
	}
	// An SDK's order of fields and white space; thinking omitted.
	sent := message(t, `{"content": [{"text":"Reading.","type":"text","cache_control":{"type":"ephemeral"}},
		{"input":{"n":12345678901234567890,"path":"a\u00e9.go"},"name":"read","id":"toolu_1","type":"tool_use"},
		{"type":"tool_use","id":"toolu_2","name":"list","input":{}}], "role":"assistant"}`)
	if got.Messages[0].Digest != sent.Digest {
		t.Errorf("recorded\n%s\nsent\n%s", got.Messages[0].Raw, sent.Raw)
	}
	if want := (furl.Usage{Input: 10, CacheRead: 200, CacheWrite: 20, CacheWrite1h: 10, Output: 77}); got.Usage != want {
		t.Errorf("usage %+v, want %+v", got.Usage, want)
	}
}

// Of an interrupted stream, everything that can be sent back is kept: each
// message is a prefix of the whole one, and no call is partial.
func TestCutStream(t *testing.T) {
	for _, tc := range streamed {
		full, err := assemble(t, stream(tc.events...))
		if err != nil {
			t.Fatal(err)
		}
		for i, data := range tc.events {
			if data == finished {
				break
			}
			half := "event: x\ndata: " + data[:len(data)/2]
			for _, in := range []string{stream(tc.events[:i]...), stream(tc.events[:i]...) + half} {
				got, err := assemble(t, in)
				if err != nil || got.Complete {
					t.Fatalf("%s cut at event %d: complete %v, %v", tc.name, i, got.Complete, err)
				}
				if len(got.Messages) == 0 {
					continue
				}
				for _, b := range got.Messages[0].Blocks {
					known := slices.ContainsFunc(full.Messages[0].Blocks, func(f furl.Block) bool {
						return f.Kind == b.Kind && f.ID == b.ID && f.Name == b.Name && strings.HasPrefix(f.Text, b.Text) && (b.Kind == furl.KindText || f.Text == b.Text)
					})
					if !known {
						t.Fatalf("%s cut at event %d: %s", tc.name, i, got.Messages[0].Raw)
					}
				}
			}
		}
	}
}

func TestCutStreamKeepsWordsAndWholeCalls(t *testing.T) {
	events := streamed[1].events
	in := stream(events[:slices.Index(events, stop(4))]...)
	got, err := assemble(t, in, stream(stop(4)))
	if err != nil || got.Complete || got.Stop != "" {
		t.Fatalf("%+v, %v", got, err)
	}
	var kinds []string
	for _, b := range got.Messages[0].Blocks {
		kinds = append(kinds, b.Kind.String()+b.ID)
	}
	if want := "thinking thinking text calltoolu_2"; strings.Join(kinds, " ") != want {
		t.Errorf("kept %v, want %s", kinds, want)
	}
	if got.Usage.Prompt() != 240 {
		t.Errorf("usage %+v", got.Usage)
	}
}

func TestStreamThatEndsInAnError(t *testing.T) {
	for _, tc := range []struct {
		event    string
		want     protocol.Refusal
		overflow *protocol.Overflow
	}{
		{`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`, protocol.Refusal{Status: 529, Type: "overloaded_error", Message: "Overloaded"}, nil},
		{`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 201 tokens > 200 maximum"}}`,
			protocol.Refusal{Status: 400, Type: "invalid_request_error", Message: "prompt is too long: 201 tokens > 200 maximum"}, &protocol.Overflow{Tokens: 201, Limit: 200}},
		{`{"type":"error","error":{"type":"brand_new_error","message":"m"}}`, protocol.Refusal{Status: 500, Type: "brand_new_error", Message: "m"}, nil},
	} {
		got, err := assemble(t, stream(started, begin(0, `{"type":"text","text":"a"}`), delta(0, "text_delta", "text", "b"), tc.event, finished))
		if err != nil || got.Complete {
			t.Fatalf("%s: complete %v, %v", tc.event, got.Complete, err)
		}
		if diff := cmp.Diff(&tc.want, got.Refusal); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(tc.overflow, got.Overflow); diff != "" {
			t.Error(diff)
		}
		if got.Messages[0].Blocks[0].Text != "ab" {
			t.Errorf("kept %s", got.Messages[0].Raw)
		}
	}
}

func TestDecodeReplyOfRefusals(t *testing.T) {
	for _, tc := range []struct {
		status   int
		body     string
		want     protocol.Refusal
		overflow *protocol.Overflow
	}{
		{400, string(ErrorBody(PromptTooLong(300, 200), "req")), *PromptTooLong(300, 200), &protocol.Overflow{Tokens: 300, Limit: 200}},
		{413, string(ErrorBody(BodyTooLarge(), "")), *BodyTooLarge(), &protocol.Overflow{}},
		{429, `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`, protocol.Refusal{Status: 429, Type: "rate_limit_error", Message: "slow down"}, nil},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"m","details":{"error_code":"thread_unsupported_request"}}}`,
			protocol.Refusal{Status: 400, Type: "invalid_request_error", Code: "thread_unsupported_request", Message: "m"}, nil},
		{400, `{"type":"error","error":{"details":null,"type":"invalid_request_error","message":"m"}}`, protocol.Refusal{Status: 400, Type: "invalid_request_error", Message: "m"}, nil},
		{502, `<html>bad gateway</html>`, protocol.Refusal{Status: 502, Type: "api_error", Message: "<html>bad gateway</html>"}, nil},
		{418, ``, protocol.Refusal{Status: 418, Type: "invalid_request_error"}, nil},
	} {
		got, err := replies.DecodeReply(tc.status, []byte(tc.body))
		if err != nil || got.Complete || len(got.Messages) > 0 {
			t.Fatalf("%s: %+v, %v", tc.body, got, err)
		}
		if diff := cmp.Diff(&tc.want, got.Refusal); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(tc.overflow, got.Overflow); diff != "" {
			t.Error(diff)
		}
	}
}

func TestDecodeReply(t *testing.T) {
	got, err := replies.DecodeReply(200, []byte(whole(`{"type":"text","text":"so far"}`, "model_context_window_exceeded", 60)))
	if err != nil || got.Overflow == nil || *got.Overflow != (protocol.Overflow{Tokens: 300, Limit: 300}) {
		t.Errorf("a full window: %+v, %v", got.Overflow, err)
	}
	got, err = replies.DecodeReply(200, []byte(`{"input_tokens":2095,"context_management":{"original_input_tokens":70000}}`))
	if err != nil || !got.Complete || got.Usage.Input != 2095 || string(got.ContextManagement) != `{"original_input_tokens":70000}` {
		t.Errorf("a count: %+v, %v", got, err)
	}
	for _, body := range []string{``, `[]`, `{"type":"message"`, `{"type":"completion"}`, `{}`} {
		if _, err := replies.DecodeReply(200, []byte(body)); err == nil {
			t.Errorf("%s: no error", body)
		}
	}
	if got, err = replies.DecodeReply(200, []byte(`{"type":"error","error":{"type":"overloaded_error","message":"m"}}`)); err != nil || got.Refusal == nil || got.Refusal.Status != 529 {
		t.Errorf("an error with status 200: %+v, %v", got, err)
	}
}

func TestStreamTellsOfEditing(t *testing.T) {
	start := strings.Replace(started, `"content":[]`,
		`"content":[],"input_transformations":[{"type":"thinking_dropped","path":"messages.1.content.0","reason":"prefix_binding_mismatch"},{"type":"thinking_dropped","path":["messages",3,"content",0],"reason":"r"},{"type":"other"}]`, 1)
	last := strings.Replace(ended("end_turn", 2), `"usage"`, `"context_management":{"applied_edits":[{"type":"clear_tool_uses_20250919","cleared_tool_uses":4}]},"usage"`, 1)
	got, err := assemble(t, stream(start, last, finished))
	if err != nil {
		t.Fatal(err)
	}
	want := []protocol.DroppedBlock{{Path: "messages.1.content.0", Reason: "prefix_binding_mismatch"}, {Path: "messages.3.content.0", Reason: "r"}}
	if diff := cmp.Diff(want, got.Dropped); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(string(got.ContextManagement), `"cleared_tool_uses":4`) {
		t.Errorf("context management %s", got.ContextManagement)
	}
}

func TestStreamThatIsNone(t *testing.T) {
	for name, tc := range map[string]struct{ events, want string }{
		"no JSON":          {"event: ping\ndata: {nope\n\n", `read Anthropic stream: event "ping": JSON at offset 1: expected a field name`},
		"no object":        {"data: 7\n\n", `read Anthropic stream: event "": expected an object`},
		"a delta too soon": {stream(started, delta(0, "text_delta", "text", "x")), "read Anthropic stream: content_block_delta: block 0 was not started"},
		"no index":         {stream(started, `{"type":"content_block_start","content_block":{"type":"text"}}`), "read Anthropic stream: content_block_start: expected an index"},
		"no block":         {stream(started, `{"type":"content_block_start","index":0}`), "read Anthropic stream: content_block_start: expected a content block"},
	} {
		got, err := assemble(t, tc.events, stream(begin(0, `{"type":"text","text":"late"}`), finished))
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
		if got == nil || got.Complete || len(got.Messages) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got, err := assemble(t, "data: [DONE]\n\ndata:\n\n"); err != nil || got.Complete {
		t.Errorf("only the end of another format: %+v, %v", got, err)
	}
}

func TestErrorsAreTheProvidersOwn(t *testing.T) {
	body := replies.ErrorBody(&protocol.Refusal{Status: 504, Message: "too \"slow\""}, "req_9")
	if want := `{"type":"error","error":{"type":"timeout_error","message":"too \"slow\""},"request_id":"req_9"}`; string(body) != want {
		t.Errorf("body %s, want %s", body, want)
	}
	event, data := replies.ErrorEvent(&protocol.Refusal{Status: 502, Message: "gone"})
	a := replies.NewAssembler()
	if err := a.Feed(event, data); err != nil {
		t.Fatal(err)
	}
	if got, _ := a.Reply(); got.Refusal == nil || got.Refusal.Type != "api_error" || got.Refusal.Message != "gone" {
		t.Errorf("%s %s reads as %+v", event, data, got.Refusal)
	}
}

// FuzzStream: any input gives a reply that can be sent back, and it does not
// depend on how the bytes are cut.
func FuzzStream(f *testing.F) {
	for _, tc := range streamed {
		f.Add([]byte(stream(tc.events...)), 10)
	}
	f.Add([]byte("event: content_block_start\ndata: {\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"input\":7}}\n\n"), 3)
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		got, err := assemble(t, string(in))
		cut = max(0, min(cut, len(in)))
		again, err2 := assemble(t, string(in[:cut]), string(in[cut:]))
		if diff := cmp.Diff(got, again); diff != "" || fmt.Sprint(err) != fmt.Sprint(err2) {
			t.Fatalf("cut at %d: %v, %v\n%s", cut, err, err2, diff)
		}
		for _, m := range got.Messages {
			if again, err := Codec.DecodeMessage(m.Raw); err != nil || again.Digest != m.Digest {
				t.Fatalf("%s: %v", m.Raw, err)
			}
		}
		if err != nil && (errors.Unwrap(err) == nil || got.Complete) {
			t.Fatalf("%v, complete %v", err, got.Complete)
		}
	})
}

// FuzzDecodeReply: no body causes a panic.
func FuzzDecodeReply(f *testing.F) {
	for _, tc := range streamed {
		f.Add(200, []byte(tc.body))
	}
	f.Add(400, []byte(`{"error":{"message":"prompt is too long: 1 tokens > 2 maximum"}}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		got, err := replies.DecodeReply(status, body)
		if err == nil && got.Complete == (got.Refusal != nil) {
			t.Fatalf("complete %v, refusal %+v", got.Complete, got.Refusal)
		}
	})
}
