package sse

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// ContentType is the media type of a stream of events.
const ContentType = "text/event-stream"

// Append appends an event in wire format: type and id if set, a data field
// for each line of Data (at least one if HasData), a blank line. All line
// breaks in Data are read back as line feeds; in the type or id, which cannot
// contain any, they become spaces.
func Append(dst []byte, e Event) []byte {
	if e.Type != "" {
		dst = append(append(append(dst, "event: "...), oneLine(e.Type)...), '\n')
	}
	if e.ID != "" {
		dst = append(append(append(dst, "id: "...), oneLine(e.ID)...), '\n')
	}
	if e.HasData || len(e.Data) > 0 {
		dst = appendLines(dst, "data: ", e.Data)
	}
	return append(dst, '\n')
}

// JSON returns an event of a type whose data is one JSON value, on one line:
// line breaks in JSON are white space.
func JSON(typ string, data []byte) []byte {
	data = bytes.ReplaceAll(data, []byte{'\n'}, []byte{' '})
	return Append(make([]byte, 0, len(typ)+len(data)+16), Event{Type: typ, Data: data, HasData: true})
}

// AppendComment appends a comment, which readers ignore: a keep-alive.
func AppendComment(dst []byte, text string) []byte {
	return append(appendLines(dst, ": ", []byte(text)), '\n')
}

func appendLines(dst []byte, head string, text []byte) []byte {
	for {
		line, rest := cutLine(text)
		dst = append(append(append(dst, head...), line...), '\n')
		if len(line) == len(text) {
			return dst
		}
		text = rest
	}
}

var lineBreaks = strings.NewReplacer("\r\n", " ", "\r", " ", "\n", " ", "\x00", " ")

func oneLine(s string) string { return lineBreaks.Replace(s) }

// Writer writes events and flushes each one. It is for one goroutine.
type Writer struct {
	w     io.Writer
	flush func() error // nil: w does not buffer
	buf   bytes.Buffer
}

// NewWriter returns a Writer to w. If w is an [http.ResponseWriter], each
// write is flushed; the caller sets its header.
func NewWriter(w io.Writer) *Writer {
	out := &Writer{w: w}
	if r, ok := w.(http.ResponseWriter); ok {
		out.flush = http.NewResponseController(r).Flush
	}
	return out
}

// Event writes an event.
func (w *Writer) Event(e Event) error { return w.write(Append(w.buf.AvailableBuffer(), e)) }

// Comment writes a comment.
func (w *Writer) Comment(text string) error {
	return w.write(AppendComment(w.buf.AvailableBuffer(), text))
}

func (w *Writer) write(b []byte) error {
	w.buf.Write(b)
	defer w.buf.Reset()
	if _, err := w.w.Write(w.buf.Bytes()); err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	if w.flush == nil {
		return nil
	}
	if err := w.flush(); err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	return nil
}
