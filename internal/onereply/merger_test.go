package onereply

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire"
)

var mergedFormats = []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses, furl.FormatGemini}

func isOwn(name string) bool { return strings.HasPrefix(name, "memory_") }

func isNone(string) bool { return false }

// merged relays a stream in pieces of n bytes.
func merged(format furl.Format, stream []byte, n int) (m *Merger, got []byte) {
	return mergedBy(isOwn, format, stream, n)
}

func mergedBy(own func(string) bool, format furl.Format, stream []byte, n int) (m *Merger, got []byte) {
	rec := httptest.NewRecorder()
	m = New(rec, wire.For(format), true, own)
	w := m.Round()
	w.WriteHeader(200)
	for rest := stream; len(rest) > 0; {
		piece := rest[:min(n, len(rest))]
		_, _ = w.Write(piece)
		rest = rest[len(piece):]
	}
	m.Flush()
	return m, rec.Body.Bytes()
}

// FuzzMerger: a stream without a call of furl's tools is relayed byte for
// byte, well formed or not and however it is cut; one with a call does not
// cause a panic, and the result does not depend on the pieces.
func FuzzMerger(f *testing.F) {
	for _, s := range []string{
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"memory_get\",\"input\":{}}}\n\nevent: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":5}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"h\\u00e9\",\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"memory_get\",\"arguments\":\"\"}},{\"index\":1,\"id\":\"y\",\"function\":{\"name\":\"bash\",\"arguments\":\"{}\"}}]}}]}\r\n\r\ndata: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}],\"usage\":{\"prompt_tokens\":3}}\n\ndata: [DONE]\n\n",
		"event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"r\"}}\n\n: ping\n\nevent: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"sequence_number\":1,\"output_index\":0,\"item\":{\"type\":\"function_call\",\"name\":\"memory_get\"}}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":2,\"response\":{\"id\":\"r\",\"output\":[{\"type\":\"function_call\",\"name\":\"memory_get\"}],\"usage\":{}}}\n\n",
		"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"},{\"functionCall\":{\"name\":\"memory_get\",\"args\":{}}},{\"functionCall\":{\"name\":\"bash\"}}],\"role\":\"model\"},\"index\":0}]}\r\n\r\ndata: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":3}}\n\n",
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":4,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"bash\"}}",
		"data: {\n\ndata: x", "\xef\xbb\xbfdata:1\n\n:\n", "event: error\ndata: {\"type\":\"error\"}\n\nhalf",
	} {
		for i := range mergedFormats {
			f.Add([]byte(s), uint8(i), uint8(7))
		}
	}
	f.Add([]byte("id: 4\ndata: {\"type\":\"response.created\",\"response\":{\"tools\":[{\"type\":\"function\",\"name\":\"bash\"}, {\"type\":\"function\",\"name\":\"memory_get\"}]}}\n\n"), uint8(2), uint8(3))
	f.Fuzz(func(t *testing.T, stream []byte, format, n uint8) {
		kind := mergedFormats[int(format)%len(mergedFormats)]
		m, got := merged(kind, stream, int(n)+1)
		whole, want := merged(kind, stream, len(stream)+1)
		if m.Called() != whole.Called() || !bytes.Equal(got, want) {
			t.Fatalf("in pieces of %d\n%q\nwhole\n%q", int(n)+1, got, want)
		}
		// Responses repeats the request's tools, some of which are removed.
		if !m.Called() && !bytes.Equal(got, stream) && kind != furl.FormatResponses {
			t.Fatalf("no call of furl's tools, but\n%q\nbecame\n%q", stream, got)
		}
		if _, plain := mergedBy(isNone, kind, stream, int(n)+1); !bytes.Equal(plain, stream) {
			t.Fatalf("no tools of furl, but\n%q\nbecame\n%q", stream, plain)
		}
		reply := new(protocol.Reply)
		if m.Called() {
			m.Next(reply)
			w := m.Round()
			w.WriteHeader(200)
			_, _ = w.Write(stream)
			m.Flush()
		}
		m.End(reply, m.Called())
	})
}

