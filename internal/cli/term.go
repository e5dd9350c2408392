package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/furlhq/furl/replay"
)

// style wraps text in a terminal attribute where wanted.
func style(on bool, code, text string) string {
	if !on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

const (
	bold  = "1"
	faint = "2"
)

// bar is a line of progress on a terminal; elsewhere it says nothing.
type bar struct {
	mu    sync.Mutex
	w     io.Writer
	cols  int
	drawn time.Time
	dirty bool
}

func newBar(w io.Writer, quiet bool) *bar {
	b := &bar{w: w}
	if !quiet {
		b.cols = width(w)
	}
	return b
}

// show draws how far a replay is.
func (b *bar) show(p replay.Progress) { b.say(progressLine(p)) }

// say draws a line, ten times a second at most.
func (b *bar) say(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cols == 0 || time.Since(b.drawn) < 100*time.Millisecond {
		return
	}
	b.drawn, b.dirty = time.Now(), true
	fmt.Fprintf(b.w, "\r\x1b[K%s", cut(text, b.cols-1))
}

// progressLine says which file is worked on and how far that is. How many
// files there will be is not known while folders are still being read.
func progressLine(p replay.Progress) string {
	file := fmt.Sprintf("file %d, %s", p.Files+1, label(filepath.Base(p.File)))
	if p.Total <= 0 {
		return "reading " + file
	}
	const cells = 20
	full := min(cells, cells*p.Done/p.Total)
	return fmt.Sprintf("%s%s %d of %d runs of %s", strings.Repeat("█", full), strings.Repeat("░", cells-full), p.Done, p.Total, file)
}

// clear takes the line away.
func (b *bar) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dirty {
		fmt.Fprint(b.w, "\r\x1b[K")
		b.dirty = false
	}
}

// cut shortens text to n columns.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	used, fits := 0, 0 // fits: where text ends that leaves room for the sign
	for i, r := range s {
		if used <= n-1 {
			fits = i
		}
		if used += columns(r); used > n {
			if n < 2 {
				return ""
			}
			return s[:fits] + "…"
		}
	}
	return s
}

// columns is how many columns of a terminal a character takes: two for the
// scripts of East Asia and for pictures, else one.
func columns(r rune) int {
	switch {
	case r < 0x1100:
		return 1
	case r <= 0x115f, 0x2e80 <= r && r <= 0xa4cf, 0xac00 <= r && r <= 0xd7a3, 0xf900 <= r && r <= 0xfaff,
		0xfe30 <= r && r <= 0xfe6f, 0xff00 <= r && r <= 0xff60, 0xffe0 <= r && r <= 0xffe6,
		0x1f300 <= r && r <= 0x1faff, 0x20000 <= r && r <= 0x3fffd:
		return 2
	}
	return 1
}

// textColumns is how many columns a text takes.
func textColumns(s string) int {
	n := 0
	for _, r := range s {
		n += columns(r)
	}
	return n
}

// wrap breaks text between words into lines of at most cols columns; one line
// where cols is 0.
func wrap(text string, cols int) []string {
	if cols <= 0 {
		return []string{text}
	}
	var lines []string
	line, used := "", 0
	for word := range strings.FieldsSeq(text) {
		w := textColumns(word)
		if used > 0 && used+1+w > cols {
			lines, line, used = append(lines, line), "", 0
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+w
	}
	return append(lines, line)
}

// printable makes text safe for a terminal: control characters, which could
// move the cursor or change colours, and those that turn the direction of
// writing become visible signs. Newlines and tabs stay.
func printable(s string) string { return strings.Map(visible, s) }

// label is printable on one line.
func label(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return '␀' + r
		}
		return visible(r)
	}, s)
}

func visible(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case r < ' ':
		return '␀' + r // the picture of that control character
	case r == 0x7f || 0x80 <= r && r < 0xa0:
		return '\uFFFD'
	case r == 0x61c || r == 0x200e || r == 0x200f || 0x2028 <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069:
		return '\uFFFD'
	}
	return r
}
