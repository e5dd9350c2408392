package record

import (
	"encoding/json"
	"time"

	"github.com/furlhq/furl"
)

// encoding is a record that is being written or read, in binary or in JSON.
// The functions in describe.go name its fields. Binary has no names and leaves
// nothing out. JSON leaves out what is zero, unless a
// method says otherwise. Each method writes the value or, when reading, sets
// it. After an error all methods do nothing and leave zero values.
//
// It is not an interface with four implementations because what is passed
// through an interface is allocated, and a store encodes and decodes every
// record of a session.
type encoding struct {
	mode    mode
	version byte // of a binary record
	binaryWriter
	binaryReader
	*jsonWriter
	*jsonReader
}

type mode uint8

const (
	writeBinary mode = iota
	readBinary
	writeJSON
	readJSON
)

// named reports whether the fields have names, as in JSON, so that they may come
// in any order.
func (e *encoding) named() bool { return e.mode == writeJSON || e.mode == readJSON }

func (e *encoding) reading() bool { return e.mode == readBinary || e.mode == readJSON }

// seq is a number that JSON has even if it is zero.
func (e *encoding) seq(name string, v *furl.Seq) {
	switch e.mode {
	case writeBinary:
		e.binaryWriter.seq(name, v)
	case readBinary:
		e.binaryReader.seq(name, v)
	case writeJSON:
		e.jsonWriter.seq(name, v)
	default:
		e.jsonReader.seq(name, v)
	}
}

// ref is the number of another record.
func (e *encoding) ref(name string, v *furl.Seq) {
	switch e.mode {
	case writeBinary:
		e.binaryWriter.ref(name, v)
	case readBinary:
		e.binaryReader.ref(name, v)
	case writeJSON:
		e.jsonWriter.ref(name, v)
	default:
		e.jsonReader.ref(name, v)
	}
}

func (e *encoding) int(name string, v *int) {
	switch e.mode {
	case writeBinary:
		e.binaryWriter.int(name, v)
	case readBinary:
		e.binaryReader.int(name, v)
	case writeJSON:
		e.jsonWriter.int(name, v)
	default:
		e.jsonReader.int(name, v)
	}
}

// count is an int that binary has without a sign.
func (e *encoding) count(name string, v *int) {
	switch e.mode {
	case writeBinary:
		e.binaryWriter.count(name, v)
	case readBinary:
		e.binaryReader.count(name, v)
	case writeJSON:
		e.jsonWriter.count(name, v)
	default:
		e.jsonReader.count(name, v)
	}
}

// float keeps every bit.
func (e *encoding) float(name string, v *float64) {
	switch e.mode {
	case writeBinary:
		e.binaryWriter.float(name, v)
	case readBinary:
		e.binaryReader.float(name, v)
	case writeJSON:
		e.jsonWriter.float(name, v)
	default:
		e.jsonReader.float(name, v)
	}
}

func (e *encoding) bool(name string, v *bool) {
	switch e.mode {
	case writeBinary:
		e.binaryWriter.bool(name, v)
	case readBinary:
		e.binaryReader.bool(name, v)
	case writeJSON:
		e.jsonWriter.bool(name, v)
	default:
		e.jsonReader.bool(name, v)
	}
}

func (e *encoding) string(name string, v *string) {
	switch e.mode {
	case writeBinary:
		e.binaryWriter.string(name, v)
	case readBinary:
		e.binaryReader.string(name, v)
	case writeJSON:
		e.jsonWriter.string(name, v)
	default:
		e.jsonReader.string(name, v)
	}
}

func (e *encoding) digest(name string, v *furl.Digest) {
	switch e.mode {
	case writeBinary:
		e.binaryWriter.digest(name, v)
	case readBinary:
		e.binaryReader.digest(name, v)
	case writeJSON:
		e.jsonWriter.digest(name, v)
	default:
		e.jsonReader.digest(name, v)
	}
}

// optionalDigest is a digest for which binary has a single byte if it is zero.
func (e *encoding) optionalDigest(name string, v *furl.Digest) {
	switch e.mode {
	case writeBinary:
		if v.IsZero() {
			e.binaryWriter.byte(0)
			return
		}
		e.binaryWriter.digest(name, v)
	case readBinary:
		e.binaryReader.digest(name, v)
	default:
		e.digest(name, v)
	}
}

func (e *encoding) time(name string, v *time.Time) {
	switch e.mode {
	case writeBinary:
		e.binaryWriter.time(name, v)
	case readBinary:
		e.binaryReader.time(name, v)
	case writeJSON:
		e.jsonWriter.time(name, v)
	default:
		e.jsonReader.time(name, v)
	}
}

func (e *encoding) pos(name string, v *furl.Pos) {
	switch e.mode {
	case writeBinary:
		e.binaryWriter.pos(name, v)
	case readBinary:
		e.binaryReader.pos(name, v)
	case writeJSON:
		e.jsonWriter.pos(name, v)
	default:
		e.jsonReader.pos(name, v)
	}
}

// enum is a value of an enumeration. JSON has its name, or the number of a value
// without a name. A value named "none" is zero.
func (e *encoding) enum(name string, v *uint8, names []string) {
	switch e.mode {
	case writeBinary:
		e.binaryWriter.enum(name, v, names)
	case readBinary:
		e.binaryReader.enum(name, v, names)
	case writeJSON:
		e.jsonWriter.enum(name, v, names)
	default:
		e.jsonReader.enum(name, v, names)
	}
}

