package cli

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable makes text safe for a terminal. It replaces control characters, which
// could move the cursor or change colours, characters that change the direction of
// writing, and invisible characters by visible signs. Newlines and tabs stay.
func printable(s string) string { return strings.Map(visible, s) }

// label is printable on one line: newlines and tabs become visible signs too.
func label(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return controlPicture(r)
		}
		return visible(r)
	}, s)
}

// controlPicture returns the sign of a control character below the space.
func controlPicture(r rune) rune { return '␀' + r }

func visible(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case r < ' ':
		return controlPicture(r)
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
		{0x00ad, 0x00ad, 1}, {0x061c, 0x061c, 1}, {0x180e, 0x180e, 1}, {0x200b, 0x200b, 1}, {0x200e, 0x200f, 1},
		{0x2028, 0x202e, 1}, {0x2060, 0x206f, 1}, {0xfdd0, 0xfdef, 1}, {0xfeff, 0xfeff, 1}, {0xfff9, 0xfffb, 1}, {0xfffe, 0xffff, 1},
	},
	R32:         []unicode.Range32{{0xe0000, 0xe00ff, 1}},
	LatinOffset: 1,
}

// printableWriter makes text for a terminal printable. Writes may split a character;
// Flush writes the rest of the last one.
type printableWriter struct {
	w    io.Writer
	rest []byte // the first bytes of a character
}

func (p *printableWriter) Write(b []byte) (int, error) {
	text := append(p.rest, b...)
	whole := len(text) - cutCharacter(text)
	p.rest = append([]byte(nil), text[whole:]...)
	if err := p.write(text[:whole]); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (p *printableWriter) Flush() error {
	rest := p.rest
	p.rest = nil
	return p.write(rest)
}

func (p *printableWriter) write(text []byte) error {
	_, err := io.WriteString(p.w, strings.Map(visible, string(text)))
	return err
}

// cutCharacter returns the number of bytes at the end of text that are the start of an
// incomplete character.
func cutCharacter(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}
