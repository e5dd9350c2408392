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

// lowered holds all runs in lower case, one after the other, to look for
// pieces of them.
type lowered struct {
	text []byte
	ends []uint32 // of each run, the separator behind it not counted
}

func (l *lowered) add(run string) {
	l.text = append(l.text, lower(run)...)
	l.ends = append(l.ends, uint32(len(l.text)))
	l.text = append(l.text, '\n')
}

// containing gives the numbers of the runs that contain a piece, ascending.
func (l *lowered) containing(piece string) iter.Seq[uint32] {
	want := []byte(lower(piece))
	return func(yield func(uint32) bool) {
		if len(want) == 0 {
			return
		}
		for at := 0; at < len(l.text); {
			i := bytes.Index(l.text[at:], want)
			if i < 0 {
				return
			}
			id, _ := slices.BinarySearch(l.ends, uint32(at+i))
			if !yield(uint32(id)) {
				return
			}
			at = int(l.ends[id]) + 1
		}
	}
}
