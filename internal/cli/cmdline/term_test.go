package cmdline

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

func TestTruncate(t *testing.T) {
	for _, tt := range []struct {
		in   string
		n    int
		want string
	}{
		{"short", 5, "short"},
		{"longer", 5, "long…"},
		{"日本語", 6, "日本語"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
		{"äöü", 3, "äöü"},
		{"a\u0308o\u0308u\u0308a\u0308", 3, "a\u0308o\u0308…"},
		{"👩‍👩‍👧👩‍👩‍👧", 3, "👩‍👩‍👧…"},
		{"two\nlines", 5, "two␊…"},
		{"\x1b[31mred", 5, "␛[31…"},
		{"longer", 1, "…"},
		{"", 0, ""},
	} {
		if got := Truncate(tt.in, tt.n); got != tt.want {
			t.Errorf("truncate(%q, %d) = %q, want %q", tt.in, tt.n, got, tt.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, tt := range []struct {
		in   string
		cols int
		want string
	}{
		{"one two three", 0, "one two three"},
		{"one two three", 7, "one two|three"},
		{"one two three ", 5, "one|two|three"},
		{"add --price-input and --model", 8, "add|--price-|input|and|--model"},
		{"add --price-input and --model", 14, "add|--price-input|and --model"},
		{"日本語の題名", 5, "日本|語の|題名"},
		{"unbreakable", 5, "unbre|akabl|e"},
		{"  indented text", 10, "  indented|text"},
		{"", 10, ""},
	} {
		if got := strings.Join(Wrap(tt.in, tt.cols), "|"); got != tt.want {
			t.Errorf("wrap(%q, %d) = %q, want %q", tt.in, tt.cols, got, tt.want)
		}
	}
}

// Wrapped and truncated lines fit the terminal, and wrapping loses no text.
func TestWrapFits(t *testing.T) {
	pieces := rapid.SampledFrom([]string{"a", "word", "-", "--flag-name", " ", "  ", "\t", "\n", "日", "本語", "e\u0301", "👩‍👩‍👧", "🇩🇪", "❤\ufe0f", "\u00a0", "\u200d", "\x1b[31m", "\x00", "\u202e", "\xff", "\u0e33"})
	rapid.Check(t, func(t *rapid.T) {
		in := Label(strings.Join(rapid.SliceOf(pieces).Draw(t, "text"), ""))
		cols := rapid.IntRange(2, 30).Draw(t, "columns")
		lines := Wrap(in, cols)
		for _, l := range lines {
			if n := ansi.StringWidth(l); n > cols {
				t.Errorf("a line of %d columns for %d: %q", n, cols, l)
			}
		}
		letters := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if got := letters(strings.Join(lines, "")); got != letters(in) {
			t.Errorf("wrap(%q, %d) = %q", in, cols, lines)
		}
		if n := ansi.StringWidth(Truncate(in, cols)); n > cols {
			t.Errorf("truncate(%q, %d) has %d columns", in, cols, n)
		}
	})
}

func TestTextWidth(t *testing.T) {
	for _, s := range []string{"", "a b", "title…", "└ sub", "修复", "e\u0301", "\x1b[1mbold\x1b[m", "👩‍👩‍👧"} {
		if got, want := textWidth(s), ansi.StringWidth(s); got != want {
			t.Errorf("the width of %q is %d, want %d", s, got, want)
		}
	}
}
