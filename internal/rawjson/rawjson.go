// Package rawjson reads and edits JSON by byte offset. A wire codec that must
// give back what it does not change byte for byte cannot use an unmarshaller:
// key order, spacing, escapes, number forms, duplicate and unknown fields would
// be lost. It notes where things stand instead, and splices.
//
// [Reader] walks a value once, front to back, and hands out offsets:
//
//	r := rawjson.NewReader(body)
//	for key := range r.Fields() {
//		switch string(key) {
//		case "model":
//			model, _ = r.String()
//		case "messages":
//			for range r.Elements() {
//				spans = append(spans, r.Skip())
//			}
//		}
//	}
//	if err := r.End(); err != nil { … }
//
// A value the loop body does not consume is skipped (and checked) by itself.
// The first error sticks: every later call does nothing, so it is enough to
// look at the end. Reader.Value keeps a value for later, when what it means
// depends on a field that comes behind it.
//
// What is accepted is what [encoding/json.Valid] accepts: JSON by RFC 8259,
// strings with any bytes that are no control characters (broken UTF-8
// included), duplicate names, nesting to [MaxDepth]. Of duplicate names a
// caller that assigns in a loop keeps the last. Other parsers keep the first, or
// take names in another case for the same: Reader.FieldsOf tells where that
// would make a difference.
//
// [Splice] applies edits; [List], [SetField] and [DropField] make them.
package rawjson

import "fmt"

// MaxDepth is how deep arrays and objects may nest. It is the limit of
// encoding/json; deeper values are refused with the offset of the bracket
// that went too far.
const MaxDepth = 10_000

// Span is a run of bytes: from Start up to, not including, End.
type Span struct{ Start, End int }

// Len is the length in bytes.
func (s Span) Len() int { return s.End - s.Start }

// Of returns the span's bytes in b, sharing memory, without spare capacity.
func (s Span) Of(b []byte) []byte { return b[s.Start:s.End:s.End] }

// Error is a fault in the JSON text, or a value that is not of the kind that
// was asked for.
type Error struct {
	Offset int    // in bytes from the start of what the Reader was given
	Text   string // what is wrong there
}

func (e *Error) Error() string { return fmt.Sprintf("JSON at offset %d: %s", e.Offset, e.Text) }

// Check returns nil if b is one JSON value with nothing but white space
// around it, and an *Error otherwise.
func Check(b []byte) error {
	r := NewReader(b)
	r.Skip()
	return r.End()
}
