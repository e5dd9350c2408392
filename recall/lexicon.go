package recall

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
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
	text []byte // of the term that next has gone to
	name bool
	err  error
}

func (r *lexiconReader) next() bool {
	if len(r.buf) == 0 || r.err != nil {
		return false
	}
	in := reader{buf: r.buf}
	same, rest := in.uint(), in.uint()
	if in.bad || same > uint64(len(r.text)) || rest>>1 > uint64(len(in.buf)) || same+rest>>1 == 0 || same+rest>>1 > maxVocable {
		r.err = fmt.Errorf("%w: vocabulary", errDamaged)
		return false
	}
	n := int(rest >> 1)
	r.text = append(r.text[:same], in.buf[:n]...)
	r.name = rest&1 != 0
	r.buf = in.buf[n:]
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
	for r.next() {
		if len(r.text) < len(pattern) {
			continue
		}
		if text := string(r.text); strings.Contains(lowerName(text, r.name), pattern) {
			found = append(found, hashOf(text, r.name))
		}
	}
	return found, r.err
}

// lowerName gives a vocable in lower case; words are so already.
func lowerName(text string, name bool) string {
	if name {
		return lower(text)
	}
	return text
}

// A signature is a set of bits, of which each three bytes in a row of the
// vocabulary in lower case set one. A segment whose signature lacks one of a
// pattern's has no term that contains it.
func signatureOf(lexicon []byte) ([]byte, error) {
	seen := make(map[uint32]struct{})
	r := lexiconReader{buf: lexicon}
	for r.next() {
		eachThree(lowerName(string(r.text), r.name), func(t uint32) bool {
			seen[t] = struct{}{}
			return true
		})
	}
	if r.err != nil {
		return nil, r.err
	}
	n := 1 << bits.Len(uint(len(seen))) // a power of two above their number,
	bitmap := make([]byte, max(n, 1))   // in bytes: eight to sixteen bits for each
	for t := range seen {
		bit := signatureBit(t, len(bitmap))
		bitmap[bit>>3] |= 1 << (bit & 7)
	}
	return bitmap, nil
}

func signatureBit(three uint32, bytes int) uint32 {
	return (three * 0x9e3779b1) >> 3 & uint32(bytes*8-1)
}

func eachThree(s string, yield func(uint32) bool) {
	for i := 0; i+3 <= len(s); i++ {
		if !yield(uint32(s[i])<<16 | uint32(s[i+1])<<8 | uint32(s[i+2])) {
			return
		}
	}
}

// mayContain reports whether a segment of this signature can have a term that
// contains the pattern.
func mayContain(signature []byte, pattern string) bool {
	if len(signature) == 0 || len(signature)&(len(signature)-1) != 0 {
		return true
	}
	may := true
	eachThree(pattern, func(t uint32) bool {
		bit := signatureBit(t, len(signature))
		may = signature[bit>>3]>>(bit&7)&1 != 0
		return may
	})
	return may
}