// Responses repeats the tools of the request. The client gets its own, and
// nothing else of the reply changes.
func TestMergerTakesToolsOut(t *testing.T) {
	const (
		bash   = `{"type":"function","name":"bash","parameters":{"x": 1.0}}`
		mcp    = ` {"type":"mcp","name":"memory_get"} `
		search = `{"type":"function","description":"d","name":"memory_search"}`
		get    = `{"name":"memory_get","type":"function"}`
	)
	response := func(tools string) string {
		return `{"id":"r", "output":[],"tools" : [` + tools + `],"usage":{"input_tokens":5}}`
	}
	for _, tc := range []struct{ name, tools, want string }{
		{"after the client's", bash + ", " + search + "," + get, bash},
		{"among the client's", search + "," + bash + ", " + get + "," + mcp, bash + "," + mcp},
		{"none of furl's", bash + " ," + mcp, bash + " ," + mcp},
		{"no tools", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			stream := func(tools string) string {
				var out strings.Builder
				for i, typ := range []string{"response.created", "response.in_progress", "response.output_text.delta", "response.completed"} {
					fmt.Fprintf(&out, "event: %s\nid: %d\ndata:{\"type\":%q,\"sequence_number\":%d", typ, i, typ, i)
					if !strings.Contains(typ, "delta") {
						fmt.Fprintf(&out, `,"response":%s`, response(tools))
					}
					out.WriteString("}\r\n\r\n")
				}
				return out.String()
			}
			for _, n := range []int{1, 50, 1 << 20} {
				if _, got := merged(furl.FormatResponses, []byte(stream(tc.tools)), n); string(got) != stream(tc.want) {
					t.Errorf("in pieces of %d the stream is\n%s\nwant\n%s", n, got, stream(tc.want))
				}
			}
			rec := httptest.NewRecorder()
			rec.Header().Set("Content-Length", fmt.Sprint(len(response(tc.tools))))
			m := New(rec, wire.For(furl.FormatResponses), false, isOwn)
			w := m.Round()
			w.WriteHeader(200)
			_, _ = w.Write([]byte(response(tc.tools)))
			m.End(new(protocol.Reply), false)
			if got := rec.Body.String(); got != response(tc.want) || rec.Header().Get("Content-Length") != fmt.Sprint(len(got)) {
				t.Errorf("the body is\n%s\nwant\n%s", got, response(tc.want))
			}
		})
	}
}

// An event larger than the limit makes the rest of the stream pass unchanged.
func TestMergerOfHugeEvents(t *testing.T) {
	stream := []byte("data: {\"type\":\"ping\"}\n\ndata: \"" + strings.Repeat("x", 5000) + "\"\n\ndata: {}\n\n")
	for _, format := range mergedFormats {
		rec := httptest.NewRecorder()
		m := New(rec, wire.For(format), true, isOwn)
		w := m.Round()
		m.scan.Max = 1000
		w.WriteHeader(200)
		for rest := stream; len(rest) > 0; {
			n := min(64, len(rest))
			if _, err := w.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		m.Flush()
		if got := rec.Body.Bytes(); !bytes.Equal(got, stream) || !m.unparsed {
			t.Errorf("%s: %d bytes became %d", format, len(stream), len(got))
		}
	}
}

// The cost of a Merger for each event of a stream.
func BenchmarkMerger(b *testing.B) {
	for _, format := range mergedFormats {
		event := "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"some words of it\"}}\n\n"
		switch format {
		case furl.FormatChat:
			event = "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"some words of it\"},\"finish_reason\":null}]}\n\n"
		case furl.FormatResponses:
			event = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":9,\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\"some words of it\"}\n\n"
		}
		b.Run(fmt.Sprint(format), func(b *testing.B) {
			rec := httptest.NewRecorder()
			m := New(rec, wire.For(format), true, isOwn)
			w := m.Round()
			w.WriteHeader(200)
			piece := []byte(event)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = w.Write(piece)
				rec.Body.Reset()
			}
		})
	}
}
