package cli

import (
	"bufio"
	"io"
	"os"

	"golang.org/x/term"
)

// output is where a command prints: buffered, since a session is printed line
// by line, and with the first fault of writing kept until the end, so that a
// full disk does not look like success.
type output struct {
	*bufio.Writer
	under io.Writer
}

func newOutput(w io.Writer) *output { return &output{bufio.NewWriterSize(w, 64<<10), w} }

// width is how many columns a terminal has; 0 if w is none.
func width(w io.Writer) int {
	if o, ok := w.(*output); ok {
		w = o.under
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

// styled says whether w wants colour: a terminal, unless NO_COLOR is set or
// the terminal is dumb.
func styled(w io.Writer) bool {
	return width(w) > 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
