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

// show prints the progress of a replay.
func (b *bar) show(p replay.Progress) { b.say(progressLine(p)) }

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

// progressLine describes the current file and its progress. The number of files is not
// known while folders are being read.
func progressLine(p replay.Progress) string {
	file := fmt.Sprintf("file %d, %s", p.Files+1, label(filepath.Base(p.File)))
	if p.Total <= 0 {
		return "reading " + file
	}
	const cells = 20
	full := min(cells, cells*p.Done/p.Total)
	return fmt.Sprintf("%s%s %d of %d runs of %s", strings.Repeat("█", full), strings.Repeat("░", cells-full), p.Done, p.Total, file)
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
