package cli

import (
	"io"
	"strings"
	"unicode/utf8"
)

// printableWriter makes what is written to a terminal printable. A character may
// be cut in two by writes; Flush writes what was left of the last one.
type printableWriter struct {
	w    io.Writer
	rest []byte // the beginning of a character
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

// cutCharacter is how many bytes at the end of text are the beginning of a
// character whose other bytes are missing.
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
