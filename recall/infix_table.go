package recall

import (
	"bytes"
	"iter"
	"slices"
	"strings"
)

// infixTable finds terms by a part of their text. It has the texts in lower case,
// one per line.
type infixTable struct {
	text  []byte
	ends  []uint32 // of each line, without its line break
	terms []uint32 // of each line
}

func (t *infixTable) add(text string, term uint32) {
	t.text = append(t.text, text...)
	t.ends = append(t.ends, uint32(len(t.text)))
	t.terms = append(t.terms, term)
	t.text = append(t.text, '\n')
}

// containing returns the terms that contain a pattern, in the order in which
// they were added.
func (t *infixTable) containing(pattern string) iter.Seq[uint32] {
	want := []byte(pattern)
	return func(yield func(uint32) bool) {
		if len(want) == 0 {
			return
		}
		for at := 0; at < len(t.text); {
			i := bytes.Index(t.text[at:], want)
			if i < 0 {
				return
			}
			n, _ := slices.BinarySearch(t.ends, uint32(at+i))
			if !yield(t.terms[n]) {
				return
			}
			at = int(t.ends[n]) + 1
		}
	}
}

// infixPattern returns the text by which a run is searched for inside terms: the
// run in lower case, without an ending that stemming removes, if that is short.
func infixPattern(run string) string {
	low := lower(run)
	stem := stem(low)
	n := 0
	for n < len(stem) && stem[n] == low[n] {
		n++
	}
	if n >= 3 && n >= len(low)-2 {
		return low[:n]
	}
	return low
}

// stringArena copies small strings into large chunks, so that an index does not
// keep the texts alive in which it found them.
type stringArena struct{ chunk *strings.Builder }

// The first chunk, and the largest, in bytes.
const (
	arenaFirst = 1 << 11
	arenaChunk = 1 << 16
)

func (a *stringArena) clone(s string) string {
	if a.chunk == nil || a.chunk.Cap()-a.chunk.Len() < len(s) {
		size := arenaFirst
		if a.chunk != nil {
			size = min(2*a.chunk.Cap(), arenaChunk)
		}
		a.chunk = new(strings.Builder)
		a.chunk.Grow(max(size, len(s)))
	}
	from := a.chunk.Len()
	a.chunk.WriteString(s)
	return a.chunk.String()[from:]
}
