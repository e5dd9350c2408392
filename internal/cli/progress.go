package cli

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// bar is a progress line on a terminal. Without a terminal it prints nothing.
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

// say prints a line, at most ten times a second.
func (b *bar) say(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cols == 0 || time.Since(b.drawn) < 100*time.Millisecond {
		return
	}
	b.drawn, b.dirty = time.Now(), true
	fmt.Fprintf(b.w, "\r\x1b[K%s", truncate(text, b.cols-1))
}

// clear removes the line.
func (b *bar) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dirty {
		fmt.Fprint(b.w, "\r\x1b[K")
		b.dirty = false
	}
}
