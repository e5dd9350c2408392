package recall

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/furlhq/furl"
)

// A search inside words in all sessions ends after the session in which it has
// found so many documents, or after so many sessions.
const (
	maxInfixDocs     = 256
	maxInfixSessions = 64
)

// infixDocs returns the documents with a term that contains a run, from the
// newest session to the oldest.
func (snap *snapshot) infixDocs(run string) iter.Seq2[int, uint32] {
	return func(yield func(int, uint32) bool) {
		pattern := infixPattern(run)
		candidates, err := snap.infixCandidates(pattern)
		if err != nil {
			snap.fail(err)
			return
		}
		if snap.req.Session == "" {
			snap.newestInfixDocs(candidates, pattern, yield)
			return
		}
		for n := range candidates {
			docs, err := snap.sessionInfixDocs(n, pattern)
			if err != nil {
				snap.fail(err)
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

// newestInfixDocs searches the newest sessions, several concurrently, and uses the
// results in order: the hits do not depend on how many it searches at a time.
func (snap *snapshot) newestInfixDocs(candidates map[int]bool, pattern string, yield func(int, uint32) bool) {
	newest := slices.Sorted(maps.Keys(candidates))
	slices.Reverse(newest)
	newest = newest[:min(len(newest), maxInfixSessions)]
	type result struct {
		docs map[uint32]struct{}
		err  error
	}
	for total := 0; len(newest) > 0 && total < maxInfixDocs; {
		some := newest[:min(len(newest), maxReads)]
		newest = newest[len(some):]
		results := make([]result, len(some))
		parallel(len(some), len(some), func(i int) {
			results[i].docs, results[i].err = snap.sessionInfixDocs(some[i], pattern)
		})
		for i, r := range results {
			if r.err != nil {
				snap.fail(r.err)
				return
			}
			for doc := range r.docs {
				if !yield(some[i], doc) {
					return
				}
			}
			if total += len(r.docs); total >= maxInfixDocs {
				break
			}
		}
	}
}

// infixCandidates returns the sessions that may have a term which contains a
// pattern, by the gram filters of their segments.
func (snap *snapshot) infixCandidates(pattern string) (map[int]bool, error) {
	candidates := make(map[int]bool)
	grams := patternGrams(pattern)
	pages := snap.searcher.indexer.pages
	if len(snap.sessions) == 1 || len(grams) == 0 || pages == nil {
		for n := range snap.sessions {
			candidates[n] = true
		}
		return candidates, nil
	}
	number := make(map[furl.SessionID]int, len(snap.sessions))
	for n, r := range snap.sessions {
		number[r.key.Session] = n
		if r.tail != nil && len(r.tail.docs) > 0 || slices.ContainsFunc(r.segments, func(seg *segment) bool { return seg.packed }) {
			candidates[n] = true
		}
	}
	type segmentKey struct {
		session int
		segment uint64
	}
	var mu sync.Mutex
	excluded := make(map[segmentKey]bool)
	filters := slices.Sorted(maps.Keys(grams))
	errs := make([]error, len(filters))
	parallel(len(filters), maxReads, func(i int) {
		for p, err := range pages.Pages(snap.ctx, furl.SessionKey{Tenant: snap.req.Tenant}, firstGramBucket+filters[i]) {
			if err != nil {
				errs[i] = err
				return
			}
			n, ok := number[p.Session]
			if !ok || candidates[n] {
				continue
			}
			filter, err := pagePayload(&p)
			if err != nil {
				errs[i] = damaged(snap.sessions[n].key, err)
				return
			}
			if !mayContain(filter, grams[filters[i]]) {
				mu.Lock()
				excluded[segmentKey{n, p.Segment}] = true
				mu.Unlock()
			}
		}
	})
	if err := firstError(errs); err != nil {
		return nil, err
	}
	for n, r := range snap.sessions {
		for _, seg := range r.segments {
			if !seg.packed && !excluded[segmentKey{n, uint64(seg.to)}] {
				candidates[n] = true
			}
		}
	}
	return candidates, nil
}

// prepareInfixes searches the vocabulary of the only session in scope for several
// runs in one pass.
func (snap *snapshot) prepareInfixes(runs []string) {
	patterns := make([]string, len(runs))
	for i, run := range runs {
		patterns[i] = infixPattern(run)
	}
	found, err := snap.termsContaining(snap.sessions[0], patterns)
	if err != nil {
		snap.fail(err)
		return
	}
	snap.infixTerms = found
}

// termsContaining returns the terms of a session's segments that contain patterns.
func (snap *snapshot) termsContaining(r *sessionReader, patterns []string) (map[string][]termHash, error) {
	found := make(map[string][]termHash, len(patterns))
	use := func(_ *segment, vocabulary []byte) error {
		v := vocabularyReader{buf: vocabulary}
		hashes, err := v.containing(patterns)
		for i, p := range patterns {
			found[p] = append(found[p], hashes[i]...)
		}
		return err
	}
	for _, seg := range r.segments {
		if seg.packed {
			if err := use(seg, seg.vocabulary); err != nil {
				return nil, damaged(r.key, err)
			}
		}
	}
	if pages := snap.searcher.indexer.pages; pages != nil {
		if err := readPart(snap.ctx, pages, r.key, r.segments, bucketVocabulary, everySegment, use); err != nil {
			return nil, err
		}
	}
	for p, hashes := range found {
		slices.Sort(hashes)
		found[p] = slices.Compact(hashes)
	}
	return found, nil
}

// sessionInfixDocs returns the documents of one session with a term that contains
// a pattern.
func (snap *snapshot) sessionInfixDocs(n int, pattern string) (map[uint32]struct{}, error) {
	r := snap.sessions[n]
	docs := make(map[uint32]struct{})
	if r.tail != nil {
		for doc := range r.tail.index.infixDocs(pattern) {
			docs[uint32(r.bases[len(r.segments)])+doc] = struct{}{}
		}
	}
	hashes, ok := snap.infixTerms[pattern]
	if !ok {
		found, err := snap.termsContaining(r, []string{pattern})
		if err != nil {
			return nil, err
		}
		hashes = found[pattern]
	}
	goroutines := maxReads
	if len(snap.sessions) > 1 { // other sessions are searched concurrently
		goroutines = 1
	}
	stale, err := snap.lookUp([]*sessionReader{r}, hashes, goroutines, func(f foundTerm) {
		for doc := range f.list.each {
			docs[uint32(r.bases[f.segment])+doc] = struct{}{}
		}
	})
	if len(stale) > 0 {
		return nil, errStale
	}
	return docs, err
}
