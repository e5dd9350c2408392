package cmdline

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// Output is the standard output of a command. It is buffered, and Flush returns the
// first write error, so that a full disk does not look like success.
type Output struct {
	*bufio.Writer
	under io.Writer
}

// NewOutput returns the buffered output of a command.
func NewOutput(w io.Writer) *Output { return &Output{bufio.NewWriterSize(w, 64<<10), w} }

// Width returns the number of columns of a terminal, or 0 if w is not a terminal.
func Width(w io.Writer) int {
	switch o := w.(type) {
	case *Output:
		w = o.under
	case *Screen:
		return o.Cols
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

// Styled reports whether to use colours on w: it is a terminal, NO_COLOR is not set and
// TERM is not dumb.
func Styled(w io.Writer) bool {
	if s, ok := w.(*Screen); ok {
		return s.Color
	}
	return Width(w) > 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Screen is the output of a command of furl that runs in a chat.
type Screen struct {
	bytes.Buffer
	Cols  int
	Color bool
}

// PlainColumns is the width of output that is not on a terminal.
const PlainColumns = 100

// PrintWrapped prints a text in lines of at most cols columns; 0: one line.
func PrintWrapped(w io.Writer, text string, cols int) {
	for _, l := range Wrap(Label(text), cols) {
		fmt.Fprintln(w, l)
	}
}

// IsTerminal reports whether a command reads from a terminal.
func IsTerminal(in io.Reader) bool {
	file, ok := in.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd()))
}

// Flush writes what was printed before a question.
func Flush(out io.Writer) error {
	if buffered, ok := out.(interface{ Flush() error }); ok {
		return buffered.Flush()
	}
	return nil
}

// PrintJSON prints a value as indented JSON.
func PrintJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Flushed is an output that is flushed after each write.
type Flushed struct{ io.Writer }

// Write writes and flushes.
func (f Flushed) Write(b []byte) (int, error) {
	n, err := f.Writer.Write(b)
	if o, ok := f.Writer.(*Output); ok && err == nil {
		err = o.Flush()
	}
	return n, err
}

// Underlying returns the file of an output, for a command that writes to it directly.
func Underlying(o *Output) io.Writer {
	_ = o.Flush() // an error is returned again at the end
	return o.under
}
