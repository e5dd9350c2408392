package recall

import (
	"cmp"
	"iter"
	"math"
	"math/bits"
	"slices"
)

// Ranking is BM25 with the saturation and the length correction that Anserini
// uses for passages, times the square root of the share of the query's weight
// that a document matches at all. On the questions of QMSum (validation set)
// that was among the best of about a hundred settings by hits among the first
// ten, many of them within the noise; counting a neighbour's matches and
// keeping neighbours apart gained nothing clear.
const (
	saturation = 0.9 // k1
	lengthPull = 0.4 // b
)

// What it counts for that a document has a run which contains a run of the
// query: a name of it, or a word.
const (
	nameInside = 2
	wordInside = 0.5
)

// source is where documents are found, numbered in the order of their age.
type source interface {
	// totals gives the number of documents and their mean length.
	totals() (docs int, mean float64)
	length(doc uint32) uint32
	// postings gives how many documents have a term, and these with how
	// often it stands in each, or nil if there are none.
	postings(t Term) (docs uint32, each iter.Seq2[uint32, uint32])
	// containing gives the documents that have a run which contains this
	// one, whatever the case, some perhaps repeatedly.
	containing(run string) iter.Seq[uint32]
}

// ranked is a document found.
type ranked struct {
	doc     uint32
	score   float64
	exact   int    // of the query's names, stand in it
	matched uint64 // which of the query's terms
	pieces  uint64 // which of its runs, within longer ones
}

// rank gives the best limit documents among those for which only holds: if
// the query is names alone, by how many of them a document contains, as they
// stand or within a longer one; then by score; then newest first.
func rank(q *Query, src source, limit int, only func(doc uint32) bool) []ranked {
	total, mean := src.totals()
	if total == 0 || limit <= 0 {
		return nil
	}
	s := scorer{q: q, src: src, total: float64(total), mean: max(mean, 1), docs: make([]scored, total)}
	for i := range q.Terms {
		s.term(i)
	}
	top := s.top(limit, only)
	// Look inside longer runs for what was not found, or too rarely.
	pieces := false
	for i, r := range q.runs {
		if r.pieceable() && (len(top) < limit || !s.foundWhole(r, only) || q.Names && top[len(top)-1].exact == 0) {
			pieces = s.pieces(i, r) || pieces
		}
	}
	if pieces {
		top = s.top(limit, only)
	}
	return top
}

type scorer struct {
	q           *Query
	src         source
	total, mean float64
	weight      float64 // of all terms that were looked for
	docs        []scored
}

// scored is what is known about one document.
type scored struct {
	sum     float64 // BM25
	weight  float64 // of the terms it matches
	matched uint64  // terms
	pieces  uint64  // runs that stand within longer ones
}

// term counts the matches of term i.
func (s *scorer) term(i int) {
	t := s.q.Terms[i]
	n, each := s.src.postings(t)
	w := t.weight() * s.rarity(float64(n))
	s.weight += w
	if n == 0 {
		return
	}
	for doc, count := range each {
		d := &s.docs[doc]
		d.sum += w * s.saturated(doc, float64(count))
		d.weight += w
		d.matched |= 1 << i
	}
}

func (s *scorer) rarity(docs float64) float64 {
	return math.Log(1 + (s.total-docs+0.5)/(docs+0.5))
}

func (s *scorer) saturated(doc uint32, count float64) float64 {
	long := float64(s.src.length(doc)) / s.mean
	return count * (saturation + 1) / (count + saturation*(1-lengthPull+lengthPull*long))
}

// pieces counts the documents in which run i stands within a longer one, and
// not by itself. It reports whether there are any.
func (s *scorer) pieces(i int, r queryRun) bool {
	bit, whole, w := uint64(1)<<i, uint64(0), float64(wordInside)
	if r.whole >= 0 {
		whole = 1 << r.whole
		if s.q.Terms[r.whole].Kind == Name {
			w = nameInside
		}
	}
	var found []uint32
	for doc := range s.src.containing(r.text) {
		if d := &s.docs[doc]; d.pieces&bit == 0 && d.matched&whole == 0 {
			d.pieces |= bit
			found = append(found, doc)
		}
	}
	w *= s.rarity(float64(len(found)))
	for _, doc := range found {
		s.docs[doc].sum += w * s.saturated(doc, 1)
		s.docs[doc].weight += w
	}
	s.weight += w
	return len(found) > 0
}

// foundWhole reports whether a document that may be shown has the run itself.
func (s *scorer) foundWhole(r queryRun, only func(uint32) bool) bool {
	if r.whole < 0 {
		return false
	}
	_, each := s.src.postings(s.q.Terms[r.whole])
	if each != nil {
		for doc := range each {
			if only(doc) {
				return true
			}
		}
	}
	return false
}

func (s *scorer) score(doc uint32) float64 {
	d := &s.docs[doc]
	return d.sum * math.Sqrt(d.weight/s.weight)
}

// top gives the best documents. Their score is comparable within one call.
func (s *scorer) top(limit int, only func(uint32) bool) []ranked {
	var names uint64
	for i := range s.q.Terms {
		if s.q.Terms[i].Kind == Name {
			names |= 1 << i
		}
	}
	top := make([]ranked, 0, min(limit, len(s.docs))+1)
	order := func(a, b ranked) int {
		if s.q.Names {
			if c := cmp.Compare(b.tier(), a.tier()); c != 0 {
				return c
			}
		}
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.doc, a.doc))
	}
	for i := range s.docs {
		d := &s.docs[i]
		if d.weight == 0 {
			continue
		}
		r := ranked{doc: uint32(i), score: s.score(uint32(i)), exact: bits.OnesCount64(d.matched & names), matched: d.matched, pieces: d.pieces}
		if len(top) == limit && order(top[limit-1], r) < 0 || !only(r.doc) {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, r, order)
		top = slices.Insert(top, at, r)
		top = top[:min(len(top), limit)]
	}
	return top
}

// tier counts names that stand in a document as they are, and half those that
// stand within a longer run.
func (r *ranked) tier() int {
	return 2*r.exact + bits.OnesCount64(r.pieces)
}
