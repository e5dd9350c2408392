package record

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
	"unsafe"

	"github.com/furlhq/furl"
)

// binaryReader reads what binaryWriter wrote. It counts its way through the
// input: a slice that is cut at each step would be a pointer written each time.
type binaryReader struct {
	in, body []byte
	at       int // in in
	err      error
}

func (d *binaryReader) fail(text string) {
	if d.err == nil {
		d.err = errors.New(text)
	}
	d.at = len(d.in)
}

func (d *binaryReader) left() int { return len(d.in) - d.at }

func (d *binaryReader) byte() byte {
	if d.at >= len(d.in) {
		d.fail("cut off")
		return 0
	}
	b := d.in[d.at]
	d.at++
	return b
}

func (d *binaryReader) uint() uint64 {
	if d.at < len(d.in) && d.in[d.at] < 0x80 {
		d.at++
		return uint64(d.in[d.at-1])
	}
	return d.longUint()
}

func (d *binaryReader) longUint() uint64 {
	n, size := binary.Uvarint(d.in[d.at:])
	if size <= 0 {
		d.fail("not a number")
		return 0
	}
	d.at += size
	return n
}

// varint reads a zigzag number, as binary.Varint does.
func (d *binaryReader) varint() int64 {
	n := d.uint()
	return int64(n>>1) ^ -int64(n&1)
}

// bytes gives a part of the input, which the caller copies if it keeps it.
func (d *binaryReader) bytes() []byte {
	n := d.uint()
	if n > uint64(d.left()) {
		d.fail("cut off")
		return nil
	}
	from := d.at
	d.at += int(n)
	return d.in[from:d.at:d.at]
}

func (d *binaryReader) seq(_ string, v *furl.Seq)       { *v = furl.Seq(d.uint()) }
func (d *binaryReader) ref(_ string, v *furl.Seq)       { *v = furl.Seq(d.uint()) }
func (d *binaryReader) int(_ string, v *int)            { *v = int(d.varint()) }
func (d *binaryReader) count(_ string, v *int)          { *v = int(d.uint()) }
func (d *binaryReader) bool(_ string, v *bool)          { *v = d.byte() != 0 }
func (d *binaryReader) string(_ string, v *string)      { *v = string(d.bytes()) }
func (d *binaryReader) digest(_ string, v *furl.Digest) { copy(v[:], d.bytes()) }

func (d *binaryReader) pos(_ string, v *furl.Pos) {
	v.Msg = furl.Seq(d.uint())
	v.Block = int(d.varint())
}

func (d *binaryReader) float(_ string, v *float64) {
	if d.left() < 8 {
		d.fail("cut off")
		return
	}
	*v = math.Float64frombits(binary.LittleEndian.Uint64(d.in[d.at:]))
	d.at += 8
}

func (d *binaryReader) time(_ string, v *time.Time) {
	if d.byte() == 0 {
		return
	}
	sec := d.varint()
	*v = inZone(time.Unix(sec, int64(d.uint())), int(d.varint()))
}

func (d *binaryReader) enum(_ string, v *uint8, _ []string) { *v = d.byte() }

func (d *binaryReader) union(name string, of []alternative, _ int) int {
	code := d.byte()
	for i := range of {
		if of[i].code == code {
			return i
		}
	}
	d.fail(fmt.Sprintf("%s %q", name, code))
	return -1
}

func (d *binaryReader) open(string) {}

func (d *binaryReader) openIf(string, bool) bool { return d.byte() != 0 }

// list bounds the number of elements by the bytes that are left, so that a
// wrong number cannot ask for more memory than the input has.
func (d *binaryReader) list(_ string, _, size int) int {
	n := d.uint()
	if n > uint64(d.left()/size) {
		d.fail("more elements than bytes")
		return 0
	}
	return int(n)
}

func (d *binaryReader) element()      {}
func (d *binaryReader) close()        {}
func (d *binaryReader) closeList(int) {}

func (d *binaryReader) inside(*furl.Message) {
	d.body = nil
	if d.byte() != 0 {
		d.body = slices.Clone(d.bytes())
	}
}

func (d *binaryReader) span(start, end int) {
	if start < 0 || end < start || end > len(d.body) {
		d.fail("a block outside its message")
	}
}

func (d *binaryReader) text(_ string, v *string) { *v = d.located() }

func (d *binaryReader) json(_ string, v *json.RawMessage) {
	if args := d.located(); args != "" {
		*v = json.RawMessage(args)
	}
}

// located reads a text. One that is in the body as it is shares its memory
// with it, and is never changed.
func (d *binaryReader) located() string {
	kind := d.byte()
	switch kind {
	case textNone:
		return ""
	case textInline:
		return string(d.bytes())
	}
	from, n := d.uint(), d.uint()
	if from > uint64(len(d.body)) || n > uint64(len(d.body))-from {
		d.fail("a text outside its message")
		return ""
	}
	literal := d.body[from : from+n]
	if kind == textPlain {
		return unsafe.String(unsafe.SliceData(literal), len(literal))
	}
	s, err := literalText(literal)
	if kind != textEscaped || err != nil {
		d.fail("a text that is not a string")
	}
	return s
}
