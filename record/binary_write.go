package record

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"time"
	"unsafe"

	"github.com/furlhq/furl"
)

// binaryWriter appends fields: numbers as varints, strings after their length.
type binaryWriter struct {
	out []byte
	raw []byte // of the message at hand
	// at and end are the part of raw in which the block's next text is
	// looked for: texts come in order.
	at, end int
}

func (w *binaryWriter) byte(b byte) { w.out = append(w.out, b) }
func (w *binaryWriter) uint(n uint64) {
	if n < 0x80 {
		w.out = append(w.out, byte(n))
		return
	}
	w.out = binary.AppendUvarint(w.out, n)
}

// varint writes a zigzag number, as binary.AppendVarint does.
func (w *binaryWriter) varint(n int)        { w.uint(uint64(int64(n))<<1 ^ uint64(int64(n)>>63)) }
func (w *binaryWriter) bytes(b []byte)      { w.uint(uint64(len(b))); w.out = append(w.out, b...) }
func (w *binaryWriter) characters(s string) { w.uint(uint64(len(s))); w.out = append(w.out, s...) }

func (w *binaryWriter) seq(_ string, v *furl.Seq)       { w.uint(uint64(*v)) }
func (w *binaryWriter) ref(_ string, v *furl.Seq)       { w.uint(uint64(*v)) }
func (w *binaryWriter) int(_ string, v *int)            { w.varint(*v) }
func (w *binaryWriter) count(_ string, v *int)          { w.uint(uint64(*v)) }
func (w *binaryWriter) bool(_ string, v *bool)          { w.flag(*v) }
func (w *binaryWriter) string(_ string, v *string)      { w.characters(*v) }
func (w *binaryWriter) digest(_ string, v *furl.Digest) { w.bytes(v[:]) }
func (w *binaryWriter) pos(_ string, v *furl.Pos)       { w.uint(uint64(v.Msg)); w.varint(v.Block) }

func (w *binaryWriter) float(_ string, v *float64) {
	w.out = binary.LittleEndian.AppendUint64(w.out, math.Float64bits(*v))
}

func (w *binaryWriter) flag(b bool) {
	if b {
		w.byte(1)
	} else {
		w.byte(0)
	}
}

// time keeps the instant to the nanosecond and the offset of its zone to the
// second, a zero time as a single 0.
func (w *binaryWriter) time(_ string, v *time.Time) {
	if v.IsZero() {
		w.byte(0)
		return
	}
	_, offset := v.Zone()
	w.byte(1)
	w.out = binary.AppendVarint(w.out, v.Unix())
	w.uint(uint64(v.Nanosecond()))
	w.varint(offset)
}

func (w *binaryWriter) enum(_ string, v *uint8, _ []string) { w.byte(*v) }

func (w *binaryWriter) union(_ string, of []alternative, v int) int {
	w.byte(of[v].code)
	return v
}

func (w *binaryWriter) open(string) {}

func (w *binaryWriter) openIf(_ string, there bool) bool {
	w.flag(there)
	return there
}

func (w *binaryWriter) list(_ string, n, _ int) int {
	w.uint(uint64(n))
	return n
}

func (w *binaryWriter) element()      {}
func (w *binaryWriter) close()        {}
func (w *binaryWriter) closeList(int) {}

func (w *binaryWriter) inside(m *furl.Message) {
	w.raw = m.Raw
	w.flag(m.Raw != nil)
	if m.Raw != nil {
		w.bytes(m.Raw)
	}
}

// span is where the block's texts are looked for, so that a message of many
// blocks is not searched once for each.
func (w *binaryWriter) span(start, end int) {
	w.at, w.end = 0, len(w.raw)
	if end > start && end <= len(w.raw) {
		w.at, w.end = start, end
	}
}

func (w *binaryWriter) text(_ string, v *string) { w.located(*v) }

func (w *binaryWriter) json(_ string, v *json.RawMessage) {
	w.located(unsafe.String(unsafe.SliceData(*v), len(*v)))
}

// located writes a text, or where it is in the body. Short ones are not worth
// looking for.
func (w *binaryWriter) located(s string) {
	if s == "" {
		w.byte(textNone)
		return
	}
	if len(s) >= 16 {
		if kind, from, to, ok := find(s, w.raw, w.at, w.end); ok {
			w.byte(kind)
			w.uint(uint64(from))
			w.uint(uint64(to - from))
			w.at = to
			return
		}
	}
	w.byte(textInline)
	w.characters(s)
}
