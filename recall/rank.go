package recall

import (
	"iter"
	"math"
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

// unit is a run of documents that are ranked with those of other units, all
// numbered from 0 in the order of their age. What the units hold together is
// counted together, so that it makes no difference to the ranking how
// documents are spread over them.
type unit struct {
	docs int
	lens func() []uint32 // of the documents; asked for where one is found
	// postings has, for each term of the query, the documents it stands in.
	postings [][]chunk
}

// chunk is a list of documents whose numbers begin at base.
type chunk struct {
	base uint32
	docs uint32
	buf  []byte // as in list
}

// corpus is what is searched: its units from the oldest to the newest.
type corpus struct {
	units  []unit
	docs   int
	length uint64 // of all documents
	// containing gives the documents that have a name or word which contains
	// this run, whatever the case, some perhaps repeatedly.
	containing func(run string) iter.Seq2[int, uint32]
	// inside, if not nil, is told the runs that containing will be asked for.
	inside func(runs []string)
	// wide says that there is so much of it that looking inside terms is left
	// to queries of names of which some are not found whole, and to queries
	// that find nothing.
	wide bool
	// skip are terms of the query that are not looked for.
	skip uint64
	// atOnce is how many units may be ranked at the same time; lens and only
	// are called for one unit by one at a time. If zero, 1.
	atOnce int
}

// doc is a document of a unit.
type doc struct {
	unit int
	doc  uint32
}

// ranked is a document found.
type ranked struct {
	doc
	score   float64
	exact   int    // of the query's names, stand in it
	matched uint64 // which of the query's terms
	pieces  uint64 // which of its runs, within longer ones
}

// enough is how many documents are as many as one asks for: with fewer, the
// search goes on inside longer words and names. It does not depend on how many
// are to be shown, so that a second page continues the first.
const enough = 5

// rank gives the best limit documents among those for which only holds: if
// the query is names alone, by how many of them a document contains, as they
// stand or within a longer one; then by score; then newest first.
func rank(q *Query, c *corpus, limit int, only func(unit int, doc uint32) bool) []ranked {
	if c.docs == 0 || limit <= 0 || len(q.Terms) == 0 {
		return nil
	}
	s := scorer{q: q, c: c, total: float64(c.docs), only: only}
	s.short = saturation * (1 - lengthPull)
	s.long = saturation * lengthPull / max(float64(c.length)/float64(c.docs), 1)
	for i := range q.Terms {
		if c.skip>>i&1 != 0 {
			s.terms = append(s.terms, 0)
			continue
		}
		docs := 0
		for u := range c.units {
			docs += count(c.units[u].postings[i])
		}
		w := q.Terms[i].weight() * s.rarity(float64(docs))
		s.terms = append(s.terms, w)
		s.weight += w
		if q.Terms[i].Kind == Name {
			s.names |= 1 << i
		}
	}
	top := s.top(max(limit, enough))
	// Look inside longer runs for what was not found, or too rarely.
	few := len(top) < enough || q.Names && top[enough-1].exact == 0
	if c.wide {
		few = false
		if !q.Names && len(top) > 0 {
			return top[:min(len(top), limit)]
		}
	}
	var inside []int
	for i, r := range q.runs {
		if r.whole >= 0 && c.skip>>r.whole&1 != 0 {
			continue
		}
		if r.pieceable() && (few || !s.foundWhole(r)) {
			inside = append(inside, i)
		}
	}
	if c.inside != nil && len(inside) > 0 {
		runs := make([]string, len(inside))
		for n, i := range inside {
			runs[n] = q.runs[i].text
		}
		c.inside(runs)
	}
	for _, i := range inside {
		s.piece(i, q.runs[i])
	}
	if len(s.pieces) > 0 {
		top = s.top(limit)
	}
	return top[:min(len(top), limit)]
}

func count(list []chunk) int {
	n := 0
	for _, c := range list {
		n += int(c.docs)
	}
	return n
}

type scorer struct {
	q           *Query
	c           *corpus
	total       float64
	only        func(int, uint32) bool
	short, long float64   // what a document's length adds up to: short + long × length
	terms       []float64 // weights of the query's terms here
	weight      float64   // of all terms and pieces that were looked for
	names       uint64    // which terms are names
	pieces      []piece
}

// scored is what is known about one document.
type scored struct {
	sum     float64 // BM25
	weight  float64 // of the terms it matches
	matched uint64  // terms
	pieces  uint64  // runs that stand within longer ones
}

// piece is a run of the query that stands within longer ones.
type piece struct {
	bit    uint64
	weight float64
	docs   map[int][]uint32 // of each unit
}

func (s *scorer) rarity(docs float64) float64 {
	return math.Log(1 + (s.total-docs+0.5)/(docs+0.5))
}

// saturated is what count occurrences in a document of this length are worth.
func (s *scorer) saturated(length uint32, count uint32) float64 {
	n := float64(count)
	return n * (saturation + 1) / (n + s.short + s.long*float64(length))
}

// piece finds the documents in which run i stands within a longer one, and
// not by itself.
func (s *scorer) piece(i int, r queryRun) {
	p := piece{bit: 1 << i, weight: wordInside, docs: make(map[int][]uint32)}
	if r.whole >= 0 && s.q.Terms[r.whole].Kind == Name {
		p.weight = nameInside
	}
	for u, doc := range s.c.containing(r.text) {
		p.docs[u] = append(p.docs[u], doc)
	}
	found := 0
	for u, docs := range p.docs {
		slices.Sort(docs)
		docs = slices.Compact(docs)
		if r.whole >= 0 {
			whole := make(map[uint32]bool)
			for _, c := range s.c.units[u].postings[r.whole] {
				for doc := range c.each {
					whole[doc] = true
				}
			}
			docs = slices.DeleteFunc(docs, func(doc uint32) bool { return whole[doc] })
		}
		p.docs[u] = docs
		found += len(docs)
	}
	p.weight *= s.rarity(float64(found))
	s.weight += p.weight
	s.pieces = append(s.pieces, p)
}

// foundWhole reports whether a document that may be shown has the run itself.
func (s *scorer) foundWhole(r queryRun) bool {
	if r.whole < 0 {
		return false
	}
	for u := range s.c.units {
		for _, c := range s.c.units[u].postings[r.whole] {
			for doc := range c.each {
				if s.only(u, doc) {
					return true
				}
			}
		}
	}
	return false
}
