package recall

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
)

// The collector finds the best documents without scoring all (MaxScore). The terms
// of a leaf limit what its documents can score. Leaves are visited in the order
// of these bounds; the first leaf that cannot reach the documents found so far ends
// the search. Within a leaf, only documents with an essential term are scored:
// documents without one cannot reach them either. An answer is scored with its
// question. The result is that of scoring every document.

// maxTF is the upper bound of the scorer's tf, with a margin for rounding.
const maxTF = (bm25K1 + 1) * (1 + 1e-9)

// bound is the most that a document of a leaf can reach.
type bound struct {
	leaf  int
	tier  int
	score float64
	terms uint64 // that the leaf has
}

// minParallelLeaves is the number of leaves from which several goroutines are
// faster than one.
const minParallelLeaves = 8

// collect returns the best documents. Scores can be compared within one call.
func (s *scorer) collect(limit int) []scoredDoc {
	bounds := s.bounds()
	goroutines := max(s.c.goroutines, 1)
	if len(bounds) < minParallelLeaves {
		goroutines = 1
	}
	best := make([][]scoredDoc, goroutines)
	var next atomic.Int64
	var threshold atomic.Pointer[scoredDoc] // as many documents as are asked for reach it
	parallel(goroutines, goroutines, func(i int) {
		best[i] = s.collectLeaves(func() (bound, bool) {
			n := int(next.Add(1)) - 1
			if n >= len(bounds) {
				return bound{}, false
			}
			return bounds[n], true
		}, limit, &threshold)
	})
	top := slices.Concat(best...)
	if goroutines > 1 {
		slices.SortFunc(top, s.order) // no two documents are equal
	}
	return top[:min(len(top), limit)]
}

// bounds returns the bounds of the leaves that have something of the query, the
// highest first.
func (s *scorer) bounds() []bound {
	var all []bound
	for l := range s.c.leaves {
		b := bound{leaf: l}
		weight, infixes := 0.0, 0
		for i, w := range s.weights {
			if len(s.c.leaves[l].postings[i]) > 0 {
				b.terms |= 1 << i
				weight += w
			}
		}
		for _, x := range s.infixes {
			if len(x.docs[l]) > 0 {
				infixes++
				weight += x.weight
			}
		}
		if b.terms == 0 && infixes == 0 {
			continue
		}
		if s.q.namesOnly {
			b.tier = tier(bits.OnesCount64(b.terms&s.names), infixes)
		}
		b.score = s.maxScore(weight)
		all = append(all, b)
	}
	slices.SortStableFunc(all, func(a, b bound) int { return cmp.Or(cmp.Compare(b.tier, a.tier), cmp.Compare(b.score, a.score)) })
	return all
}

// maxScore returns the upper bound of the score of a document that matches terms
// of this weight, and answers one that does.
func (s *scorer) maxScore(weight float64) float64 {
	return (1 + s.share) * maxTF * weight * math.Sqrt(min(weight/s.weight, 1))
}

// tier orders the documents of a query of names: each name that a document has
// counts 2, each name inside a longer run 1.
func tier(names, infixes int) int { return 2*names + infixes }

func (d *scoredDoc) tier() int { return tier(d.exact, bits.OnesCount64(d.infixes)) }

// order compares two documents: the better one is first.
func (s *scorer) order(a, b scoredDoc) int {
	if s.q.namesOnly {
		if c := cmp.Compare(b.tier(), a.tier()); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.leaf, a.leaf), cmp.Compare(b.doc, a.doc))
}

// collectLeaves returns the best documents of some leaves, whose bounds next
// returns in order. It may leave out documents that do not reach the threshold,
// which others raise too.
func (s *scorer) collectLeaves(next func() (bound, bool), limit int, threshold *atomic.Pointer[scoredDoc]) []scoredDoc {
	var top []scoredDoc
	var acc accumulators
	for b, ok := next(); ok; b, ok = next() {
		least := threshold.Load()
		essential := b.terms
		if least != nil {
			if s.q.namesOnly && b.tier < least.tier() || (!s.q.namesOnly || b.tier == least.tier()) && b.score < least.score {
				break // the bounds that follow are lower
			}
			essential = s.essential(&b, least)
		}
		s.accumulate(b.leaf, essential, &acc)
		for _, n := range acc.touched {
			a, question := &acc.docs[n], s.questionOf(b.leaf, n, &acc)
			if least != nil && !s.q.namesOnly && a.sum+s.share*question.sum < least.score {
				continue // the score is at most the sum
			}
			d := scoredDoc{docID: docID{b.leaf, n}, exact: bits.OnesCount64(a.terms & s.names), terms: a.terms, infixes: a.infixes}
			if least != nil && s.q.namesOnly {
				if c := cmp.Compare(d.tier(), least.tier()); c < 0 || c == 0 && a.sum < least.score {
					continue
				}
			}
			d.score = s.score(a) + s.share*s.score(question)
			if least != nil && s.order(*least, d) < 0 || !s.filter(b.leaf, n) {
				continue
			}
			at, _ := slices.BinarySearchFunc(top, d, s.order)
			top = slices.Insert(top, at, d)
			if len(top) < limit {
				continue
			}
			top = top[:limit]
			least = s.raise(threshold, top[limit-1])
		}
	}
	return top
}

// score returns the score of a document by its own text.
func (s *scorer) score(a *accumulator) float64 { return a.sum * math.Sqrt(a.weight/s.weight) }

