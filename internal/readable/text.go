package readable

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Visible makes a text safe to display: it spells out terminal control
// sequences and characters that change the text direction. Line ends and tabs
// are kept.
func Visible(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	if !strings.ContainsFunc(s, unseen) {
		return s
	}
	var b strings.Builder
	for _, c := range s {
		if unseen(c) {
			fmt.Fprintf(&b, "<U+%04X>", c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

func unseen(c rune) bool {
	switch {
	case c == '\n', c == '\t':
		return false
	case c < ' ', 0x7f <= c && c < 0xa0, c == '\u2028', c == '\u2029':
		return true
	case 0x202a <= c && c <= 0x202e, 0x2066 <= c && c <= 0x2069: // overrides and isolates
		return true
	case c == '\ufeff', 0xe0000 <= c && c <= 0xe007f: // invisible
		return true
	}
	return false
}

// Line shortens a text to one line of at most limit characters.
func Line(s string, limit int) string {
	if n := limit * utf8.UTFMax * 2; len(s) > 4*n {
		s = s[:4*n] // enough, including white space
	}
	s = Visible(strings.Join(strings.Fields(s), " "))
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}
