package recall

import (
	"slices"
	"sync/atomic"

	"github.com/furlhq/furl"
)

// finding is a term found in a segment of a session.
type finding struct {
	unit    int
	segment int
	hash    termHash
	list    chunk
}

// scan is one bucket to be read, and the terms to be looked for in it.
type scan struct {
	level  uint8
	bucket uint32
	hashes []termHash

	found []finding
	err   error
}

// lookUp finds terms by their hashes, which are in order, in all segments of
// some sessions. It gives those sessions whose pages have changed since their
// heads were read, of which not all is found. Buckets are read side by side,
// some at a time.
func (l *look) lookUp(units []*sessionUnit, hashes []termHash, atOnce int, found func(f finding)) (stale []*sessionUnit, err error) {
	if len(hashes) == 0 {
		return nil, nil
	}
	pages := newPageCount(units)
	for n, u := range units {
		for i, seg := range u.segments {
			if !seg.packed {
				continue
			}
			e := readSegment(seg, 0)
			if err := pick(&e, hashes, func(h termHash, c chunk) { found(finding{n, i, h, c}) }); err != nil {
				return nil, damaged(u.key, err)
			}
		}
	}
	scans := scansOf(pages, hashes)
	eachAtOnce(len(scans), atOnce, func(i int) {
		scans[i].err = l.scan(units, pages, &scans[i])
	})
	for i := range scans {
		if scans[i].err != nil {
			return nil, scans[i].err
		}
		for _, f := range scans[i].found {
			found(f)
		}
	}
	for n, u := range units {
		if pages.stale[n].Load() {
			stale = append(stale, u)
		}
	}
	return stale, nil
}

// scansOf gives the buckets in which terms may be.
func scansOf(pages *pageCount, hashes []termHash) []scan {
	var scans []scan
	for level, of := range pages.of {
		for from := 0; of != nil && from < len(hashes); {
			bucket := termBucket(uint8(level), hashes[from])
			to := from + 1
			for to < len(hashes) && termBucket(uint8(level), hashes[to]) == bucket {
				to++
			}
			scans = append(scans, scan{level: uint8(level), bucket: bucket, hashes: hashes[from:to]})
			from = to
		}
	}
	return scans
}

// scan reads one bucket of some sessions.
func (l *look) scan(units []*sessionUnit, pages *pageCount, s *scan) error {
	key := furl.SessionKey{Tenant: l.req.Tenant}
	if len(units) == 1 {
		key = units[0].key
	}
	missing := slices.Clone(pages.of[s.level])
	var kept arenaBytes
	for p, err := range l.s.indexer.pages.Pages(l.ctx, key, s.bucket) {
		if err != nil {
			return err
		}
		n, ok := pages.number[p.Session]
		if !ok {
			continue
		}
		u := units[n]
		i, ok := u.number(furl.Seq(p.Segment))
		if !ok || u.segments[i].packed || u.segments[i].level != s.level {
			continue
		}
		payload, err := unseal(&p)
		if err == nil {
			e := readTerms(payload, s.level, s.bucket, u.segments[i].docs)
			err = pick(&e, s.hashes, func(h termHash, c chunk) {
				c.buf = kept.keep(c.buf)
				s.found = append(s.found, finding{n, i, h, c})
			})
		}
		if err != nil {
			return damaged(u.key, err)
		}
		missing[n]--
	}
	for n, m := range missing {
		if m != 0 {
			pages.stale[n].Store(true)
		}
	}
	return nil
}

// pick finds terms in a table.
func pick(e *entries, hashes []termHash, found func(termHash, chunk)) error {
	for _, h := range hashes {
		if list, ok := e.find(h); ok {
			found(h, list)
		}
	}
	return e.err
}

// pageCount says how many pages each of some sessions has in a bucket of each
// level.
type pageCount struct {
	number map[furl.SessionID]int
	of     [maxLevel + 1][]int32 // nil: none
	stale  []atomic.Bool         // sessions of which not all were there
}

func newPageCount(units []*sessionUnit) *pageCount {
	p := &pageCount{number: make(map[furl.SessionID]int, len(units)), stale: make([]atomic.Bool, len(units))}
	for n, u := range units {
		p.number[u.key.Session] = n
		for _, seg := range u.segments {
			if seg.packed {
				continue
			}
			if p.of[seg.level] == nil {
				p.of[seg.level] = make([]int32, len(units))
			}
			p.of[seg.level][n]++
		}
	}
	return p
}

// arenaBytes keeps many small slices together.
type arenaBytes struct{ chunk []byte }

func (a *arenaBytes) keep(b []byte) []byte {
	if cap(a.chunk)-len(a.chunk) < len(b) {
		a.chunk = make([]byte, 0, max(chunkSize, len(b)))
	}
	from := len(a.chunk)
	a.chunk = append(a.chunk, b...)
	return a.chunk[from:len(a.chunk):len(a.chunk)]
}
