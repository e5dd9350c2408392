package cmdline

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Bar is a progress line on a terminal. Without a terminal it prints nothing.
type Bar struct {
	mu    sync.Mutex
	w     io.Writer
	Cols  int
	drawn time.Time
	dirty bool
}

// NewBar returns the progress line of a command, which prints nothing if quiet or without
// a terminal.
func NewBar(w io.Writer, quiet bool) *Bar {
	b := &Bar{w: w}
	if !quiet {
		b.Cols = Width(w)
	}
	return b
}

// Say prints a line, at most ten times a second.
func (b *Bar) Say(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Cols == 0 || time.Since(b.drawn) < 100*time.Millisecond {
		return
	}
	b.drawn, b.dirty = time.Now(), true
	fmt.Fprintf(b.w, "\r\x1b[K%s", Truncate(text, b.Cols-1))
}

// Clear removes the line.
func (b *Bar) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dirty {
		fmt.Fprint(b.w, "\r\x1b[K")
		b.dirty = false
	}
}
