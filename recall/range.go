package recall

import (
	"fmt"
	"strings"
)

// Range is a range of lines of a text. The zero value is the whole text.
type Range struct {
	// FromLine and ToLine are the first and the last line, counted from 1. Zero
	// is the first line of the text, or the last.
	FromLine, ToLine int
}

// Cut returns the lines of the range, text[from:to], as far as they exist. A
// range that starts after the last line is an error wrapping ErrNotFound.
func (r Range) Cut(text string) (piece string, from, to int, err error) {
	if r.FromLine < 0 || r.ToLine < 0 || r.ToLine > 0 && r.ToLine < r.FromLine {
		return "", 0, 0, fmt.Errorf("invalid range of lines %d to %d: %w", r.FromLine, r.ToLine, ErrNotFound)
	}
	from, to = 0, len(text)
	if r.FromLine > 1 {
		var ok bool
		if from, ok = lineStart(text, r.FromLine); !ok {
			return "", 0, 0, fmt.Errorf("line %d of %d: %w", r.FromLine, strings.Count(text, "\n")+1, ErrNotFound)
		}
	}
	if r.ToLine > 0 {
		if end, ok := lineStart(text, r.ToLine+1); ok {
			to = end
		}
	}
	return text[from:to], from, to, nil
}

// lineStart returns the offset of a line, counted from 1.
func lineStart(text string, line int) (at int, ok bool) {
	for ; line > 1; line-- {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return 0, false
		}
		at += i + 1
	}
	return at, true
}
