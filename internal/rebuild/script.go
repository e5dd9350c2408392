package rebuild

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/furlhq/furl"
)

// A script is what Describe writes into furl.RequestParts. It begins with a
// byte: inline, and then the script follows; or elsewhere, and then the digest
// of a content that has it follows.
//
// A script is the CRC-32C of the body, as four bytes, little endian; the distance
// to the record of the exchange on which it builds, 0 for none; a byte of flags;
// and operations until its end. In that of a received body a flag says that the
// frame, system or tools are those of the client's body there. In that of a sent
// body the digest of a content follows the flags for each of the first three: a
// patch of the client's frame, system or tools. The next three say that the patch
// is the one there, and have no digest.
//
// An operation is a byte and its arguments. Numbers are varints.
const (
	opCopy     = 'c' // index, count: elements of the list of the exchange on which it builds
	opReceived = 'r' // index, count: elements of the client's list
	opLog      = 'l' // distance of the first record back from the exchange, count of records that follow one another
	opPatch    = 'p' // a source (opCopy and index, opReceived and index, opLog and distance), length and bytes of a patch
	opShown    = 'x' // distances of a reduction and of a message, and what opPatch has: the source follows the texts that the reduction shows for the message; with message 0 all its texts, and no source
	opText     = 't' // length and bytes of an element
	opContent  = 'd' // digest of a content with an element
	opGap      = 'g' // length and bytes: the separator before the next element
)

const (
	inline    = 0
	elsewhere = 1
)

// flagSame is the flag of a sent body that says that a patch is that of the
// exchange on which it builds, as a multiple of the flag of the part.
const flagSame = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writer writes the operations of a script and joins runs.
type writer struct {
	out         []byte
	at          furl.Seq // of the exchange
	kind        byte     // of the run that is not written yet, 0 for none
	from, count int
}

func (w *writer) number(n int) { w.out = binary.AppendUvarint(w.out, uint64(n)) }

// run adds one element to a run. Of opLog, index is the record.
func (w *writer) run(kind byte, index int) {
	if w.kind == kind && index == w.from+w.count {
		w.count++
		return
	}
	w.flush()
	w.kind, w.from, w.count = kind, index, 1
}

func (w *writer) flush() {
	if w.kind == 0 {
		return
	}
	w.out = append(w.out, w.kind)
	if w.kind == opLog {
		w.from = int(w.at) - w.from
	}
	w.number(w.from)
	w.number(w.count)
	w.kind = 0
}

func (w *writer) gap(separator []byte) {
	w.flush()
	w.out = append(w.out, opGap)
	w.text(separator)
}

func (w *writer) text(b []byte) {
	w.number(len(b))
	w.out = append(w.out, b...)
}

func (w *writer) digest(d furl.Digest) { w.out = append(w.out, d[:]...) }

// reader reads numbers and bytes. After a failure it returns zero values.
type reader struct {
	in     []byte
	at     int
	failed bool
}

func (r *reader) left() int { return len(r.in) - r.at }

func (r *reader) fail() { r.failed, r.at = true, len(r.in) }

func (r *reader) byte() byte {
	if r.left() == 0 {
		r.fail()
		return 0
	}
	r.at++
	return r.in[r.at-1]
}

func (r *reader) number() int {
	n, size := binary.Uvarint(r.in[r.at:])
	if size <= 0 || n > 1<<40 {
		r.fail()
		return 0
	}
	r.at += size
	return int(n)
}

// count reads the number of things that take so many bytes each at least.
func (r *reader) count(size int) int {
	n := r.number()
	if n > r.left()/size {
		r.fail()
		return 0
	}
	return n
}

func (r *reader) bytes(n int) []byte {
	if n > r.left() {
		r.fail()
		return nil
	}
	r.at += n
	return r.in[r.at-n : r.at : r.at]
}

func (r *reader) rest() []byte { return r.bytes(r.left()) }

func (r *reader) digest() (d furl.Digest) {
	copy(d[:], r.bytes(len(d)))
	return d
}

var errScript = errors.New("invalid edit script")
