package recall

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"
	"sync"
)

// A gram filter is a Bloom filter with one hash function: a bit for each
// sequence of four bytes (a gram) in the vocabulary of a segment, in lower case.
// A search inside words in all sessions reads it to skip segments. The bits are
// spread over eight filters, since a few grams are enough to exclude a segment.
// Grams of three bytes would exclude hardly any.
const gramFilters = 8

// newGramFilters returns the filters of a vocabulary.
func newGramFilters(vocabulary []byte) ([gramFilters][]byte, error) {
	grams, ok := gramSets.Get().(*gramSet)
	if !ok {
		grams = &gramSet{}
	}
	defer grams.giveBack()
	r := vocabularyReader{buf: vocabulary}
	for r.next() {
		from := max(0, r.lowered-3) // the grams before are in the term before, too
		low := r.lower()
		if r.lowered == 0 {
			from = 0 // not a prefix of ASCII
		}
		for i := from; i+4 <= len(low); i++ {
			grams.add(binary.LittleEndian.Uint32(low[i:]))
		}
	}
	var filters [gramFilters][]byte
	if r.err != nil {
		return filters, r.err
	}
	size := 1 << bits.Len(uint(grams.n/gramFilters)) // in bytes: 8 to 16 bits per gram
	all := make([]byte, gramFilters*size)
	for i := range filters {
		filters[i], all = all[:size:size], all[size:]
	}
	for gram := range grams.all {
		i, bit := gramBit(gram, size)
		filters[i][bit>>3] |= 1 << (bit & 7)
	}
	return filters, nil
}

// gramSet is a set of grams: a hash table with linear probing, in which 0 is an empty place.
type gramSet struct {
	table []uint32
	n     int
	zero  bool // the gram 0 is in the set
}

// gramSets have empty sets, whose memory is used again.
var gramSets sync.Pool

// maxGramSet is the largest table whose memory is used again, in grams: 1 MB.
const maxGramSet = 1 << 18

func (s *gramSet) giveBack() {
	if len(s.table) <= maxGramSet {
		clear(s.table)
		s.n, s.zero = 0, false
		gramSets.Put(s)
	}
}

func (s *gramSet) add(gram uint32) {
	if gram == 0 {
		if !s.zero {
			s.zero = true
			s.n++
		}
		return
	}
	if 2*s.n >= len(s.table) {
		had := s.table
		s.table = make([]uint32, max(1<<12, 2*len(had)))
		for _, g := range had {
			if g != 0 {
				s.table[s.place(g)] = g
			}
		}
	}
	if i := s.place(gram); s.table[i] == 0 {
		s.table[i] = gram
		s.n++
	}
}

// place returns where a gram is in the table, or where it belongs.
func (s *gramSet) place(gram uint32) uint32 {
	mask := uint32(len(s.table) - 1)
	h := gram * 0x9e3779b1
	for i := (h ^ h>>15) & mask; ; i = (i + 1) & mask {
		if g := s.table[i]; g == gram || g == 0 {
			return i
		}
	}
}

func (s *gramSet) all(yield func(uint32) bool) {
	if s.zero && !yield(0) {
		return
	}
	for _, g := range s.table {
		if g != 0 && !yield(g) {
			return
		}
	}
}

// gramBit returns which filter has the bit of a gram, and which bit it is in a
// filter of so many bytes.
func gramBit(gram uint32, size int) (filter, bit uint32) {
	h := gram * 0x9e3779b1
	h ^= h >> 15
	h *= 0x85ebca77
	h ^= h >> 13
	return h % gramFilters, h / gramFilters & uint32(size*8-1)
}

// patternGrams returns the grams of a pattern by their filter, for the two
// filters that have most of them.
func patternGrams(pattern string) map[uint32][]uint32 {
	grams := make(map[uint32][]uint32)
	for i := 0; i+4 <= len(pattern); i++ {
		gram := binary.LittleEndian.Uint32([]byte(pattern[i : i+4]))
		filter, _ := gramBit(gram, 1)
		grams[filter] = append(grams[filter], gram)
	}
	for len(grams) > 2 {
		least := slices.MinFunc(slices.Sorted(maps.Keys(grams)), func(a, b uint32) int { return cmp.Compare(len(grams[a]), len(grams[b])) })
		delete(grams, least)
	}
	return grams
}

// mayContain reports whether the segment of a filter can have a term with all of
// these grams.
func mayContain(filter []byte, grams []uint32) bool {
	if len(filter) == 0 || len(filter)&(len(filter)-1) != 0 {
		return true
	}
	for _, gram := range grams {
		if _, bit := gramBit(gram, len(filter)); filter[bit>>3]>>(bit&7)&1 == 0 {
			return false
		}
	}
	return true
}
