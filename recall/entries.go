package recall

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// A table of terms is what a segment or one of its buckets says of its terms,
// in the order of their hashes:
//
//   - how many there are, and how many bytes the lengths take;
//   - the hashes, all of one width, without the bits that the bucket tells;
//   - of each the length of its list in bytes;
//   - the lists.
//
// So a term is found, or found missing, by bisection, and no list is read but
// that of a term that is asked for. No terms are no bytes.

// termWidth is how many bytes the rest of a hash takes in the buckets of a
// level.
func termWidth(level uint8) int { return (hashBits - 2*int(level) + 7) / 8 }

// entries reads a table of terms. The zero value has none.
type entries struct {
	width                int
	low                  termHash // which bits of a hash stand in the table
	high                 termHash // the others
	n                    int
	hashes, lens, ending []byte // ending are the lists of the terms from at on
	docs                 uint64 // of the segment
	base                 uint32 // what is added to the numbers of documents

	at   int // the term that next goes to
	hash termHash
	list chunk
	err  error
}

// readTerms begins to read the table of a bucket of a level.
func readTerms(buf []byte, level uint8, bucket uint32, docs int) entries {
	e := entries{width: termWidth(level), low: 1<<(hashBits-2*int(level)) - 1, docs: uint64(docs)}
	e.high = termHash(bucket-levelStart(level)) << (hashBits - 2*int(level))
	if len(buf) == 0 {
		return e
	}
	r := reader{buf: buf}
	n := r.count()
	lens := r.count()
	if r.bad || n == 0 || lens > len(r.buf) || n > (len(r.buf)-lens)/e.width {
		e.fail()
		return e
	}
	e.n = n
	e.hashes, e.lens, e.ending = r.buf[:n*e.width], r.buf[n*e.width:n*e.width+lens], r.buf[n*e.width+lens:]
	return e
}

// readSegment begins to read the terms of a whole segment.
func readSegment(seg *segment, base uint32) entries {
	e := readTerms(seg.terms, 0, levelStart(0), seg.docs)
	e.base = base
	return e
}

func (e *entries) fail() {
	e.n, e.err = 0, fmt.Errorf("%w: terms", errDamaged)
}

// hashAt gives what stands in the table of the hash of term i.
func (e *entries) hashAt(i int) termHash {
	if e.width == 4 {
		return termHash(binary.LittleEndian.Uint32(e.hashes[4*i:]))
	}
	b := e.hashes[5*i : 5*i+5]
	return termHash(binary.LittleEndian.Uint32(b)) | termHash(b[4])<<32
}

// next goes to the next term. It is false at the end and where err is set.
func (e *entries) next() bool {
	if e.at == e.n || e.err != nil {
		return false
	}
	rest := e.hashAt(e.at)
	size, n := binary.Uvarint(e.lens)
	hash := rest | e.high
	if n <= 0 || size > uint64(len(e.ending)) || rest > e.low || e.at > 0 && hash <= e.hash {
		e.fail()
		return false
	}
	e.hash, e.lens = hash, e.lens[n:]
	e.at++
	return e.take(e.ending[:size:size], e.ending[size:])
}

// take takes the list of the term at hand.
func (e *entries) take(list, rest []byte) bool {
	docs, ok := listDocs(list, e.docs)
	if !ok {
		e.fail()
		return false
	}
	e.list, e.ending = chunk{base: e.base, docs: docs, buf: list}, rest
	return true
}

// find gives the list of a term, of which there must be one for ok.
func (e *entries) find(hash termHash) (list chunk, ok bool) {
	if e.n == 0 || hash&^e.low != e.high {
		return chunk{}, false
	}
	hash &= e.low
	from, to := 0, e.n
	for from < to {
		if mid := int(uint(from+to) >> 1); e.hashAt(mid) < hash {
			from = mid + 1
		} else {
			to = mid
		}
	}
	if from == e.n || e.hashAt(from) != hash {
		return chunk{}, false
	}
	lens, start := e.lens, uint64(0)
	for i := 0; ; i++ {
		size, n := uint64(0), 1
		if len(lens) > 0 && lens[0] < 0x80 {
			size = uint64(lens[0])
		} else if size, n = binary.Uvarint(lens); n <= 0 {
			break
		}
		end := start + size
		if end > uint64(len(e.ending)) || end < start {
			break
		}
		if i == from {
			list := e.ending[start:end:end]
			docs, ok := listDocs(list, e.docs)
			if !ok {
				break
			}
			return chunk{base: e.base, docs: docs, buf: list}, true
		}
		lens, start = lens[n:], end
	}
	e.fail()
	return chunk{}, false
}

// termWriter makes a table of terms that are added in the order of their
// hashes.
type termWriter struct {
	level               uint8
	n                   int
	hashes, lens, lists []byte
}

func (w *termWriter) add(hash termHash, list []byte) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(hash)&(1<<(hashBits-2*int(w.level))-1))
	w.hashes = append(w.hashes, b[:termWidth(w.level)]...)
	w.lens = binary.AppendUvarint(w.lens, uint64(len(list)))
	w.lists = append(w.lists, list...)
	w.n++
}

// take appends the table to dst, and begins a new one.
func (w *termWriter) take(dst []byte) []byte {
	if w.n == 0 {
		return dst
	}
	dst = slices.Grow(dst, 2*binary.MaxVarintLen32+len(w.hashes)+len(w.lens)+len(w.lists))
	dst = binary.AppendUvarint(dst, uint64(w.n))
	dst = binary.AppendUvarint(dst, uint64(len(w.lens)))
	dst = append(append(append(dst, w.hashes...), w.lens...), w.lists...)
	w.n, w.hashes, w.lens, w.lists = 0, w.hashes[:0], w.lens[:0], w.lists[:0]
	return dst
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
	out    termWriter
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
	return m.out.take(nil)
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
	m.out.add(m.hash, l.buf)
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
