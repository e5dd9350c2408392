package visible

import (
	"io"
	"unicode/utf8"
)

// Writer makes text for a terminal printable. Writes may split a character;
// Flush writes the rest of the last one.
type Writer struct {
	W    io.Writer
	rest []byte // the first bytes of a character
}

// Write prints the text without its control characters.
func (p *Writer) Write(b []byte) (int, error) {
	text := append(p.rest, b...)
	whole := len(text) - cutCharacter(text)
	p.rest = append([]byte(nil), text[whole:]...)
	if err := p.write(text[:whole]); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Flush writes what Write has kept.
func (p *Writer) Flush() error {
	rest := p.rest
	p.rest = nil
	return p.write(rest)
}

func (p *Writer) write(text []byte) error {
	_, err := io.WriteString(p.W, Text(string(text)))
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
