// Package visible makes untrusted text safe to show: control characters, which could move a
// cursor or change colors, characters that change the direction of writing, and invisible
// characters become visible signs.
package visible

import (
	"strings"
	"unicode"
)

// Text returns s with visible signs. Newlines and tabs stay.
func Text(s string) string { return strings.Map(Rune, s) }

// Line returns s on one line: newlines and tabs become visible signs too.
func Line(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return picture(r)
		}
		return Rune(r)
	}, s)
}

// Rune returns the sign for a character, or the character if it needs none. Newlines and
// tabs stay.
func Rune(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case r < ' ':
		return picture(r)
	case r == 0x7f, 0x80 <= r && r < 0xa0, unicode.Is(unseen, r):
		return unicode.ReplacementChar
	}
	return r
}

// picture returns the sign of a control character below the space.
func picture(r rune) rune { return '␀' + r }

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
