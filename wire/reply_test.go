package wire_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/wire"
)

// requests are requests to the sim; STREAM says whether to stream.
var requests = map[furl.Format]struct{ path, body string }{
	furl.FormatAnthropic: {"/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":4000,"stream":STREAM,"thinking":{"type":"enabled","budget_tokens":2000},"tools":[{"name":"read","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"hi"}]}`},
	furl.FormatChat:      {"/v1/chat/completions", `{"model":"gpt-5","stream":STREAM,"tools":[{"type":"function","function":{"name":"read","parameters":{"type":"object"}}}],"messages":[{"role":"user","content":"hi"}]}`},
	furl.FormatResponses: {"/v1/responses", `{"model":"gpt-5","store":false,"include":["reasoning.encrypted_content"],"stream":STREAM,"tools":[{"type":"function","name":"read","parameters":{"type":"object"}}],"input":"hi"}`},
}

// formats are all formats.
var formats = []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses}

// model says the same to everybody.
var model = sim.PlayerFunc(func(context.Context, *protocol.Request) (sim.Reply, error) {
	return sim.Reply{Blocks: []furl.Block{
		{Kind: furl.KindThinking, Text: "Grüße überlegen: 𝄞."},
		{Kind: furl.KindText, Text: "Ich lese zwei Dateien — gleich, mit \"Zitat\" und\nZeilen."},
		{Kind: furl.KindCall, ID: "call_1", Name: "read", Args: json.RawMessage(`{"path":"a/größe.go","lines":[1,2,30]}`)},
		{Kind: furl.KindCall, ID: "call_2", Name: "read", Args: json.RawMessage(`{}`)},
	}}, nil
})

// simulated is a reply of the sim: its status, content type and bytes, and the
// error that cut it off.
type simulated struct {
	status      int
	contentType string
	body        []byte
	cut         error
}

// simulate asks a sim of its own. ok is false if the connection broke before
// there was a reply.
func simulate(t *testing.T, format furl.Format, stream bool, fault string) (r simulated, ok bool) {
	t.Helper()
	srv := httptest.NewServer(sim.New(&sim.Options{Player: model, Seed: 7, NoAuth: true}))
	defer srv.Close()
	body := strings.Replace(requests[format].body, "STREAM", fmt.Sprint(stream), 1)
	if stream && format == furl.FormatChat { // else it does not tell the usage
		body = strings.Replace(body, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+requests[format].path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Anthropic-Version": {"2023-06-01"}}
	if fault != "" {
		req.Header.Set(sim.FaultHeader, fault)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return r, false
	}
	defer resp.Body.Close()
	r = simulated{status: resp.StatusCode, contentType: resp.Header.Get("Content-Type")}
	r.body, r.cut = io.ReadAll(resp.Body)
	return r, true
}

// faults are those of the sim.
var faults = []string{"", "ping", "split=bytes", "split=lines", "split=utf8", "args=odd", "args=interleaved", "cut=1", "cut=4", "cut=9", "error=3", "429 retry-after=2", "529", "500", "400", "overflow", "overflow=stream"}

// Whatever happens at the provider, and in whatever pieces its reply arrives, it
// is decoded, and a reply that arrives whole says the same, streamed or not.
func TestRepliesOfTheSim(t *testing.T) {
	for _, format := range formats {
		var whole *protocol.Reply
		for _, stream := range []bool{false, true} {
			for _, fault := range faults {
				name := fmt.Sprintf("%s stream=%v %s", format, stream, fault)
				in, ok := simulate(t, format, stream, fault)
				if !ok {
					if !strings.HasPrefix(fault, "cut") {
						t.Errorf("%s: no reply", name)
					}
					continue
				}
				first := ""
				for _, size := range []int{len(in.body) + 1, 1, 7, 100} {
					r := wire.NewReplyReader(wire.For(format), in.status, in.contentType)
					for p := range bytesOf(in.body, size) {
						if n, err := r.Write(p); n != len(p) || err != nil {
							t.Fatal(n, err)
						}
						clear(p) // it is not kept
					}
					ended := r.Ended()
					reply, err := r.Reply(in.cut)
					if err != nil {
						t.Fatalf("%s in pieces of %d: %v", name, size, err)
					}
					if r.Stream() != (stream && in.status < 400) || ended != (r.Stream() && in.cut == nil && endsKnown(format, reply)) {
						t.Errorf("%s in pieces of %d: stream %v, ended %v", name, size, r.Stream(), ended)
					}
					got := fmt.Sprintf("%v %v %+v %+v %s", reply.Complete, reply.Stop, reply.Usage, reply.Refusal, said(reply))
					if first == "" {
						first = got
					}
					if got != first {
						t.Errorf("%s in pieces of %d: %s, want %s", name, size, got, first)
					}
					checkReply(t, name, fault, in.status, reply, &whole)
				}
			}
		}
	}
}

// endsKnown reports whether the last event of a stream says that it is the last:
// an error of Chat Completions does not.
func endsKnown(format furl.Format, r *protocol.Reply) bool {
	return format != furl.FormatChat || r.Refusal == nil
}

// bytesOf yields copies of the pieces of a body.
func bytesOf(body []byte, size int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(body) > 0 {
			n := min(size, len(body))
			if !yield(bytes.Clone(body[:n])) {
				return
			}
			body = body[n:]
		}
	}
}

// checkReply holds a reply to what the fault leaves of it.
func checkReply(t *testing.T, name, fault string, status int, reply *protocol.Reply, whole **protocol.Reply) {
	t.Helper()
	if strings.HasPrefix(fault, "cut") {
		if reply.Complete {
			t.Errorf("%s: a reply that was cut off is complete", name)
		}
		return
	}
	if status >= 400 || reply.Refusal != nil {
		if reply.Complete || reply.Refusal == nil || reply.Refusal.Message == "" || status >= 400 && reply.Refusal.Status != status {
			t.Errorf("%s: status %d, complete %v, refusal %+v", name, status, reply.Complete, reply.Refusal)
		}
		if (reply.Overflow != nil) != strings.HasPrefix(fault, "overflow") {
			t.Errorf("%s: overflow %+v", name, reply.Overflow)
		}
		return
	}
	if fault == "error=3" && !strings.Contains(name, "stream=false") {
		t.Errorf("%s: the error went unseen", name)
	}
	if !reply.Complete || reply.ID == "" || reply.Model == "" || reply.Stop == "" || reply.Usage.Output == 0 {
		t.Errorf("%s: %+v", name, reply)
	}
	if *whole == nil {
		*whole = reply
	}
	if want, got := said(*whole), said(reply); want != got {
		t.Errorf("%s: decoded\n%s\nwant\n%s", name, got, want)
	}
}

// said is what a reply says, without its ids.
func said(r *protocol.Reply) string {
	var out strings.Builder
	for _, m := range r.Messages {
		for _, b := range m.Blocks {
			fmt.Fprintf(&out, "%s %v %q %s %s\n", m.Role, b.Kind, b.Text, b.Name, b.Args)
		}
	}
	return out.String()
}

// What cannot be decoded is an error, and the reply is there all the same.
func TestRepliesThatCannotBeDecoded(t *testing.T) {
	const chunk = `{"id":"a","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`
	gone := errors.New("gone")
	for _, tc := range []struct {
		name, contentType, body string
		cut                     error
		want                    string
		complete                bool
	}{
		{"a stream", "text/event-stream; charset=utf-8", "data: " + chunk + "\n\ndata: [DONE]\n\n", nil, "", true},
		{"a stream in capitals", " TEXT/Event-Stream ", "data: " + chunk + "\n\ndata: [DONE]\n\n", io.EOF, "", true},
		{"a stream under another name", "text/plain", "data: " + chunk + "\n\ndata: [DONE]\n\n", nil, "", true},
		{"a stream without a name that begins with a comment", "", ": hi\n\ndata: " + chunk + "\n\ndata: [DONE]\n\n", nil, "", true},
		{"a stream under another name that is cut off", "text/plain", "id: 1\ndata: " + chunk[:20], gone, "", false},
		{"no blank line at the end", "text/event-stream", "data: " + chunk, nil, "", true},
		{"no blank line after the last event", "text/event-stream", "data: " + chunk + "\n\ndata: [DONE]", nil, "", true},
		{"cut inside an event", "text/event-stream", "data: " + chunk[:20], gone, "", false},
		{"cut inside an event, without an error", "text/event-stream", "data: " + chunk[:20], nil, "", false},
		{"cut", "application/json", `{"id":"a","choices":[`, gone, "", false},
		{"closed after all of it", "application/json", `{"id":"a","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}` + "\n", gone, "", true},
		{"closed after what is no reply", "application/json", `[]`, gone, "decode Chat Completions reply: expected an object", false},
		{"cut, without an error", "application/json", `{"id":"a","choices":[`, io.EOF, "decode Chat Completions reply: ", false},
		{"no JSON", "application/json", "<html>", nil, "decode Chat Completions reply: expected an object", false},
		{"nothing", "application/json", "", nil, "decode Chat Completions reply: ", false},
		{"no events", "text/event-stream", "", nil, "", false},
		{"no JSON in a stream", "text/event-stream", "data: <html>\n\n", nil, "read Chat Completions stream: expected an object", false},
		{"no JSON in a stream, then more", "text/event-stream", "data: <html>\n\ndata: " + chunk + "\n\n", nil, "read Chat Completions stream: expected an object", false},
	} {
		for _, size := range []int{1, len(tc.body) + 1} {
			r := wire.NewReplyReader(wire.For(furl.FormatChat), 200, tc.contentType)
			for p := range bytesOf([]byte(tc.body), size) {
				_, _ = r.Write(p)
			}
			reply, err := r.Reply(tc.cut)
			if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) || reply == nil || reply.Complete != tc.complete || reply.Format != furl.FormatChat {
				t.Errorf("%s in pieces of %d: %+v, %v", tc.name, size, reply, err)
			}
		}
	}
	r := wire.NewReplyReader(wire.For(furl.FormatAnthropic), 529, "text/event-stream")
	_, _ = io.WriteString(r, `{"type":"error","error":{"type":"overloaded_error","message":"m"}}`)
	if reply, err := r.Reply(nil); err != nil || r.Stream() || reply.Refusal == nil || reply.Refusal.Status != 529 {
		t.Errorf("an error that claims to be a stream: %+v, %v", reply.Refusal, err)
	}
}

// Ends knows the last event of a stream. Bytes that say nothing may follow.
func TestEnds(t *testing.T) {
	for _, tc := range []struct {
		format furl.Format
		event  string
		data   string
		want   bool
	}{
		{furl.FormatAnthropic, "message_stop", `{"type":"message_stop"}`, true},
		{furl.FormatAnthropic, "error", `{"type":"error"}`, true},
		{furl.FormatAnthropic, "message_delta", `{"type":"message_delta"}`, false},
		{furl.FormatAnthropic, "ping", `{"type":"ping"}`, false},
		{furl.FormatAnthropic, "", `[DONE]`, false},
		{furl.FormatChat, "", `[DONE]`, true},
		{furl.FormatChat, "", ` [DONE] `, true},
		{furl.FormatChat, "error", `{"error":{}}`, true},
		{furl.FormatChat, "", `{"choices":[{"finish_reason":"stop"}]}`, false}, // the usage follows
		{furl.FormatChat, "", `{"choices":[{"delta":{"content":"[DONE]"}}]}`, false},
		{furl.FormatChat, "message_stop", `{}`, false},
		{furl.FormatResponses, "response.completed", `{}`, true},
		{furl.FormatResponses, "response.incomplete", `{}`, true},
		{furl.FormatResponses, "response.failed", `{}`, true},
		{furl.FormatResponses, "error", `{}`, true},
		{furl.FormatResponses, "response.output_item.done", `{}`, false},
		{furl.FormatResponses, "response.created", `{}`, false},
		{furl.FormatResponses, "", `[DONE]`, false},
	} {
		if got := wire.For(tc.format).Ends(tc.event, []byte(tc.data)); got != tc.want {
			t.Errorf("%s %q %s: %v", tc.format, tc.event, tc.data, got)
		}
	}
}

// A reply that stopped for its calls can be continued, and one that was ended by
// the model; one that was cut short by a limit cannot.
func TestContinues(t *testing.T) {
	for format, stops := range map[furl.Format]map[string]bool{
		furl.FormatAnthropic: {"tool_use": true, "end_turn": true, "max_tokens": false, "pause_turn": false, "refusal": false, "model_context_window_exceeded": false, "stop_sequence": false, "": false, "stop": false},
		furl.FormatChat:      {"tool_calls": true, "function_call": true, "stop": true, "length": false, "content_filter": false, "": false, "tool_use": false},
		furl.FormatResponses: {"completed": true, "max_output_tokens": false, "content_filter": false, "failed": false, "": false, "stop": false},
	} {
		for stop, want := range stops {
			if got := wire.For(format).Continues(stop); got != want {
				t.Errorf("%s %q: %v", format, stop, got)
			}
		}
	}
}

// A refusal at the end of a stream is decoded as one, wherever the stream was
// cut off.
func TestErrorEvent(t *testing.T) {
	refusal := &protocol.Refusal{Status: 502, Message: "furl: the provider's \"answer\"\nwas cut off"}
	for _, format := range formats {
		in, ok := simulate(t, format, true, "")
		if !ok || in.cut != nil || in.status != 200 {
			t.Fatalf("%s: %+v", format, in)
		}
		api := wire.For(format)
		event := wire.ErrorEvent(api, refusal)
		last := bytes.LastIndex(bytes.TrimSpace(in.body), []byte("\n\n"))
		for cut := range last {
			if c := in.body[cut]; cut > 300 && c != '\n' && c != ' ' && c != '"' {
				continue
			}
			var events []sse.Event
			var scan sse.Scanner
			for e, err := range scan.Feed(append(bytes.Clone(in.body[:cut]), event...)) {
				if err != nil {
					t.Fatal(err)
				}
				events = append(events, sse.Event{Type: e.Type, Data: bytes.Clone(e.Data), HasData: e.HasData})
			}
			// A client that reads the events reads the refusal as the last.
			asm := api.NewAssembler()
			e := events[len(events)-1]
			if err := asm.Feed(e.Type, e.Data); err != nil {
				t.Fatal(err)
			}
			if got, err := asm.Reply(); err != nil || got.Refusal == nil || got.Refusal.Message != refusal.Message || got.Complete {
				t.Fatalf("%s cut at %d: %+v, %v", format, cut, got, err)
			}
			if format != furl.FormatChat && !api.Ends(e.Type, e.Data) {
				t.Errorf("%s: it does not end the stream", format)
			}
		}
	}
}
