package recall

import (
	"bytes"
	"iter"
	"slices"
	"strings"
)

// arena keeps many small strings together, so that an index does not keep the
// texts alive that it found them in.
type arena struct{ chunk *strings.Builder }

const chunkSize = 1 << 16

func (a *arena) keep(s string) string {
	if a.chunk == nil || a.chunk.Cap()-a.chunk.Len() < len(s) {
		a.chunk = new(strings.Builder)
		a.chunk.Grow(max(chunkSize, len(s)))
	}
	from := a.chunk.Len()
	a.chunk.WriteString(s)
	return a.chunk.String()[from:]
}

// lowered holds terms in lower case, one after the other, to look for pieces
// of them.
type lowered struct {
	text  []byte
	ends  []uint32 // of each term, the separator behind it not counted
	terms []uint32
}

func (l *lowered) add(text string, term uint32) {
	l.text = append(l.text, text...)
	l.ends = append(l.ends, uint32(len(l.text)))
	l.terms = append(l.terms, term)
	l.text = append(l.text, '\n')
}

// containing gives the terms that contain a pattern, in the order in which
// they were added.
func (l *lowered) containing(pattern string) iter.Seq[uint32] {
	want := []byte(pattern)
	return func(yield func(uint32) bool) {
		if len(want) == 0 {
			return
		}
		for at := 0; at < len(l.text); {
			i := bytes.Index(l.text[at:], want)
			if i < 0 {
				return
			}
			n, _ := slices.BinarySearch(l.ends, uint32(at+i))
			if !yield(l.terms[n]) {
				return
			}
			at = int(l.ends[n]) + 1
		}
	}
}

// pattern is what a run is looked for by inside terms: the run in lower case,
// without the end that words lose as terms where that is short.
func pattern(run string) string {
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
