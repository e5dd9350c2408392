package recall

import (
	"encoding/binary"
	"fmt"
)

// entries reads the terms of a segment or of one of its buckets: for each the
// distance of its hash from the one before, the number of its documents, and
// these as in a list.
type entries struct {
	buf  []byte
	docs uint64 // of the segment
	base uint32 // what is added to the numbers of documents

	hash termHash
	list chunk
	last uint64 // document of the list, base not added
	any  bool   // next was called
	err  error
}

// next goes to the next term. It is false at the end and where err is set.
func (e *entries) next() bool {
	if len(e.buf) == 0 || e.err != nil {
		return false
	}
	r := reader{buf: e.buf}
	step, docs := r.uint(), r.uint()
	hash := uint64(e.hash) + step
	if r.bad || docs == 0 || docs > e.docs || e.any && step == 0 || step >= 1<<hashBits || hash >= 1<<hashBits {
		e.err = fmt.Errorf("%w: terms", errDamaged)
		return false
	}
	end, last, ok := postingsEnd(r.buf, docs, e.docs)
	if !ok {
		e.err = fmt.Errorf("%w: documents of a term", errDamaged)
		return false
	}
	e.any = true
	e.hash, e.list, e.last = termHash(hash), chunk{base: e.base, docs: uint32(docs), buf: r.buf[:end:end]}, last
	e.buf = r.buf[end:]
	return true
}

// append writes the term that next has gone to behind one with the hash
// before.
func (e *entries) append(dst []byte, before termHash) []byte {
	dst = binary.AppendUvarint(dst, uint64(e.hash-before))
	dst = binary.AppendUvarint(dst, uint64(e.list.docs))
	return append(dst, e.list.buf...)
}

// joinTerms merges the terms of segments that follow one another.
func joinTerms(streams []entries) ([]byte, error) {
	var m termMerge
	live := make([]*entries, 0, len(streams))
	for i := range streams {
		if streams[i].next() {
			live = append(live, &streams[i])
		}
	}
	for len(live) > 0 {
		least := live[0].hash
		for _, e := range live[1:] {
			least = min(least, e.hash)
		}
		kept := live[:0]
		for _, e := range live {
			if e.hash == least {
				m.add(least, e.list)
				if !e.next() {
					continue
				}
			}
			kept = append(kept, e)
		}
		live = kept
	}
	for i := range streams {
		if err := streams[i].err; err != nil {
			return nil, err
		}
	}
	return m.end(), nil
}

// termMerge writes terms that come in the order of their hashes; lists of one
// hash become one.
type termMerge struct {
	out    []byte
	before termHash // of the last one written
	hash   termHash
	chunks []chunk
}

func (m *termMerge) add(hash termHash, c chunk) {
	if len(m.chunks) > 0 && hash != m.hash {
		m.flush()
	}
	m.hash = hash
	m.chunks = append(m.chunks, c)
}

func (m *termMerge) end() []byte {
	if len(m.chunks) > 0 {
		m.flush()
	}
	return m.out
}

func (m *termMerge) flush() {
	l := list{}
	if c := m.chunks[0]; len(m.chunks) == 1 && c.base == 0 {
		l = list{buf: c.buf, docs: c.docs}
	} else if overlap(m.chunks) {
		l = united(m.chunks)
	} else {
		for _, c := range m.chunks {
			for doc, count := range c.each {
				l.add(doc, count)
			}
		}
	}
	m.out = binary.AppendUvarint(m.out, uint64(m.hash-m.before))
	m.out = binary.AppendUvarint(m.out, uint64(l.docs))
	m.out = append(m.out, l.buf...)
	m.before = m.hash
	m.chunks = m.chunks[:0]
}

// overlap reports whether two chunks are of the same documents: of two terms
// with one hash.
func overlap(chunks []chunk) bool {
	for i := 1; i < len(chunks); i++ {
		if chunks[i].base == chunks[i-1].base {
			return true
		}
	}
	return false
}

// united makes one list of the documents of all chunks.
func united(chunks []chunk) list {
	return listOf(countAll(chunks))
}
