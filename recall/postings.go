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

// each gives the documents of a list that is well-formed, see listDocs.
func (c chunk) each(yield func(doc, count uint32) bool) {
	doc := uint64(0)
	for i := 0; i < len(c.buf); {
		step, n := uint64(c.buf[i]), 1
		if step >= 0x80 {
			step, n = binary.Uvarint(c.buf[i:])
		}
		i += n
		doc += step >> 1
		count := uint64(1)
		if step&1 != 0 {
			if count, n = uint64(c.buf[i]), 1; count >= 0x80 {
				count, n = binary.Uvarint(c.buf[i:])
			}
			i += n
		}
		if !yield(c.base+uint32(doc), uint32(count)) {
			return
		}
	}
}

// listDocs counts the documents of a list, all of which must be below limit. It
// is false if that is no such list.
func listDocs(buf []byte, limit uint64) (docs uint32, ok bool) {
	doc := uint64(0)
	for i := 0; i < len(buf); docs++ {
		step, n := uint64(buf[i]), 1
		if step >= 0x80 {
			step, n = binary.Uvarint(buf[i:])
		}
		if n <= 0 || docs > 0 && step>>1 == 0 || step>>1 >= limit {
			return 0, false
		}
		i += n
		if doc += step >> 1; doc >= limit {
			return 0, false
		}
		if step&1 == 0 {
			continue
		}
		count, n := binary.Uvarint(buf[i:])
		if n <= 0 || count < 2 || count > 1<<32-1 {
			return 0, false
		}
		i += n
	}
	return docs, docs > 0
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
