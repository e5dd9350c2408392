package recall

import (
	"errors"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
)

func TestHandle(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Handle
	}{
		{"furl:12.3", Handle{"", 12, 3}},
		{"12.3", Handle{"", 12, 3}},
		{"12", Handle{"", 12, -1}},
		{" [furl:12]. ", Handle{"", 12, -1}},
		{"`furl:12.0`", Handle{"", 12, 0}},
		{"furl:my-session.1/7.0", Handle{"my-session.1", 7, 0}},
		{"my-session/7", Handle{"my-session", 7, -1}},
		{"", Handle{}}, {"furl:", Handle{}}, {"0", Handle{}}, {"1.-1", Handle{}}, {"+1", Handle{}}, {"1.+2", Handle{}},
		{"a/b/1", Handle{}}, {"/1", Handle{}}, {"99999999999999999999", Handle{}}, {"1.99999999999", Handle{}}, {"ä/1", Handle{}},
	} {
		got, err := ParseHandle(tt.text)
		if got != tt.want || (err != nil) != (tt.want == Handle{}) {
			t.Errorf("ParseHandle(%q) = %+v, %v; want %+v", tt.text, got, err, tt.want)
		}
	}
}

func FuzzHandle(f *testing.F) {
	f.Add("furl:s/1.2")
	f.Add("3")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := ParseHandle(text)
		if err != nil {
			return
		}
		if again, err := ParseHandle(h.String()); again != h || err != nil {
			t.Errorf("%q is %+v, written %s, which is %+v, %v", text, h, h, again, err)
		}
	})
}

func TestGetX2(t *testing.T) {
	store := inmem.New()
	key := furl.SessionKey{Session: "s"}
	raw := `{"role":"assistant","content":[{"type":"text","text":"a\u00e9"},{"x":1}]}`
	start := strings.Index(raw, `{"type"`)
	end := strings.Index(raw, `,{"x"`)
	m := &furl.Message{Role: furl.RoleAssistant, Format: furl.FormatAnthropic, Raw: []byte(raw), Blocks: []furl.Block{
		{Kind: furl.KindText, Text: "aé", Start: start, End: end},
		{Kind: furl.KindCall, ID: "c", Name: "Read", Args: []byte(`{"path":"x"}`)},
	}}
	put(t, store, key, []furl.Record{
		{Seq: 1, At: begun, Body: m},
		{Seq: 2, Parent: 1, At: begun, Body: &furl.Head{From: 1}},
	})
	for handle, want := range map[string]struct{ text, raw string }{
		"1":   {"aé\n\n" + `{"path":"x"}`, raw},
		"1.0": {"aé", raw[start:end]},
		"1.1": {`{"path":"x"}`, ""},
	} {
		h, err := ParseHandle(handle)
		if err != nil {
			t.Fatal(err)
		}
		o, err := Get(t.Context(), store, key, h)
		if err != nil || o.Text != want.text || string(o.Raw) != want.raw || o.Handle.Session != "s" || o.Record.Seq != 1 {
			t.Errorf("Get(%s) = %+v, %v; want %+v", handle, o, err, want)
		}
	}
	for handle, want := range map[string]error{"1.2": ErrNotFound, "2": ErrNotFound, "3": ErrNotFound, "other/1": furl.ErrNoSession} {
		h, _ := ParseHandle(handle)
		if o, err := Get(t.Context(), store, key, h); !errors.Is(err, want) {
			t.Errorf("Get(%s) = %+v, %v; want %v", handle, o, err, want)
		}
	}
}

func TestRange(t *testing.T) {
	const text = "one\ntwo\nthree"
	for _, tt := range []struct {
		r    Range
		want string
		ok   bool
	}{
		{Range{}, text, true},
		{Range{FromLine: 2}, "two\nthree", true},
		{Range{FromLine: 2, ToLine: 2}, "two\n", true},
		{Range{ToLine: 1}, "one\n", true},
		{Range{ToLine: 9}, text, true},
		{Range{FromLine: 3, ToLine: 9}, "three", true},
		{Range{From: 1, To: 5}, "ne\nt", true},
		{Range{From: 1, To: 500}, text[1:], true},
		{Range{From: 13}, "", true},
		{Range{FromLine: 2, From: 1, To: 2}, "w", true},
		{Range{FromLine: 4}, "", false},
		{Range{From: 14}, "", false},
		{Range{FromLine: 3, ToLine: 2}, "", false},
		{Range{From: -1}, "", false},
		{Range{From: 5, To: 2}, "", false},
	} {
		got, from, to, err := tt.r.Cut(text)
		if got != tt.want || (err == nil) != tt.ok || got != text[from:to] || err != nil && !errors.Is(err, ErrNotFound) {
			t.Errorf("%+v: %q, %d to %d, %v; want %q", tt.r, got, from, to, err, tt.want)
		}
	}
}
