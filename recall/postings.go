package recall

import (
	"encoding/binary"
	"maps"
	"slices"
)

// postingList encodes the documents of a term and how often each has it: for each
// document the difference to the number of the one before, doubled, plus one if
// a count above 1 follows; then that count.
type postingList struct {
	buf  []byte
	last uint32 // document that was added last
	docs uint32
}

// add appends a document, which must be newer than the last.
func (l *postingList) add(doc, count uint32) {
	delta := uint64(doc - l.last)
	if l.docs == 0 {
		delta = uint64(doc)
	}
	if count == 1 {
		l.buf = binary.AppendUvarint(l.buf, delta<<1)
	} else {
		l.buf = binary.AppendUvarint(l.buf, delta<<1|1)
		l.buf = binary.AppendUvarint(l.buf, uint64(count))
	}
	l.last = doc
	l.docs++
}

// reset empties the list, whose memory is used again.
func (l *postingList) reset() { *l = postingList{buf: l.buf[:0]} }

// postings returns the list for documents that are numbered from base.
func (l *postingList) postings(base uint32) postings {
	return postings{base: base, docs: l.docs, buf: l.buf}
}

// postings is an encoded posting list whose documents are numbered from base.
type postings struct {
	base uint32
	docs uint32 // how many
	buf  []byte
}

// each returns the documents in ascending order. The list must be well-formed,
// see decodePostings.
func (p postings) each(yield func(doc, count uint32) bool) {
	doc := uint64(0)
	for i := 0; i < len(p.buf); {
		delta, n := uint64(p.buf[i]), 1
		if delta >= 0x80 {
			delta, n = binary.Uvarint(p.buf[i:])
		}
		i += n
		doc += delta >> 1
		count := uint64(1)
		if delta&1 != 0 {
			if count, n = uint64(p.buf[i]), 1; count >= 0x80 {
				count, n = binary.Uvarint(p.buf[i:])
			}
			i += n
		}
		if !yield(p.base+uint32(doc), uint32(count)) {
			return
		}
	}
}

// decodePostings checks an encoded list, whose documents must be below limit.
func decodePostings(buf []byte, base uint32, limit uint64) (p postings, ok bool) {
	doc, docs := uint64(0), uint32(0)
	for i := 0; i < len(buf); docs++ {
		delta, n := uint64(buf[i]), 1
		if delta >= 0x80 {
			delta, n = binary.Uvarint(buf[i:])
		}
		if n <= 0 || docs > 0 && delta>>1 == 0 || delta>>1 >= limit {
			return postings{}, false
		}
		i += n
		if doc += delta >> 1; doc >= limit {
			return postings{}, false
		}
		if delta&1 == 0 {
			continue
		}
		count, n := binary.Uvarint(buf[i:])
		if n <= 0 || count < 2 || count > 1<<32-1 {
			return postings{}, false
		}
		i += n
	}
	return postings{base: base, docs: docs, buf: buf}, docs > 0
}

// mergePostings makes one list of several. Lists with the same base are of
// different terms with the same hash; others must follow one another.
func mergePostings(lists []postings) postingList {
	if len(lists) == 1 && lists[0].base == 0 {
		return postingList{buf: lists[0].buf, docs: lists[0].docs}
	}
	var merged postingList
	if !shareBase(lists) {
		for _, p := range lists {
			for doc, count := range p.each {
				merged.add(doc, count)
			}
		}
		return merged
	}
	counts := make(map[uint32]uint32)
	for _, p := range lists {
		for doc, count := range p.each {
			counts[doc] += count
		}
	}
	for _, doc := range slices.Sorted(maps.Keys(counts)) {
		merged.add(doc, counts[doc])
	}
	return merged
}

// shareBase reports whether two neighboring lists are of the same documents.
func shareBase(lists []postings) bool {
	for i := 1; i < len(lists); i++ {
		if lists[i].base == lists[i-1].base {
			return true
		}
	}
	return false
}
