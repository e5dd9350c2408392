package recall

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/furlhq/furl"
)

// Looking for a piece of a word in all sessions ends when it was found in so
// many documents, the session in which that happened done, or when so many
// vocabularies were read.
const (
	pieceDocs     = 256
	pieceSessions = 64
)

// containing gives the documents that have a term which contains a run, from
// the newest session to the oldest.
func (l *look) containing(run string) iter.Seq2[int, uint32] {
	return func(yield func(int, uint32) bool) {
		want := pattern(run)
		candidates, err := l.candidates(want)
		if err != nil {
			l.fail(err)
			return
		}
		if l.req.Session == "" {
			l.insideNewest(candidates, want, yield)
			return
		}
		for n := range candidates {
			docs, err := l.unitContaining(n, want)
			if err != nil {
				l.fail(err)
				return
			}
			for doc := range docs {
				if !yield(n, doc) {
					return
				}
			}
		}
	}
}

// insideNewest looks into the newest sessions, some at once, and takes what it
// finds in order: how many are looked into at once makes no difference to it.
func (l *look) insideNewest(candidates map[int]bool, want string, yield func(int, uint32) bool) {
	newest := slices.Sorted(maps.Keys(candidates))
	slices.Reverse(newest)
	newest = newest[:min(len(newest), pieceSessions)]
	type result struct {
		docs map[uint32]struct{}
		err  error
	}
	for total := 0; len(newest) > 0 && total < pieceDocs; {
		some := newest[:min(len(newest), readers)]
		newest = newest[len(some):]
		results := make([]result, len(some))
		eachAtOnce(len(some), len(some), func(i int) {
			results[i].docs, results[i].err = l.unitContaining(some[i], want)
		})
		for i, r := range results {
			if r.err != nil {
				l.fail(r.err)
				return
			}
			for doc := range r.docs {
				if !yield(some[i], doc) {
					return
				}
			}
			if total += len(r.docs); total >= pieceDocs {
				break
			}
		}
	}
}

// candidates tells the units that may have a term which contains a pattern, by
// the signatures of their segments.
func (l *look) candidates(want string) (map[int]bool, error) {
	may := make(map[int]bool)
	fours := signaturesFor(want)
	if len(l.units) == 1 || len(fours) == 0 || l.s.indexer.pages == nil {
		for n := range l.units {
			may[n] = true
		}
		return may, nil
	}
	number := make(map[furl.SessionID]int, len(l.units))
	for n, u := range l.units {
		number[u.key.Session] = n
		if u.tail != nil && len(u.tail.docs) > 0 || slices.ContainsFunc(u.segments, func(seg *segment) bool { return seg.packed }) {
			may[n] = true
		}
	}
	type segmentKey struct {
		unit    int
		segment uint64
	}
	excluded := make(map[segmentKey]bool)
	var mu sync.Mutex
	sigs := slices.Sorted(maps.Keys(fours))
	errs := make([]error, len(sigs))
	eachAtOnce(len(sigs), readers, func(i int) {
		for p, err := range l.s.indexer.pages.Pages(l.ctx, furl.SessionKey{Tenant: l.req.Tenant}, bucketSignature+sigs[i]) {
			if err != nil {
				errs[i] = err
				return
			}
			n, ok := number[p.Session]
			if !ok || may[n] {
				continue
			}
			signature, err := unseal(&p)
			if err != nil {
				errs[i] = damaged(l.units[n].key, err)
				return
			}
			if !mayContain(signature, fours[sigs[i]]) {
				mu.Lock()
				excluded[segmentKey{n, p.Segment}] = true
				mu.Unlock()
			}
		}
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	for n, u := range l.units {
		for _, seg := range u.segments {
			if !seg.packed && !excluded[segmentKey{n, uint64(seg.to)}] {
				may[n] = true
			}
		}
	}
	return may, nil
}

// lookInside looks for the runs of a query in the vocabulary of the only
// session in scope, in one pass for all of them.
func (l *look) lookInside(runs []string) {
	patterns := make([]string, len(runs))
	for i, run := range runs {
		patterns[i] = pattern(run)
	}
	found, err := l.vocabulary(l.units[0], patterns)
	if err != nil {
		l.fail(err)
		return
	}
	l.inside = found
}

// vocabulary gives the terms of a session's segments that contain patterns.
func (l *look) vocabulary(u *sessionUnit, patterns []string) (map[string][]termHash, error) {
	all := make(map[string][]termHash, len(patterns))
	use := func(_ *segment, lexicon []byte) error {
		r := lexiconReader{buf: lexicon}
		found, err := r.containing(patterns)
		for i, p := range patterns {
			all[p] = append(all[p], found[i]...)
		}
		return err
	}
	for _, seg := range u.segments {
		if seg.packed {
			if err := use(seg, seg.lexicon); err != nil {
				return nil, damaged(u.key, err)
			}
		}
	}
	if l.s.indexer.pages != nil {
		if err := part(l.ctx, l.s.indexer.pages, u.key, u.segments, bucketVocabulary, every, use); err != nil {
			return nil, err
		}
	}
	for p, hashes := range all {
		slices.Sort(hashes)
		all[p] = slices.Compact(hashes)
	}
	return all, nil
}

// unitContaining gives the documents of one session that have a term which
// contains a pattern.
func (l *look) unitContaining(n int, want string) (map[uint32]struct{}, error) {
	u := l.units[n]
	docs := make(map[uint32]struct{})
	if u.tail != nil {
		for doc := range u.tail.index.containing(want) {
			docs[uint32(u.bases[len(u.segments)])+doc] = struct{}{}
		}
	}
	hashes, known := l.inside[want]
	if !known {
		found, err := l.vocabulary(u, []string{want})
		if err != nil {
			return nil, err
		}
		hashes = found[want]
	}
	atOnce := readers
	if len(l.units) > 1 { // other sessions are looked into beside this one
		atOnce = 1
	}
	stale, err := l.lookUp([]*sessionUnit{u}, hashes, atOnce, func(f finding) {
		for doc := range f.list.each {
			docs[uint32(u.bases[f.segment])+doc] = struct{}{}
		}
	})
	if len(stale) > 0 {
		return nil, errStale
	}
	return docs, err
}
