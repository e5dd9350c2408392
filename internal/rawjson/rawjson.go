// Package rawjson reads and edits JSON by byte offset. A wire codec that must
// preserve all bytes that it does not change cannot use an unmarshaller: key
// order, spacing, escapes, number forms, duplicate and unknown fields would
// be lost. Instead it records offsets, and splices.
//
// [Reader] walks a value once, front to back, and returns offsets:
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
// A value that the loop body does not consume is skipped (and checked)
// automatically. The first error is sticky: later calls do nothing, so it is
// enough to check it at the end. Reader.Value keeps a value for later, if its
// meaning depends on a later field.
//
// The package accepts what [encoding/json.Valid] accepts: JSON by RFC 8259,
// strings with any bytes except control characters (including invalid UTF-8),
// duplicate names, nesting to [MaxDepth]. Of duplicate names, a caller that
// assigns in a loop keeps the last. Other parsers keep the first, or ignore
// the case of names: Reader.FieldsOf reports where that would make a
// difference.
//
// [Splice] applies edits; [List], [SetField] and [DropField] make them.
package rawjson

import "fmt"

// MaxDepth is the maximum nesting of arrays and objects, the limit of
// encoding/json. Deeper values are refused with the offset of the first
// bracket beyond it.
const MaxDepth = 10_000

// Span is a range of bytes: from Start up to, not including, End.
type Span struct{ Start, End int }

// Len returns the length in bytes.
func (s Span) Len() int { return s.End - s.Start }

// Of returns the span's bytes in b, sharing memory, without spare capacity.
func (s Span) Of(b []byte) []byte { return b[s.Start:s.End:s.End] }

// Error is a JSON syntax error, or a value of an unexpected type.
type Error struct {
	Offset int    // in bytes from the start of the Reader's input
	Text   string // the error at that offset
}

func (e *Error) Error() string { return fmt.Sprintf("JSON at offset %d: %s", e.Offset, e.Text) }

// Check returns nil if b is one JSON value surrounded only by white space,
// and an *Error otherwise.
func Check(b []byte) error {
	r := NewReader(b)
	r.Skip()
	return r.End()
}
