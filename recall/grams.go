package recall

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"
)

// A gram filter is a Bloom filter with one hash function: a bit for each
// sequence of four bytes (a gram) in the vocabulary of a segment, in lower case.
// A search inside words in all sessions reads it to skip segments. The bits are
// spread over eight filters, since a few grams are enough to exclude a segment.
// Grams of three bytes would exclude hardly any.
const gramFilters = 8

// newGramFilters returns the filters of a vocabulary.
func newGramFilters(vocabulary []byte) ([gramFilters][]byte, error) {
	grams := make(map[uint32]struct{})
	r := vocabularyReader{buf: vocabulary}
	for r.next() {
		low := r.lower()
		for i := 0; i+4 <= len(low); i++ {
			grams[binary.LittleEndian.Uint32(low[i:])] = struct{}{}
		}
	}
	var filters [gramFilters][]byte
	if r.err != nil {
		return filters, r.err
	}
	size := 1 << bits.Len(uint(len(grams)/gramFilters)) // in bytes: 8 to 16 bits per gram
	for i := range filters {
		filters[i] = make([]byte, size)
	}
	for gram := range grams {
		i, bit := gramBit(gram, size)
		filters[i][bit>>3] |= 1 << (bit & 7)
	}
	return filters, nil
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
