package recall

import (
	"encoding/binary"
	"maps"
	"slices"
)

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
	chunk{docs: l.docs, buf: l.buf}.each(yield)
}

// each gives the documents of a list that is well-formed, see postingsEnd.
func (c chunk) each(yield func(doc, count uint32) bool) {
	doc := uint64(0)
	for buf := c.buf; len(buf) > 0; {
		step, n := binary.Uvarint(buf)
		buf = buf[n:]
		doc += step >> 1
		count := uint64(1)
		if step&1 != 0 {
			count, n = binary.Uvarint(buf)
			buf = buf[n:]
		}
		if !yield(c.base+uint32(doc), uint32(count)) {
			return
		}
	}
}

// postingsEnd finds the end of a list of so many documents that buf begins
// with, and the last of them; all must be below limit. It is false if there is
// no such list.
func postingsEnd(buf []byte, docs, limit uint64) (end int, last uint64, ok bool) {
	doc := uint64(0)
	for i := range docs {
		step, n := binary.Uvarint(buf[end:])
		if n <= 0 || i > 0 && step>>1 == 0 || step>>1 >= limit {
			return 0, 0, false
		}
		end += n
		doc += step >> 1
		if doc >= limit {
			return 0, 0, false
		}
		if step&1 == 0 {
			continue
		}
		count, n := binary.Uvarint(buf[end:])
		if n <= 0 || count < 2 || count > 1<<32-1 {
			return 0, 0, false
		}
		end += n
	}
	return end, doc, true
}

// countAll sums up how often the terms of several lists stand in documents.
func countAll(chunks []chunk) map[uint32]uint32 {
	counts := make(map[uint32]uint32)
	for _, c := range chunks {
		for doc, n := range c.each {
			counts[doc] += n
		}
	}
	return counts
}

func listOf(counts map[uint32]uint32) list {
	var l list
	for _, doc := range slices.Sorted(maps.Keys(counts)) {
		l.add(doc, counts[doc])
	}
	return l
}
