package recall

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

// vocable is a term in a vocabulary. Names are as they stand.
type vocable struct {
	text string
	name bool
}

func (v vocable) compare(w vocable) int {
	return cmp.Or(strings.Compare(v.text, w.text), cmp.Compare(boolByte(v.name), boolByte(w.name)))
}

// lexicon writes a vocabulary in order: of each term how much of the one
// before it begins with, and the rest.
type lexicon struct {
	buf  []byte
	last vocable
}

func (l *lexicon) add(v vocable) {
	if len(l.buf) > 0 && v == l.last {
		return
	}
	same := 0
	for same < len(v.text) && same < len(l.last.text) && v.text[same] == l.last.text[same] {
		same++
	}
	l.buf = binary.AppendUvarint(l.buf, uint64(same))
	l.buf = binary.AppendUvarint(l.buf, uint64(len(v.text)-same)<<1|uint64(boolByte(v.name)))
	l.buf = append(l.buf, v.text[same:]...)
	l.last = v
}

// lexiconReader reads one.
type lexiconReader struct {
	buf  []byte
	at   int    // what was read
	text []byte // of the term that next has gone to
	name bool
	low  []byte // scratch
	err  error
}

func (r *lexiconReader) next() bool {
	if r.at == len(r.buf) || r.err != nil {
		return false
	}
	same, n := binary.Uvarint(r.buf[r.at:])
	rest, m := binary.Uvarint(r.buf[min(r.at+max(n, 0), len(r.buf)):])
	from := r.at + n + m
	if n <= 0 || m <= 0 || same > uint64(len(r.text)) || rest>>1 > uint64(len(r.buf)-from) || same+rest>>1 == 0 || same+rest>>1 > maxVocable {
		r.err = fmt.Errorf("%w: vocabulary", errDamaged)
		return false
	}
	r.at = from + int(rest>>1)
	r.text = append(r.text[:same], r.buf[from:r.at]...)
	r.name = rest&1 != 0
	return true
}

// maxVocable is the length of the longest term: a name of four bytes a
// character.
const maxVocable = 4 * maxName

func (r *lexiconReader) vocable() vocable { return vocable{string(r.text), r.name} }

// joinLexicons merges vocabularies.
func joinLexicons(readers []lexiconReader) ([]byte, error) {
	type source struct {
		*lexiconReader
		at vocable
	}
	var live []source
	for i := range readers {
		if r := &readers[i]; r.next() {
			live = append(live, source{r, r.vocable()})
		}
	}
	var out lexicon
	for len(live) > 0 {
		least := live[0].at
		for _, s := range live[1:] {
			if s.at.compare(least) < 0 {
				least = s.at
			}
		}
		out.add(least)
		kept := live[:0]
		for _, s := range live {
			if s.at == least {
				if !s.next() {
					continue
				}
				s.at = s.vocable()
			}
			kept = append(kept, s)
		}
		live = kept
	}
	for i := range readers {
		if readers[i].err != nil {
			return nil, readers[i].err
		}
	}
	return out.buf, nil
}

// containing gives the hashes of the terms that contain a pattern.
func (r *lexiconReader) containing(pattern string) ([]termHash, error) {
	var found []termHash
	want := []byte(pattern)
	for r.next() {
		if len(r.text) >= len(want) && bytes.Contains(r.lower(), want) {
			found = append(found, hashOf(string(r.text), r.name))
		}
	}
	return found, r.err
}

// lower gives the term in lower case, until the next call.
func (r *lexiconReader) lower() []byte {
	if !r.name { // it is so already
		return r.text
	}
	r.low = r.low[:0]
	for _, c := range r.text {
		switch {
		case c >= utf8.RuneSelf:
			return []byte(lower(string(r.text)))
		case class[c]&upper != 0:
			c += 'a' - 'A'
		}
		r.low = append(r.low, c)
	}
	return r.low
}

// A signature is a set of bits, of which each four bytes in a row of the
// vocabulary in lower case set one; it is spread over some buckets, as only a
// few of them are needed to know that a segment has no term which contains a
// pattern. Patterns of three bytes are found in most segments anyway.
const signatures = 8

// signaturesOf makes the signature of a vocabulary.
func signaturesOf(lexicon []byte) ([signatures][]byte, error) {
	seen := make(map[uint32]struct{})
	r := lexiconReader{buf: lexicon}
	for r.next() {
		low := r.lower()
		for i := 0; i+4 <= len(low); i++ {
			seen[binary.LittleEndian.Uint32(low[i:])] = struct{}{}
		}
	}
	var out [signatures][]byte
	if r.err != nil {
		return out, r.err
	}
	n := 1 << bits.Len(uint(len(seen)/signatures)) // a power of two above their mean number:
	for i := range out {
		out[i] = make([]byte, n) // eight to sixteen bits for each
	}
	for four := range seen {
		i, bit := signatureBit(four, n)
		out[i][bit>>3] |= 1 << (bit & 7)
	}
	return out, nil
}

// signatureBit gives which signature of so many bytes has the bit of four
// bytes, and which bit it is.
func signatureBit(four uint32, size int) (n, bit uint32) {
	h := four * 0x9e3779b1
	h ^= h >> 15
	h *= 0x85ebca77
	h ^= h >> 13
	return h % signatures, h / signatures & uint32(size*8-1)
}

// signaturesFor gives the signatures that tell most about a pattern, two at
// most, with the fours of it that they know.
func signaturesFor(pattern string) map[uint32][]uint32 {
	known := make(map[uint32][]uint32)
	for i := 0; i+4 <= len(pattern); i++ {
		four := binary.LittleEndian.Uint32([]byte(pattern[i : i+4]))
		n, _ := signatureBit(four, 1)
		known[n] = append(known[n], four)
	}
	for len(known) > 2 {
		least := slices.MinFunc(slices.Sorted(maps.Keys(known)), func(a, b uint32) int { return cmp.Compare(len(known[a]), len(known[b])) })
		delete(known, least)
	}
	return known
}

// mayContain reports whether a segment of this signature can have a term that
// contains these fours.
func mayContain(signature []byte, fours []uint32) bool {
	if len(signature) == 0 || len(signature)&(len(signature)-1) != 0 {
		return true
	}
	for _, four := range fours {
		if _, bit := signatureBit(four, len(signature)); signature[bit>>3]>>(bit&7)&1 == 0 {
			return false
		}
	}
	return true
}
