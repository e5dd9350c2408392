package onereply

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

var mergedFormats = []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses}

func isOwn(name string) bool { return strings.HasPrefix(name, "memory_") }

// merged relays a stream in pieces of n bytes.
func merged(format furl.Format, stream []byte, n int) (m *Merger, got []byte) {
	rec := httptest.NewRecorder()
	m = New(rec, format, true, isOwn)
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

// FuzzMerger: a stream without a call of recall passes through byte for byte,
// well formed or not and however it is cut; one with a call ends without a
// panic, and says the same whatever the pieces.
func FuzzMerger(f *testing.F) {
	for _, s := range []string{
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"memory_get\",\"input\":{}}}\n\nevent: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":5}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"h\\u00e9\",\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"memory_get\",\"arguments\":\"\"}},{\"index\":1,\"id\":\"y\",\"function\":{\"name\":\"bash\",\"arguments\":\"{}\"}}]}}]}\r\n\r\ndata: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}],\"usage\":{\"prompt_tokens\":3}}\n\ndata: [DONE]\n\n",
		"event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"r\"}}\n\n: ping\n\nevent: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"sequence_number\":1,\"output_index\":0,\"item\":{\"type\":\"function_call\",\"name\":\"memory_get\"}}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":2,\"response\":{\"id\":\"r\",\"output\":[{\"type\":\"function_call\",\"name\":\"memory_get\"}],\"usage\":{}}}\n\n",
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":4,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"bash\"}}",
		"data: {\n\ndata: x", "\xef\xbb\xbfdata:1\n\n:\n", "event: error\ndata: {\"type\":\"error\"}\n\nhalf",
	} {
		for i := range mergedFormats {
			f.Add([]byte(s), uint8(i), uint8(7))
		}
	}
	f.Fuzz(func(t *testing.T, stream []byte, format, n uint8) {
		kind := mergedFormats[int(format)%len(mergedFormats)]
		m, got := merged(kind, stream, int(n)+1)
		whole, want := merged(kind, stream, len(stream)+1)
		if m.Called() != whole.Called() || !bytes.Equal(got, want) {
			t.Fatalf("in pieces of %d\n%q\nwhole\n%q", int(n)+1, got, want)
		}
		if !m.Called() && !bytes.Equal(got, stream) {
			t.Fatalf("nothing is recalled, and\n%q\nbecame\n%q", stream, got)
		}
		reply := new(furl.Reply)
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

// An event larger than may be held makes the stream pass through as it comes.
func TestMergerOfHugeEvents(t *testing.T) {
	stream := []byte("data: {\"type\":\"ping\"}\n\ndata: \"" + strings.Repeat("x", 5000) + "\"\n\ndata: {}\n\n")
	for _, format := range mergedFormats {
		rec := httptest.NewRecorder()
		m := New(rec, format, true, isOwn)
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
		if got := rec.Body.Bytes(); !bytes.Equal(got, stream) || !m.plain {
			t.Errorf("%s: %d bytes became %d", format, len(stream), len(got))
		}
	}
}

// What a Merger costs beside the bytes' own way: per event of a stream.
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
			m := New(rec, format, true, isOwn)
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
