package cli

import (
	"bufio"
	"io"
	"os"

	"golang.org/x/term"
)

// output is the standard output of a command. It is buffered, and Flush returns the
// first write error, so that a full disk does not look like success.
type output struct {
	*bufio.Writer
	under io.Writer
}

func newOutput(w io.Writer) *output { return &output{bufio.NewWriterSize(w, 64<<10), w} }

// width returns the number of columns of a terminal, or 0 if w is not a terminal.
func width(w io.Writer) int {
	switch o := w.(type) {
	case *output:
		w = o.under
	case *screen:
		return o.cols
	}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	if cols, _, err := term.GetSize(int(f.Fd())); err == nil && cols > 0 {
		return cols
	}
	return 80
}

// styled reports whether to use colours on w: it is a terminal, NO_COLOR is not set and
// TERM is not dumb.
func styled(w io.Writer) bool {
	if s, ok := w.(*screen); ok {
		return s.color
	}
	return width(w) > 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
