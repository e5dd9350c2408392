package sse

import (
	"bytes"
	"errors"
	"fmt"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// read feeds the pieces and returns copies of all events.
func read(t testing.TB, s *Scanner, pieces ...string) ([]Event, error) {
	t.Helper()
	var events []Event
	keep := func(e Event) {
		e.Data, e.Raw = bytes.Clone(e.Data), bytes.Clone(e.Raw)
		events = append(events, e)
	}
	for _, p := range pieces {
		chunk := []byte(p)
		for e, err := range s.Feed(chunk) {
			if err != nil {
				return events, err
			}
			keep(e)
		}
		clear(chunk) // the Scanner must not have kept it
	}
	for e, err := range s.Close() {
		if err != nil {
			return events, err
		}
		keep(e)
	}
	return events, nil
}

func data(typ, id, data, raw string, start int64) Event {
	return Event{Type: typ, ID: id, Data: []byte(data), HasData: true, Raw: []byte(raw), Start: start}
}

var streams = []struct {
	name, in string
	want     []Event
}{
	{"empty", "", nil},
	{"one", "data: x\n\n", []Event{data("", "", "x", "data: x\n\n", 0)}},
	{"named", "event: ping\ndata: {}\n\nevent: pong\r\nid: 7\r\ndata:y\r\n\r\n", []Event{
		data("ping", "", "{}", "event: ping\ndata: {}\n\n", 0),
		data("pong", "7", "y", "event: pong\r\nid: 7\r\ndata:y\r\n\r\n", 22),
	}},
	{"line ends of three kinds", "data: a\rdata: b\r\ndata: c\n\r\ndata: d\r\r", []Event{
		data("", "", "a\nb\nc", "data: a\rdata: b\r\ndata: c\n\r\n", 0),
		data("", "", "d", "data: d\r\r", 27),
	}},
	{"comments and lone blank lines", ": hello\n\n\ndata: x\n: inside\n\n", []Event{
		{Raw: []byte(": hello\n\n")},
		{Raw: []byte("\n"), Start: 9},
		data("", "", "x", "data: x\n: inside\n\n", 10),
	}},
	{"fields without a colon or of other names", "data\nretry: 12\nnope: 1\ndata\nevent\n\n", []Event{
		data("", "", "\n", "data\nretry: 12\nnope: 1\ndata\nevent\n\n", 0),
	}},
	{"one space is dropped, not two", "data:  x\ndata:\t\n\n", []Event{data("", "", " x\n\t", "data:  x\ndata:\t\n\n", 0)}},
	{"the last type counts, an id with a zero byte does not", "event: a\nevent: b\nid: 1\x002\ndata: x\n\n", []Event{
		data("b", "", "x", "event: a\nevent: b\nid: 1\x002\ndata: x\n\n", 0),
	}},
	{"byte order mark", "\uFEFFdata: x\n\n\uFEFFdata: y\n\n", []Event{
		data("", "", "x", "\uFEFFdata: x\n\n", 0),
		{Raw: []byte("\uFEFFdata: y\n\n"), Start: 12},
	}},
	{"byte order mark alone", "\uFEFF\ndata: x\n\n", []Event{
		{Raw: []byte("\uFEFF\n")},
		data("", "", "x", "data: x\n\n", 4),
	}},
	{"no blank line at the end", "data: x\n\nevent: e\ndata: ü€𝄞", []Event{
		data("", "", "x", "data: x\n\n", 0),
		{Type: "e", Data: []byte("ü€𝄞"), HasData: true, Raw: []byte("event: e\ndata: ü€𝄞"), Start: 9, Open: true},
	}},
	{"a line end but no blank line", "data: x\r\n", []Event{{Data: []byte("x"), HasData: true, Raw: []byte("data: x\r\n"), Open: true}}},
	{"half a line end at the end", "data: x\r\n\r", []Event{data("", "", "x", "data: x\r\n\r", 0)}},
}

func TestScannerHoweverCut(t *testing.T) {
	for _, tc := range streams {
		t.Run(tc.name, func(t *testing.T) {
			all, err := read(t, new(Scanner), tc.in)
			if diff := cmp.Diff(tc.want, all, cmp.Transformer("string", func(b []byte) string { return string(b) })); diff != "" || err != nil {
				t.Fatalf("%v, -want +got:\n%s", err, diff)
			}
			for i := range len(tc.in) + 1 {
				for j := i; j <= len(tc.in); j++ {
					got, err := read(t, new(Scanner), tc.in[:i], tc.in[i:j], "", tc.in[j:])
					if err != nil || !reflect.DeepEqual(all, got) {
						t.Fatalf("cut at %d and %d: %v\n%s", i, j, err, cmp.Diff(all, got))
					}
				}
			}
		})
	}
}

func TestScannerYieldsAtOnce(t *testing.T) {
	s := new(Scanner)
	for i := range 3 {
		n := 0
		for e := range s.Feed([]byte("data: x\r\n\r\n")) {
			if e.Start != int64(i*11) || e.End() != int64(i*11+11) {
				t.Errorf("event %d at [%d,%d)", i, e.Start, e.End())
			}
			n++
		}
		if n != 1 || s.Pending() != 0 {
			t.Fatalf("chunk %d gave %d events, %d bytes pending", i, n, s.Pending())
		}
	}
}

func TestScannerGoesOnAfterABreak(t *testing.T) {
	s := new(Scanner)
	var got []string
	for e := range s.Feed([]byte("data: a\n\ndata: b\n\ndata: c\n\ndata")) {
		got = append(got, string(e.Data))
		break
	}
	for e := range s.Feed([]byte(": d\n\n")) {
		got = append(got, string(e.Data))
	}
	if want := "a b c d"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestScannerBounds(t *testing.T) {
	long := "data: " + strings.Repeat("x", 100) + "\n\n"
	for _, chunk := range []int{1, 7, 1000} {
		s := &Scanner{Max: 50}
		var pieces []string
		for in := "data: ok\n\n" + long; in != ""; {
			n := min(chunk, len(in))
			pieces, in = append(pieces, in[:n]), in[n:]
		}
		got, err := read(t, s, pieces...)
		if len(got) != 1 || !errors.Is(err, ErrTooLarge) || err.Error() != "event stream at byte 10: event too large: over 50 bytes" {
			t.Errorf("chunks of %d: %d events, %v", chunk, len(got), err)
		}
		for _, err := range s.Feed([]byte("data: x\n\n")) {
			if !errors.Is(err, ErrTooLarge) {
				t.Errorf("after the error: %v", err)
			}
		}
		if s.Pending() != 0 {
			t.Errorf("%d bytes held after the error", s.Pending())
		}
	}
}

func TestAppendIsReadBack(t *testing.T) {
	for _, e := range []Event{
		{Type: "message_stop", Data: []byte(`{"type":"message_stop"}`), HasData: true},
		{ID: "12", Data: []byte("a\r\nb\rc\n\nd\n"), HasData: true},
		{Type: "a\nb\r\nc", ID: "1\x002", HasData: true},
		{Type: "only a type"},
	} {
		raw := AppendComment(nil, "two\nlines")
		raw = Append(raw, e)
		got, err := read(t, new(Scanner), string(raw))
		if err != nil || len(got) != 2 || got[0].HasData {
			t.Fatalf("%q: %d events, %v", raw, len(got), err)
		}
		want := e
		want.Data = []byte(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(e.Data)))
		want.Type, want.ID = oneLine(e.Type), oneLine(e.ID)
		if g := got[1]; g.Type != want.Type || g.ID != want.ID || string(g.Data) != string(want.Data) || g.HasData != e.HasData {
			t.Errorf("%q reads as %+v", raw, g)
		}
	}
}

func TestWriterFlushes(t *testing.T) {
	rec := httptest.NewRecorder()
	w := NewWriter(rec)
	if err := w.Comment("here"); err != nil || !rec.Flushed {
		t.Fatalf("%v, flushed %v", err, rec.Flushed)
	}
	if err := w.Event(Event{Type: "t", ID: "3", Data: []byte("x\ny")}); err != nil {
		t.Fatal(err)
	}
	if got, want := rec.Body.String(), ": here\n\nevent: t\nid: 3\ndata: x\ndata: y\n\n"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
	if err := NewWriter(broken{}).Event(Event{}); err == nil || err.Error() != "write event: gone" {
		t.Errorf("a writer that fails: %v", err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("gone") }

// FuzzChunks: any cutting of any bytes gives the same events, and the
// concatenation of their bytes is the stream.
func FuzzChunks(f *testing.F) {
	for _, tc := range streams {
		f.Add([]byte(tc.in), uint64(0x0102030401020304))
	}
	f.Fuzz(func(t *testing.T, in []byte, cuts uint64) {
		for _, most := range []int{0, 16} {
			all, wantErr := read(t, &Scanner{Max: most}, string(in))
			if wantErr == nil {
				var raw []byte
				for _, e := range all {
					if e.Start != int64(len(raw)) {
						t.Fatalf("event at %d, want %d", e.Start, len(raw))
					}
					raw = append(raw, e.Raw...)
				}
				if !bytes.Equal(raw, in) {
					t.Fatalf("the events are made of\n%q, the stream of\n%q", raw, in)
				}
			}
			var pieces []string
			for rest, i := string(in), uint64(0); rest != ""; i++ {
				n := min(int(cuts>>(i%16*4)&15), len(rest))
				if i > 15 && n == 0 {
					n = 1
				}
				pieces, rest = append(pieces, rest[:n]), rest[n:]
			}
			got, err := read(t, &Scanner{Max: most}, pieces...)
			if fmt.Sprint(err) != fmt.Sprint(wantErr) || !reflect.DeepEqual(all, got) {
				t.Fatalf("cut as %x: %v, whole: %v\n%s", cuts, err, wantErr, cmp.Diff(all, got))
			}
		}
	})
}

func BenchmarkScanner(b *testing.B) {
	one := "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" and then\"}}\n\n"
	chunk := []byte(strings.Repeat(one, 20))
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	s := new(Scanner)
	for b.Loop() {
		for e, err := range s.Feed(chunk) {
			if err != nil || !e.HasData {
				b.Fatal(err)
			}
		}
	}
}
