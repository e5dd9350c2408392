package record

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
)

// JSON writes records as JSON and reads them back: one object each, on one
// line, its fields always in the same order. It keeps everything that Encode
// keeps. People, the page and other programs read it; docs/internals/record-json.md lists
// the fields.
//
// Records have no MarshalJSON, because package encoding/json would rewrite the
// bytes that a message had on the wire.
type JSON struct {
	// Codec returns the codec of a wire format, nil for an unknown one. If
	// set, a message whose blocks are just what its bytes decode to is written
	// without them, which halves it; a reader needs the same codecs. If nil,
	// blocks are always written.
	Codec func(furl.Format) protocol.Codec
}

// Append appends the record's JSON to dst, without a newline.
func (j JSON) Append(dst []byte, r furl.Record) ([]byte, error) {
	if indexOf(r.Body) < 0 {
		return dst, fmt.Errorf("write record %d as JSON: unknown body %T", r.Seq, r.Body)
	}
	w := newJSONWriter(dst, j.Codec)
	defer w.done()
	describe(&encoding{mode: writeJSON, jsonWriter: w}, &r)
	return append(w.out, '}'), nil
}

// Parse returns the record that Append wrote. Space between the tokens does
// not matter, except in what a message had on the wire. Unknown fields are
// skipped. Parse keeps nothing of data.
func (j JSON) Parse(data []byte) (r furl.Record, err error) {
	d := newJSONReader(data, j.Codec)
	defer d.done()
	if d.err == nil {
		describe(&encoding{mode: readJSON, jsonReader: d}, &r)
	}
	if d.err != nil {
		return furl.Record{}, fmt.Errorf("read record %d: %w", r.Seq, d.err)
	}
	return r, nil
}

// AppendBlock appends a block as it is in the JSON of a message, for blocks
// that are in none, such as those of a preamble.
func (j JSON) AppendBlock(dst []byte, b *furl.Block) []byte {
	w := newJSONWriter(dst, j.Codec)
	defer w.done()
	block(&encoding{mode: writeJSON, jsonWriter: w}, b)
	return append(w.out, '}')
}

// ParseBlock returns a block that AppendBlock wrote.
func (j JSON) ParseBlock(data []byte) (b furl.Block, err error) {
	d := newJSONReader(data, j.Codec)
	defer d.done()
	if d.err == nil {
		block(&encoding{mode: readJSON, jsonReader: d}, &b)
	}
	if d.err != nil {
		return furl.Block{}, fmt.Errorf("read a block: %w", d.err)
	}
	return b, nil
}

// jsonTime is a time that RFC 3339 cannot hold: years beyond four digits,
// zones that are off by seconds.
type jsonTime struct {
	Unix   int64 `json:"unix"`
	Nanos  int64 `json:"nanos,omitempty"`
	Offset int   `json:"offset,omitempty"` // of the zone, in seconds
}

// sameMoment reports whether two times are the same instant in zones with the
// same offset.
func sameMoment(a, b time.Time) bool {
	_, x := a.Zone()
	_, y := b.Zone()
	return a.Equal(b) && x == y
}

// inZone returns a time in a zone that depends on nothing but its offset, not
// on where the program runs.
func inZone(t time.Time, offset int) time.Time {
	if offset == 0 {
		return t.UTC()
	}
	return t.In(time.FixedZone("", offset))
}

// decodesTo reports whether the bytes of a message decode to its very blocks,
// sizes aside.
func decodesTo(codec func(furl.Format) protocol.Codec, m *furl.Message) bool {
	back, err := decodeMessage(codec, m.Format, m.Raw)
	if err != nil || back.Role != m.Role || len(back.Blocks) != len(m.Blocks) {
		return false
	}
	for i := range m.Blocks {
		if !sameBlock(&m.Blocks[i], &back.Blocks[i]) {
			return false
		}
	}
	return true
}

func decodeMessage(codec func(furl.Format) protocol.Codec, f furl.Format, raw []byte) (*furl.Message, error) {
	if codec == nil {
		return nil, fmt.Errorf("its blocks are not listed, and need the codec of %q", f)
	}
	c := codec(f)
	if c == nil {
		return nil, fmt.Errorf("its format %q is unknown", f)
	}
	return c.DecodeMessage(raw)
}

func sameBlock(a, b *furl.Block) bool {
	return a.Kind == b.Kind && a.Text == b.Text && a.ID == b.ID && a.Name == b.Name && bytes.Equal(a.Args, b.Args) &&
		a.Error == b.Error && slices.Equal(a.Media, b.Media) && a.Signature == b.Signature &&
		a.CacheMark == b.CacheMark && a.Own == b.Own && a.Observation == b.Observation && a.ErrorText == b.ErrorText && a.Start == b.Start && a.End == b.End
}
