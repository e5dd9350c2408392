package recall

import "encoding/binary"

// list says in which documents a term stands and how often, packed: for each
// document the distance from the one before, doubled, plus one where a count
// above 1 follows.
type list struct {
	buf  []byte
	last uint32 // document added last
	docs uint32
}

// add appends a document, which must be newer than the last.
func (l *list) add(doc, count uint32) {
	step := uint64(doc - l.last)
	if l.docs == 0 {
		step = uint64(doc)
	}
	if count == 1 {
		l.buf = binary.AppendUvarint(l.buf, step<<1)
	} else {
		l.buf = binary.AppendUvarint(l.buf, step<<1|1)
		l.buf = binary.AppendUvarint(l.buf, uint64(count))
	}
	l.last = doc
	l.docs++
}

// each gives the documents in the order in which they were added.
func (l *list) each(yield func(doc, count uint32) bool) {
	doc := uint64(0)
	for buf := l.buf; len(buf) > 0; {
		step, n := binary.Uvarint(buf)
		buf = buf[n:]
		doc += step >> 1
		count := uint64(1)
		if step&1 != 0 {
			count, n = binary.Uvarint(buf)
			buf = buf[n:]
		}
		if !yield(uint32(doc), uint32(count)) {
			return
		}
	}
}
