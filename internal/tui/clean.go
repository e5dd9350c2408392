package tui

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/furlhq/furl/internal/visible"
)

// clean makes text safe for the terminal. It replaces control characters, characters
// that change the direction of writing and invisible characters by visible signs.
// Newlines stay, and a tab becomes four spaces, because its width depends on the column.
func clean(s string) string {
	if strings.Contains(s, "\r\n") {
		s = strings.ReplaceAll(s, "\r\n", "\n")
	}
	if strings.Contains(s, "\t") {
		s = strings.ReplaceAll(s, "\t", "    ")
	}
	return strings.Map(visible.Rune, s)
}

// label is clean on one line: newlines become spaces.
func label(s string) string { return strings.ReplaceAll(clean(s), "\n", " ") }

// onlyColors removes all escape sequences from rendered text, except those that set
// colors and styles, and makes other control characters visible.
func onlyColors(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	var state byte
	p := ansi.GetParser()
	defer ansi.PutParser(p)
	for len(s) > 0 {
		if i := strings.IndexFunc(s, escapes); i != 0 { // the common case: text
			if i < 0 {
				i = len(s)
			}
			b.WriteString(s[:i])
			s = s[i:]
			continue
		}
		seq, _, n, next := ansi.DecodeSequence(s, state, p)
		switch {
		case isColor(seq):
			b.WriteString(seq)
		case len(seq) > 0 && seq[0] != 0x1b:
			b.WriteString(strings.Map(visible.Rune, seq))
		}
		s, state = s[max(n, 1):], next
	}
	return b.String()
}

func escapes(r rune) bool { return visible.Rune(r) != r || r == utf8.RuneError }

// isColor reports whether seq is a complete sequence CSI … m without intermediate
// characters, which changes colors and styles.
func isColor(seq string) bool {
	params, ok := strings.CutPrefix(seq, "\x1b[")
	if !ok {
		return false
	}
	params, ok = strings.CutSuffix(params, "m")
	return ok && strings.Trim(params, "0123456789;:") == ""
}
