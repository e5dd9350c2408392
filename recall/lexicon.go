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
	at   int // what was read
	name bool
	err  error

	// The text of the term that next has gone to, and in lower case as much
	// of it as is known to be that. Slices would cost the collector's
	// attention with every term.
	len, keep int
	term, low [maxVocable]byte
}

func (r *lexiconReader) text() []byte { return r.term[:r.len] }

func (r *lexiconReader) next() bool {
	if r.at == len(r.buf) || r.err != nil {
		return false
	}
	var same, rest uint64
	from := r.at + 2
	if from <= len(r.buf) && r.buf[r.at]|r.buf[r.at+1] < 0x80 {
		same, rest = uint64(r.buf[r.at]), uint64(r.buf[r.at+1])
	} else {
		var n, m int
		same, n = binary.Uvarint(r.buf[r.at:])
		rest, m = binary.Uvarint(r.buf[min(r.at+max(n, 0), len(r.buf)):])
		if n <= 0 || m <= 0 {
			return r.fail()
		}
		from = r.at + n + m
	}
	if same > uint64(r.len) || rest>>1 > uint64(len(r.buf)-from) || same+rest>>1 == 0 || same+rest>>1 > maxVocable {
		return r.fail()
	}
	r.at = from + int(rest>>1)
	r.len = int(same) + copy(r.term[same:], r.buf[from:r.at])
	r.name = rest&1 != 0
	r.keep = min(r.keep, int(same))
	return true
}

func (r *lexiconReader) fail() bool {
	r.err = fmt.Errorf("%w: vocabulary", errDamaged)
	return false
}

// maxVocable is the length of the longest term: a name of four bytes a
// character.
const maxVocable = 4 * maxName

func (r *lexiconReader) vocable() vocable { return vocable{string(r.text()), r.name} }

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

// containing gives for each pattern the hashes of the terms that contain it.
// What a term shares with the one before it is not looked through again.
func (r *lexiconReader) containing(patterns []string) ([][]termHash, error) {
	found := make([][]termHash, len(patterns))
	wants := make([][]byte, len(patterns))
	for i, p := range patterns {
		wants[i] = []byte(p)
	}
	ends := make([]int, len(patterns)) // of the pattern in the term before; 0: it is not in there
	for r.next() {
		same := r.keep
		low := r.lower()
		for i, want := range wants {
			if ends[i] == 0 || ends[i] > same {
				from := 0
				if ends[i] == 0 {
					from = max(0, same-len(want)+1)
				}
				ends[i] = 0
				if len(low)-from >= len(want) {
					if at := bytes.Index(low[from:], want); at >= 0 {
						ends[i] = from + at + len(want)
					}
				}
			}
			if ends[i] > 0 {
				found[i] = append(found[i], hashOf(string(r.text()), r.name))
			}
		}
	}
	return found, r.err
}

// lower gives the term in lower case, until the next call.
func (r *lexiconReader) lower() []byte {
	for i := r.keep; i < r.len; i++ {
		c := r.term[i]
		if c >= utf8.RuneSelf {
			r.keep = 0
			if !r.name { // it is so already
				return r.text()
			}
			return []byte(lower(string(r.text())))
		}
		if c-'A' < 26 {
			c += 'a' - 'A'
		}
		r.low[i] = c
	}
	r.keep = r.len
	return r.low[:r.len]
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
