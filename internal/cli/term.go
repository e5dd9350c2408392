package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/furlhq/furl/replay"
)

// width is how many columns a terminal has; 0 if w is none.
func width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	if cols, _, err := term.GetSize(int(f.Fd())); err == nil && cols > 0 {
		return cols
	}
	return 80
}

// styled says whether w wants colour: a terminal, unless NO_COLOR is set or
// the terminal is dumb.
func styled(w io.Writer) bool {
	return width(w) > 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

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

func newBar(w io.Writer, quiet bool, _ int) *bar {
	b := &bar{w: w}
	if !quiet {
		b.cols = width(w)
	}
	return b
}

// show draws how far a replay is, ten times a second at most.
func (b *bar) show(p replay.Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cols == 0 || time.Since(b.drawn) < 100*time.Millisecond {
		return
	}
	b.drawn, b.dirty = time.Now(), true
	const cells = 20
	full := 0
	if p.Total > 0 {
		full = cells * p.Done / p.Total
	}
	line := fmt.Sprintf("%s%s %d/%d  %d files done, now %s", strings.Repeat("█", full), strings.Repeat("░", cells-full), p.Done, p.Total, p.Files, printable(filepath.Base(p.File)))
	fmt.Fprintf(b.w, "\r\x1b[K%s", cut(line, b.cols-1))
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

// cut shortens text to n characters.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	if n < 2 {
		return ""
	}
	return string(r[:n-1]) + "…"
}

// printable makes text safe for a terminal: control characters, which could
// move the cursor or change colours, become visible signs. Newlines and tabs
// stay.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < ' ':
			return '␀' + r // the picture of that control character
		case r == 0x7f || 0x80 <= r && r < 0xa0 || r == 0x200e || r == 0x200f || 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069:
			return '�'
		}
		return r
	}, s)
}
