package recall

import (
	"slices"
	"sync/atomic"

	"github.com/furlhq/furl"
)

// foundTerm is a term that a segment of a session has.
type foundTerm struct {
	session int
	segment int
	hash    termHash
	list    postings
}

// bucketScan reads one bucket and looks up terms in it.
type bucketScan struct {
	level  uint8
	bucket uint32
	hashes []termHash

	found []foundTerm
	err   error
}

// lookUp calls found for the terms, given by their sorted hashes, in all segments
// of some sessions. It returns the sessions whose pages changed since their heads
// were read, of which terms may be missing. It reads up to goroutines buckets
// concurrently.
func (snap *snapshot) lookUp(sessions []*sessionReader, hashes []termHash, goroutines int, found func(f foundTerm)) (stale []*sessionReader, err error) {
	if len(hashes) == 0 {
		return nil, nil
	}
	for n, r := range sessions {
		for i, seg := range r.segments {
			if !seg.packed {
				continue
			}
			t := segmentTerms(seg, 0)
			if err := t.findAll(hashes, func(h termHash, list postings) { found(foundTerm{n, i, h, list}) }); err != nil {
				return nil, damaged(r.key, err)
			}
		}
	}
	expected := newExpectedPages(sessions)
	scans := expected.scans(hashes)
	parallel(len(scans), goroutines, func(i int) {
		scans[i].err = snap.scan(sessions, expected, &scans[i])
	})
	for i := range scans {
		if scans[i].err != nil {
			return nil, scans[i].err
		}
		for _, f := range scans[i].found {
			found(f)
		}
	}
	for n, r := range sessions {
		if expected.stale[n].Load() {
			stale = append(stale, r)
		}
	}
	return stale, nil
}

// scan reads one bucket of some sessions.
func (snap *snapshot) scan(sessions []*sessionReader, expected *expectedPages, s *bucketScan) error {
	key := furl.SessionKey{Tenant: snap.req.Tenant}
	if len(sessions) == 1 {
		key = sessions[0].key
	}
	missing := slices.Clone(expected.counts[s.level])
	var arena byteArena
	for p, err := range snap.searcher.indexer.pages.Pages(snap.ctx, key, s.bucket) {
		if err != nil {
			return err
		}
		n, ok := expected.numbers[p.Session]
		if !ok {
			continue
		}
		r := sessions[n]
		i, ok := findSegment(r.segments, furl.Seq(p.Segment))
		if !ok || r.segments[i].packed || r.segments[i].level != s.level {
			continue
		}
		payload, err := pagePayload(&p)
		if err == nil {
			t := newTermReader(payload, s.level, s.bucket, r.segments[i].docs)
			err = t.findAll(s.hashes, func(h termHash, list postings) {
				list.buf = arena.clone(list.buf)
				s.found = append(s.found, foundTerm{n, i, h, list})
			})
		}
		if err != nil {
			return damaged(r.key, err)
		}
		missing[n]--
	}
	for n, m := range missing {
		if m != 0 {
			expected.stale[n].Store(true)
		}
	}
	return nil
}

// expectedPages counts the pages that each session has in a bucket of each level.
type expectedPages struct {
	numbers map[furl.SessionID]int
	counts  [maxLevel + 1][]int32 // by session; nil: none
	stale   []atomic.Bool         // by session: the counts were wrong
}

func newExpectedPages(sessions []*sessionReader) *expectedPages {
	e := &expectedPages{numbers: make(map[furl.SessionID]int, len(sessions)), stale: make([]atomic.Bool, len(sessions))}
	for n, r := range sessions {
		e.numbers[r.key.Session] = n
		for _, seg := range r.segments {
			if seg.packed {
				continue
			}
			if e.counts[seg.level] == nil {
				e.counts[seg.level] = make([]int32, len(sessions))
			}
			e.counts[seg.level][n]++
		}
	}
	return e
}

// scans returns the buckets that can have the terms.
func (e *expectedPages) scans(hashes []termHash) []bucketScan {
	var scans []bucketScan
	for level, counts := range e.counts {
		for from := 0; counts != nil && from < len(hashes); {
			bucket := termBucket(uint8(level), hashes[from])
			to := from + 1
			for to < len(hashes) && termBucket(uint8(level), hashes[to]) == bucket {
				to++
			}
			scans = append(scans, bucketScan{level: uint8(level), bucket: bucket, hashes: hashes[from:to]})
			from = to
		}
	}
	return scans
}

// byteArena copies small slices into large chunks.
type byteArena struct{ chunk []byte }

func (a *byteArena) clone(b []byte) []byte {
	if cap(a.chunk)-len(a.chunk) < len(b) {
		a.chunk = make([]byte, 0, max(arenaChunk, len(b)))
	}
	from := len(a.chunk)
	a.chunk = append(a.chunk, b...)
	return a.chunk[from:len(a.chunk):len(a.chunk)]
}
