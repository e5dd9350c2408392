package recall

import (
	"errors"
	"testing"
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
		{Range{FromLine: 4}, "", false},
		{Range{FromLine: 3, ToLine: 2}, "", false},
	} {
		got, from, to, err := tt.r.Cut(text)
		if got != tt.want || (err == nil) != tt.ok || got != text[from:to] || err != nil && !errors.Is(err, ErrNotFound) {
			t.Errorf("%+v: %q, %d to %d, %v; want %q", tt.r, got, from, to, err, tt.want)
		}
	}
}