var noAccumulator accumulator

// questionOf returns the accumulator of the document that a document answers; zero if
// it does not answer one.
func (s *scorer) questionOf(leaf int, doc uint32, acc *accumulators) *accumulator {
	if s.share > 0 && doc > 0 && s.c.leaves[leaf].lengths()[doc].answers() {
		return &acc.docs[doc-1]
	}
	return &noAccumulator
}

// raise raises the threshold to a document, unless it is higher already, and
// returns it.
func (s *scorer) raise(threshold *atomic.Pointer[scoredDoc], to scoredDoc) *scoredDoc {
	for {
		old := threshold.Load()
		if old != nil && s.order(*old, to) <= 0 {
			return old
		}
		if threshold.CompareAndSwap(old, &to) {
			return &to
		}
	}
}

// essential returns the essential terms of a leaf: a document needs one of them,
// or an infix, to reach the threshold. In a query of names, names are always
// essential.
func (s *scorer) essential(b *bound, threshold *scoredDoc) uint64 {
	essential := b.terms
	others := b.terms
	if s.q.namesOnly {
		if threshold.tier() > 0 {
			return essential & s.names
		}
		others &^= s.names
	}
	for sum := 0.0; others != 0; {
		least := -1
		for rest := others; rest != 0; rest &= rest - 1 {
			if i := bits.TrailingZeros64(rest); least < 0 || s.weights[i] < s.weights[least] {
				least = i
			}
		}
		if sum += s.weights[least]; s.maxScore(sum) >= threshold.score {
			break
		}
		others &^= 1 << least
		essential &^= 1 << least
	}
	return essential
}

// accumulators sum up the scores of the documents of one leaf.
type accumulators struct {
	docs    []accumulator
	touched []uint32 // documents with an accumulator that is not zero

	essential []bool // documents with an essential term or an infix
	marked    []uint32
}

type accumulator struct {
	sum     float64 // BM25
	weight  float64 // of the terms and infixes that the document has
	terms   uint64
	infixes uint64
}

func (acc *accumulators) reset(docs int) {
	for _, doc := range acc.touched {
		acc.docs[doc] = accumulator{}
	}
	for _, doc := range acc.marked {
		acc.essential[doc] = false
	}
	acc.touched, acc.marked = acc.touched[:0], acc.marked[:0]
	if docs > len(acc.docs) {
		acc.docs, acc.essential = make([]accumulator, docs), make([]bool, docs)
	}
}

func (acc *accumulators) of(doc uint32) *accumulator {
	a := &acc.docs[doc]
	if a.terms|a.infixes == 0 {
		acc.touched = append(acc.touched, doc)
	}
	return a
}

func (acc *accumulators) mark(doc uint32) {
	if !acc.essential[doc] {
		acc.essential[doc] = true
		acc.marked = append(acc.marked, doc)
	}
}

// accumulate sums up the documents of a leaf that have an essential term or an
// infix. Terms are added in the order of the query, so that a sum is the same to
// the last bit whichever terms are essential.
func (s *scorer) accumulate(n int, essential uint64, acc *accumulators) {
	l := &s.c.leaves[n]
	acc.reset(l.docs)
	all := true // every term is essential
	for i := range s.weights {
		all = all && (essential>>i&1 != 0 || len(l.postings[i]) == 0)
	}
	if !all {
		s.markEssential(n, essential, acc)
		if len(acc.marked) == 0 {
			return
		}
	}
	lengths := l.lengths()
	for i, w := range s.weights {
		for _, p := range l.postings[i] {
			for doc, count := range p.each {
				if !all && !acc.essential[doc] {
					continue
				}
				a := acc.of(doc)
				a.sum += w * s.tf(lengths[doc], count)
				a.weight += w
				a.terms |= 1 << i
			}
		}
	}
	for _, x := range s.infixes {
		for _, doc := range x.docs[n] {
			a := acc.of(doc)
			a.sum += x.weight * s.tf(lengths[doc], 1)
			a.weight += x.weight
			a.infixes |= x.bit
		}
	}
	for _, doc := range acc.touched {
		if next := doc + 1; s.answered(lengths, doc) && acc.docs[next].terms|acc.docs[next].infixes == 0 {
			acc.touched = append(acc.touched, next)
		}
	}
}

// answered reports whether the next document answers a document, and is ranked by it.
func (s *scorer) answered(lengths []docLength, doc uint32) bool {
	return s.share > 0 && int(doc)+1 < len(lengths) && lengths[doc+1].answers()
}

// markEssential marks the documents that have an essential term or an infix, their
// answers, and the questions that they answer.
func (s *scorer) markEssential(n int, essential uint64, acc *accumulators) {
	for i := range s.weights {
		if essential>>i&1 == 0 {
			continue
		}
		for _, p := range s.c.leaves[n].postings[i] {
			for doc := range p.each {
				acc.mark(doc)
			}
		}
	}
	for _, x := range s.infixes {
		for _, doc := range x.docs[n] {
			acc.mark(doc)
		}
	}
	if s.share == 0 || len(acc.marked) == 0 {
		return
	}
	lengths := s.c.leaves[n].lengths()
	for _, doc := range acc.marked {
		if doc > 0 && lengths[doc].answers() {
			acc.mark(doc - 1)
		}
		if s.answered(lengths, doc) {
			acc.mark(doc + 1)
		}
	}
}