// span says where the block at hand is in its message's bytes.
func (e *encoding) span(start, end int) {
	switch e.mode {
	case writeBinary:
		e.binaryWriter.span(start, end)
	case readBinary:
		e.binaryReader.span(start, end)
	case writeJSON:
		e.jsonWriter.span(start, end)
	default:
		e.jsonReader.span(start, end)
	}
}

// text is a text that may be in the message's bytes.
func (e *encoding) text(name string, v *string) {
	switch e.mode {
	case writeBinary:
		e.binaryWriter.text(name, v)
	case readBinary:
		e.binaryReader.text(name, v)
	case writeJSON:
		e.jsonWriter.text(name, v)
	default:
		e.jsonReader.text(name, v)
	}
}

// json is JSON that may be in the message's bytes, empty if there is none.
func (e *encoding) json(name string, v *json.RawMessage) {
	switch e.mode {
	case writeBinary:
		e.binaryWriter.json(name, v)
	case readBinary:
		e.binaryReader.json(name, v)
	case writeJSON:
		e.jsonWriter.json(name, v)
	default:
		e.jsonReader.json(name, v)
	}
}

// inside says that the message that follows is inside a record, with its bytes.
func (e *encoding) inside(m *furl.Message) {
	switch e.mode {
	case writeBinary:
		e.binaryWriter.inside(m)
	case readBinary:
		e.binaryReader.inside(m)
	case writeJSON:
		e.jsonWriter.inside(m)
	default:
		e.jsonReader.inside(m)
	}
}

// open begins a group of fields, which JSON leaves out if all are zero.
func (e *encoding) open(name string) {
	switch e.mode {
	case writeBinary:
		e.binaryWriter.open(name)
	case readBinary:
		e.binaryReader.open(name)
	case writeJSON:
		e.jsonWriter.open(name)
	default:
		e.jsonReader.open(name)
	}
}

// element begins an element of a list.
func (e *encoding) element() {
	switch e.mode {
	case writeBinary:
		e.binaryWriter.element()
	case readBinary:
		e.binaryReader.element()
	case writeJSON:
		e.jsonWriter.element()
	default:
		e.jsonReader.element()
	}
}

// close ends a group or an element.
func (e *encoding) close() {
	switch e.mode {
	case writeBinary:
		e.binaryWriter.close()
	case readBinary:
		e.binaryReader.close()
	case writeJSON:
		e.jsonWriter.close()
	default:
		e.jsonReader.close()
	}
}

// closeList ends a list of n elements.
func (e *encoding) closeList(n int) {
	switch e.mode {
	case writeBinary:
		e.binaryWriter.closeList(n)
	case readBinary:
		e.binaryReader.closeList(n)
	case writeJSON:
		e.jsonWriter.closeList(n)
	default:
		e.jsonReader.closeList(n)
	}
}

// flags is a byte of flags, which only binary has.
func (e *encoding) flags(v uint8) uint8 {
	if e.mode == readBinary {
		return e.binaryReader.byte()
	}
	e.binaryWriter.byte(v)
	return v
}

// union says which of several alternatives follows.
func (e *encoding) union(name string, of []alternative, v int) int {
	switch e.mode {
	case writeBinary:
		return e.binaryWriter.union(name, of, v)
	case readBinary:
		return e.binaryReader.union(name, of, v)
	case writeJSON:
		return e.jsonWriter.union(name, of, v)
	default:
		return e.jsonReader.union(name, of, v)
	}
}

// openIf begins a group that may be missing, and reports whether it is there.
func (e *encoding) openIf(name string, there bool) bool {
	switch e.mode {
	case writeBinary:
		return e.binaryWriter.openIf(name, there)
	case readBinary:
		return e.binaryReader.openIf(name, there)
	case writeJSON:
		return e.jsonWriter.openIf(name, there)
	default:
		return e.jsonReader.openIf(name, there)
	}
}

// list begins a list of n elements, each at least size bytes long in binary, and
// returns the number of its elements.
func (e *encoding) list(name string, n, size int) int {
	switch e.mode {
	case writeBinary:
		return e.binaryWriter.list(name, n, size)
	case readBinary:
		return e.binaryReader.list(name, n, size)
	case writeJSON:
		return e.jsonWriter.list(name, n, size)
	default:
		return e.jsonReader.list(name, n, size)
	}
}

// content is a message's blocks, and its bytes if they are not kept apart.
func (e *encoding) content(m *furl.Message) {
	switch e.mode {
	case writeBinary:
		e.blocks(m)
	case readBinary:
		if e.body != nil {
			m.Raw = e.body
		}
		e.blocks(m)
	case writeJSON:
		if e.jsonWriter.codec != nil && decodesTo(e.jsonWriter.codec, m) {
			e.writeSizes(m.Blocks)
		} else {
			if len(m.Blocks) == 0 {
				e.noBlocks() // a message without the field has the blocks its bytes decode to
			}
			e.blocks(m)
		}
		e.writeRaw(m.Raw)
	default:
		e.readRaw(m)
		if e.hasBlocks() {
			e.blocks(m)
		} else {
			e.decodeBlocks(m)
		}
	}
}

// sealed is the bytes of an encrypted record, which binary keeps apart. JSON
// has none: exports contain the records inside.
func (e *encoding) sealed(data *[]byte) {
	if e.mode == readBinary {
		*data = e.body
	}
}

func (e *encoding) blocks(m *furl.Message) {
	for i := range makeList(e, "blocks", &m.Blocks, 9) {
		e.element()
		block(e, &m.Blocks[i])
		e.close()
	}
	e.closeList(len(m.Blocks))
}
