package recall

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/furlhq/furl/internal/lexer"
)

// A vocabulary has the texts of a segment's terms in order: of each the number of
// bytes that it shares with the one before, and the rest. It is read to search
// inside terms, which a dictionary of hashes cannot do. Names are as they are
// written, other terms in normal form.

func (t term) compare(u term) int {
	return cmp.Or(strings.Compare(t.text, u.text), cmp.Compare(boolByte(t.name), boolByte(u.name)))
}

// vocabularyWriter writes a vocabulary. Terms are added in order; equal terms are
// written once.
type vocabularyWriter struct {
	buf  []byte
	last term
}

func (w *vocabularyWriter) add(t term) {
	if len(w.buf) > 0 && t == w.last {
		return
	}
	shared := 0
	for shared < len(t.text) && shared < len(w.last.text) && t.text[shared] == w.last.text[shared] {
		shared++
	}
	w.buf = binary.AppendUvarint(w.buf, uint64(shared))
	w.buf = binary.AppendUvarint(w.buf, uint64(len(t.text)-shared)<<1|uint64(boolByte(t.name)))
	w.buf = append(w.buf, t.text[shared:]...)
	w.last = t
}

// vocabularyReader reads a vocabulary.
type vocabularyReader struct {
	buf  []byte
	at   int // bytes read
	name bool
	err  error

	// The text of the current term, and the same in lower case, of which the
	// first lowered bytes are valid. Slices here would be work for the garbage
	// collector with each term.
	len, lowered int
	raw, low     [maxTermBytes]byte
}

// maxTermBytes is the length of the longest term: a name of four bytes per
// character.
const maxTermBytes = 4 * lexer.MaxName

func (r *vocabularyReader) text() []byte { return r.raw[:r.len] }

func (r *vocabularyReader) term() term { return term{string(r.text()), r.name} }

func (r *vocabularyReader) next() bool {
	if r.at == len(r.buf) || r.err != nil {
		return false
	}
	var shared, rest uint64
	from := r.at + 2
	if from <= len(r.buf) && r.buf[r.at]|r.buf[r.at+1] < 0x80 {
		shared, rest = uint64(r.buf[r.at]), uint64(r.buf[r.at+1])
	} else {
		var n, m int
		shared, n = binary.Uvarint(r.buf[r.at:])
		rest, m = binary.Uvarint(r.buf[min(r.at+max(n, 0), len(r.buf)):])
		if n <= 0 || m <= 0 {
			return r.fail()
		}
		from = r.at + n + m
	}
	if shared > uint64(r.len) || rest>>1 > uint64(len(r.buf)-from) || shared+rest>>1 == 0 || shared+rest>>1 > maxTermBytes {
		return r.fail()
	}
	r.at = from + int(rest>>1)
	r.len = int(shared) + copy(r.raw[shared:], r.buf[from:r.at])
	r.name = rest&1 != 0
	r.lowered = min(r.lowered, int(shared))
	return true
}

func (r *vocabularyReader) fail() bool {
	r.err = fmt.Errorf("%w: vocabulary", errDamaged)
	return false
}

// lower returns the term in lower case. It is valid until the next call.
func (r *vocabularyReader) lower() []byte {
	for i := r.lowered; i < r.len; i++ {
		c := r.raw[i]
		if c >= utf8.RuneSelf {
			r.lowered = 0
			if !r.name { // in lower case already
				return r.text()
			}
			return []byte(lower(string(r.text())))
		}
		if c-'A' < 26 {
			c += 'a' - 'A'
		}
		r.low[i] = c
	}
	r.lowered = r.len
	return r.low[:r.len]
}

// containing returns for each pattern the hashes of the terms that contain it. It
// does not search again through what a term shares with the one before.
func (r *vocabularyReader) containing(patterns []string) ([][]termHash, error) {
	found := make([][]termHash, len(patterns))
	wants := make([][]byte, len(patterns))
	for i, p := range patterns {
		wants[i] = []byte(p)
	}
	ends := make([]int, len(patterns)) // of the pattern in the term before; 0: not in it
	for r.next() {
		shared := r.lowered
		low := r.lower()
		for i, want := range wants {
			if ends[i] == 0 || ends[i] > shared {
				from := 0
				if ends[i] == 0 {
					from = max(0, shared-len(want)+1)
				}
				ends[i] = 0
				if len(low)-from >= len(want) {
					if at := bytes.Index(low[from:], want); at >= 0 {
						ends[i] = from + at + len(want)
					}
				}
			}
			if ends[i] > 0 {
				found[i] = append(found[i], hashTerm(string(r.text()), r.name))
			}
		}
	}
	return found, r.err
}

// mergeVocabularies merges the vocabularies of segments.
func mergeVocabularies(readers []vocabularyReader) ([]byte, error) {
	type source struct {
		*vocabularyReader
		at term
	}
	var live []source
	for i := range readers {
		if r := &readers[i]; r.next() {
			live = append(live, source{r, r.term()})
		}
	}
	var out vocabularyWriter
	size := 0
	for i := range readers {
		size += len(readers[i].buf)
	}
	out.buf = make([]byte, 0, size)
	for len(live) > 0 {
		least := slices.MinFunc(live, func(a, b source) int { return a.at.compare(b.at) }).at
		out.add(least)
		rest := live[:0]
		for _, s := range live {
			if s.at == least {
				if !s.next() {
					continue
				}
				s.at = s.term()
			}
			rest = append(rest, s)
		}
		live = rest
	}
	for i := range readers {
		if readers[i].err != nil {
			return nil, readers[i].err
		}
	}
	return out.buf, nil
}
