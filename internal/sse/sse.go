// Package sse reads and writes streams of server-sent events
// (text/event-stream, in the WHATWG HTML standard "Server-sent events").
//
// A [Scanner] reads the bytes as they arrive from the network, cut anywhere,
// and yields the events with their exact bytes, so that a proxy can relay
// bytes first and interpret them later:
//
//	for e, err := range s.Feed(chunk) {
//		if err != nil { … } // the stream cannot be parsed; continue to relay
//		if e.HasData { use(e.Type, e.Data) }
//	}
//
// The events do not depend on how the bytes are cut, and the concatenation of
// their Raw bytes is the stream.
package sse

import (
	"errors"
	"fmt"
)

// Event is one event of a stream: the lines up to and including a blank one.
type Event struct {
	// Type is the event's type; "" if the stream names none, which a browser
	// calls "message".
	Type string
	// Data is the values of the data fields, joined by line feeds. In events
	// of a Scanner it shares the Scanner's memory, see [Scanner.Feed].
	Data []byte
	// HasData is set if there was a data field. Lines without one, mostly
	// comments, are not an event to a reader but must be relayed.
	HasData bool
	// ID is the value of an id field of this event, "" if it has none.
	ID string
	// Raw is all bytes of the event, including blank line and comments.
	// Writers ignore it.
	Raw []byte
	// Start is the offset of Raw in the stream, in bytes.
	Start int64
	// Open is set if the stream ended before the blank line that ends an
	// event. A browser drops such an event; some servers omit the line.
	Open bool
}

// End is the offset of the end of the event in the stream.
func (e *Event) End() int64 { return e.Start + int64(len(e.Raw)) }

// ErrTooLarge is wrapped by the error of a Scanner for an event larger than
// its limit.
var ErrTooLarge = errors.New("event too large")

// DefaultMax is the default limit of an event's size: the last event of a
// Responses stream repeats the whole reply, including images and encrypted
// reasoning.
const DefaultMax = 32 << 20

func tooLarge(start int64, most int) error {
	return fmt.Errorf("event stream at byte %d: %w: over %d bytes", start, ErrTooLarge, most)
}
