package tui

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
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
	return strings.Map(visible, s)
}

// label is clean on one line: newlines become spaces.
func label(s string) string { return strings.ReplaceAll(clean(s), "\n", " ") }

func visible(r rune) rune {
	switch {
	case r == '\n':
		return r
	case r < ' ':
		return '␀' + r
	case r == 0x7f, 0x80 <= r && r < 0xa0, unicode.Is(unseen, r):
		return unicode.ReplacementChar
	}
	return r
}

// unseen are invisible characters that no script and no emoji needs: those that change
// the direction of writing, zero-width spaces and soft hyphens, tags, and
// noncharacters. It does not include the joiners U+200C and U+200D and the variation
// selectors.
var unseen = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00ad, Hi: 0x00ad, Stride: 1}, {Lo: 0x061c, Hi: 0x061c, Stride: 1}, {Lo: 0x180e, Hi: 0x180e, Stride: 1},
		{Lo: 0x200b, Hi: 0x200b, Stride: 1}, {Lo: 0x200e, Hi: 0x200f, Stride: 1}, {Lo: 0x2028, Hi: 0x202e, Stride: 1},
		{Lo: 0x2060, Hi: 0x206f, Stride: 1}, {Lo: 0xfdd0, Hi: 0xfdef, Stride: 1}, {Lo: 0xfeff, Hi: 0xfeff, Stride: 1},
		{Lo: 0xfff9, Hi: 0xfffb, Stride: 1}, {Lo: 0xfffe, Hi: 0xffff, Stride: 1},
	},
	R32:         []unicode.Range32{{Lo: 0xe0000, Hi: 0xe00ff, Stride: 1}},
	LatinOffset: 1,
}

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
			b.WriteString(strings.Map(visible, seq))
		}
		s, state = s[max(n, 1):], next
	}
	return b.String()
}

func escapes(r rune) bool { return visible(r) != r || r == unicode.ReplacementChar }

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
