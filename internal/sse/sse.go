// Package sse reads and writes streams of server-sent events
// (text/event-stream, in the WHATWG HTML standard "Server-sent events").
//
// A [Scanner] takes the bytes as they come off the network, cut anywhere, and
// gives the events together with the exact bytes each one was made of, so that
// a relay can pass bytes on first and understand them second:
//
//	for e, err := range s.Feed(chunk) {
//		if err != nil { … } // the stream cannot be understood; relay on
//		if e.HasData { use(e.Type, e.Data) }
//	}
//
// However the bytes are cut, the events are the same, and their Raw bytes one
// after the other are the stream.
package sse

import (
	"errors"
	"fmt"
)

// Event is one event of a stream: the lines up to and with a blank one.
type Event struct {
	// Type is the event's type; "" where the stream names none, which a
	// browser calls "message".
	Type string
	// Data is the values of the data fields, joined by line feeds. When read
	// it shares memory with the Scanner, see [Scanner.Feed].
	Data []byte
	// HasData is set if there was a data field at all. Lines without one,
	// comments above all, are no event to a reader but still bytes to pass on.
	HasData bool
	// ID is the value of an id field of this event, "" if it has none.
	ID string
	// Raw is every byte of the event, blank line and comments included.
	// Writers ignore it.
	Raw []byte
	// Start is where Raw starts, in bytes from the start of the stream.
	Start int64
	// Open is set if the stream ended before the blank line that ends an
	// event. A browser drops such an event; some servers leave the line out.
	Open bool
}

// End is where the event's bytes end in the stream.
func (e *Event) End() int64 { return e.Start + int64(len(e.Raw)) }

// ErrTooLarge is wrapped by the error of a Scanner that met an event larger
// than it may hold.
var ErrTooLarge = errors.New("event too large")

// DefaultMax is the size of the largest event that a Scanner takes unless told
// otherwise: the last event of a Responses stream repeats the whole reply,
// images and encrypted reasoning included.
const DefaultMax = 32 << 20

func tooLarge(start int64, most int) error {
	return fmt.Errorf("event stream at byte %d: %w: over %d bytes", start, ErrTooLarge, most)
}
