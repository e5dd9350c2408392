package recall

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// A term dictionary has the posting lists of a segment, or of one bucket of its
// terms, in the order of the terms' hashes:
//
//   - the number of terms, and the size of the lengths in bytes;
//   - the hashes, all of one width, without the bits that the bucket determines;
//   - the length of each list in bytes;
//   - the lists.
//
// A term is found by binary search, and only its own list is read. A dictionary
// without terms has no bytes.

// hashWidth returns the bytes that a hash takes in the buckets of a level.
func hashWidth(level uint8) int { return (hashBits - 2*int(level) + 7) / 8 }

// termReader reads a term dictionary. The zero value has no terms.
type termReader struct {
	width       int
	low         termHash // mask of the bits of a hash that are stored
	high        termHash // value of the other bits
	n           int
	hashes      []byte
	lengths     []byte // of the lists of the terms from index on
	lists       []byte // of the terms from index on
	segmentDocs uint64
	base        uint32 // of the documents
	index       int    // the term to which next goes
	hash        termHash
	list        postings
	err         error
}

// newTermReader returns a reader of the dictionary of a bucket. docs is the
// number of documents of the segment.
func newTermReader(buf []byte, level uint8, bucket uint32, docs int) termReader {
	t := termReader{width: hashWidth(level), low: 1<<(hashBits-2*int(level)) - 1, segmentDocs: uint64(docs)}
	t.high = termHash(bucket-firstTermBucket(level)) << (hashBits - 2*int(level))
	if len(buf) == 0 {
		return t
	}
	r := payloadReader{buf: buf}
	n := r.count()
	lengths := r.count()
	if r.bad || n == 0 || lengths > len(r.buf) || n > (len(r.buf)-lengths)/t.width {
		t.fail()
		return t
	}
	t.n = n
	t.hashes, t.lengths, t.lists = r.buf[:n*t.width], r.buf[n*t.width:n*t.width+lengths], r.buf[n*t.width+lengths:]
	return t
}

// segmentTerms returns a reader of all terms of a segment. Its documents are
// numbered from base.
func segmentTerms(seg *segment, base uint32) termReader {
	t := newTermReader(seg.terms, 0, firstTermBucket(0), seg.docs)
	t.base = base
	return t
}

func (t *termReader) fail() {
	t.n, t.err = 0, fmt.Errorf("%w: terms", errDamaged)
}

// stored returns the stored bits of the hash of term i.
func (t *termReader) stored(i int) termHash {
	if t.width == 4 {
		return termHash(binary.LittleEndian.Uint32(t.hashes[4*i:]))
	}
	b := t.hashes[5*i : 5*i+5]
	return termHash(binary.LittleEndian.Uint32(b)) | termHash(b[4])<<32
}

// next sets hash and list to those of the next term. It returns false at the end
// and if err is set.
func (t *termReader) next() bool {
	if t.index == t.n || t.err != nil {
		return false
	}
	stored := t.stored(t.index)
	size, n := binary.Uvarint(t.lengths)
	hash := stored | t.high
	if n <= 0 || size > uint64(len(t.lists)) || stored > t.low || t.index > 0 && hash <= t.hash {
		t.fail()
		return false
	}
	list, ok := decodePostings(t.lists[:size:size], t.base, t.segmentDocs)
	if !ok {
		t.fail()
		return false
	}
	t.hash, t.list = hash, list
	t.lengths, t.lists = t.lengths[n:], t.lists[size:]
	t.index++
	return true
}

// find returns the list of a term. It must be called before next.
func (t *termReader) find(hash termHash) (list postings, ok bool) {
	if t.n == 0 || hash&^t.low != t.high {
		return postings{}, false
	}
	hash &= t.low
	from, to := 0, t.n
	for from < to {
		if mid := int(uint(from+to) >> 1); t.stored(mid) < hash {
			from = mid + 1
		} else {
			to = mid
		}
	}
	if from == t.n || t.stored(from) != hash {
		return postings{}, false
	}
	lengths, start := t.lengths, uint64(0)
	for i := 0; ; i++ {
		size, n := uint64(0), 1
		if len(lengths) > 0 && lengths[0] < 0x80 {
			size = uint64(lengths[0])
		} else if size, n = binary.Uvarint(lengths); n <= 0 {
			break
		}
		end := start + size
		if end > uint64(len(t.lists)) || end < start {
			break
		}
		if i == from {
			if list, ok := decodePostings(t.lists[start:end:end], t.base, t.segmentDocs); ok {
				return list, true
			}
			break
		}
		lengths, start = lengths[n:], end
	}
	t.fail()
	return postings{}, false
}

// findAll calls found for those of the terms that the dictionary has.
func (t *termReader) findAll(hashes []termHash, found func(termHash, postings)) error {
	for _, h := range hashes {
		if list, ok := t.find(h); ok {
			found(h, list)
		}
	}
	return t.err
}

// termWriter writes the dictionary of a bucket of a level. Terms are added in the
// order of their hashes.
type termWriter struct {
	level                  uint8
	n                      int
	hashes, lengths, lists []byte
}

// grow makes room for terms with lists of so many bytes.
func (w *termWriter) grow(terms, lists int) {
	w.hashes = slices.Grow(w.hashes, terms*hashWidth(w.level))
	w.lengths, w.lists = slices.Grow(w.lengths, terms), slices.Grow(w.lists, lists)
}

func (w *termWriter) add(hash termHash, list []byte) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(hash)&(1<<(hashBits-2*int(w.level))-1))
	w.hashes = append(w.hashes, b[:hashWidth(w.level)]...)
	w.lengths = binary.AppendUvarint(w.lengths, uint64(len(list)))
	w.lists = append(w.lists, list...)
	w.n++
}

// flush appends the dictionary to dst and starts a new one.
func (w *termWriter) flush(dst []byte) []byte {
	if w.n == 0 {
		return dst
	}
	dst = slices.Grow(dst, 2*binary.MaxVarintLen32+len(w.hashes)+len(w.lengths)+len(w.lists))
	dst = binary.AppendUvarint(dst, uint64(w.n))
	dst = binary.AppendUvarint(dst, uint64(len(w.lengths)))
	dst = append(append(append(dst, w.hashes...), w.lengths...), w.lists...)
	w.n, w.hashes, w.lengths, w.lists = 0, w.hashes[:0], w.lengths[:0], w.lists[:0]
	return dst
}

// mergeTerms merges the dictionaries of segments that follow one another.
func mergeTerms(readers []termReader) ([]byte, error) {
	var m termMerger
	terms, lists := 0, 0
	for i := range readers {
		terms, lists = terms+readers[i].n, lists+len(readers[i].lists)
	}
	m.out.grow(terms, lists)
	live := make([]*termReader, 0, len(readers))
	for i := range readers {
		if readers[i].next() {
			live = append(live, &readers[i])
		}
	}
	for len(live) > 0 {
		least := live[0].hash
		for _, t := range live[1:] {
			least = min(least, t.hash)
		}
		rest := live[:0]
		for _, t := range live {
			if t.hash == least {
				m.add(least, t.list)
				if !t.next() {
					continue
				}
			}
			rest = append(rest, t)
		}
		live = rest
	}
	for i := range readers {
		if err := readers[i].err; err != nil {
			return nil, err
		}
	}
	return m.finish(), nil
}

// termMerger writes terms that are added in the order of their hashes. It merges
// the lists of equal hashes.
type termMerger struct {
	out   termWriter
	hash  termHash
	lists []postings // of hash
}

func (m *termMerger) add(hash termHash, list postings) {
	if len(m.lists) > 0 && hash != m.hash {
		m.flush()
	}
	m.hash = hash
	m.lists = append(m.lists, list)
}

func (m *termMerger) flush() {
	list := mergePostings(m.lists)
	m.out.add(m.hash, list.buf)
	m.lists = m.lists[:0]
}

func (m *termMerger) finish() []byte {
	if len(m.lists) > 0 {
		m.flush()
	}
	return m.out.flush(nil)
}
