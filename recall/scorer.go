package recall

import (
	"iter"
	"math"
	"slices"
)

// The score is BM25, times the square root of the share of the query's weight
// that a document matches. k1 and b are those that Anserini uses for passages. On
// the questions of QMSum (validation set) this was among the best of about a
// hundred settings by hits among the first ten, many of them within the noise;
// counting the matches of neighboring documents, or excluding neighbors, had no
// clear gain there.
const (
	bm25K1 = 0.9
	bm25B  = 0.4
)

// The share of a question's score that its answer gets. In chats, an answer often has
// none of the words of its question. Text beside text only, because the neighbors of
// calls and results say little about them. With a share of a half, one of QMSum's 237
// questions is no longer answered among the first ten hits; beside vectors, more are
// with shares above 0.2.
const (
	answerShare      = 0.45
	fusedAnswerShare = 0.2
)

// Boosts of a run of the query that a document has inside a longer run.
const (
	nameInfixBoost = 2
	wordInfixBoost = 0.5
)

// corpus is what a search ranks: its leaves from the oldest to the newest. All
// statistics are of the whole corpus, so that the ranking does not depend on how
// documents are distributed over leaves.
type corpus struct {
	leaves []leaf
	docs   int
	length uint64 // of all documents, in tokens
	// infixDocs returns the leaves and documents with a term that contains a run,
	// some perhaps repeatedly.
	infixDocs func(run string) iter.Seq2[int, uint32]
	// prepareInfixes, if not nil, is called before infixDocs with all runs that it
	// will be called with.
	prepareInfixes func(runs []string)
	// wide says that searching inside terms is expensive. Then only queries of
	// names of which some are not found, and queries that match nothing, do it.
	wide bool
	// ignored are terms of the query that are not searched for.
	ignored uint64
	// answerShare is the share of a question's score that its answer gets.
	answerShare float64
	// goroutines is how many leaves may be ranked concurrently. If zero, 1. The
	// lengths of a leaf and the filter are not called concurrently for one leaf.
	goroutines int
}

// leaf is a part of a corpus, such as a session. Its documents are numbered from
// 0, the oldest first.
type leaf struct {
	docs     int
	lengths  func() []docLength // of the documents
	postings [][]postings       // of each term of the query
}

// docID identifies a document of a corpus.
type docID struct {
	leaf int
	doc  uint32
}

// scoredDoc is a document with its score.
type scoredDoc struct {
	docID
	score   float64
	exact   int    // number of names of the query that it has
	terms   uint64 // of the query, that it has
	infixes uint64 // runs of the query that it has inside longer ones
}

// fewDocs is the number of documents below which a search continues inside words
// and names. It does not depend on the number of documents that are asked for, so
// that a second page continues the first.
const fewDocs = 5

// topDocs returns the best documents for which filter is true, at most limit. If
// the query consists of names, documents are ordered by how many of them they
// have; then by score; then the newest first.
func topDocs(q *query, c *corpus, limit int, filter func(leaf int, doc uint32) bool) []scoredDoc {
	if c.docs == 0 || limit <= 0 || len(q.terms) == 0 {
		return nil
	}
	s := newScorer(q, c, filter)
	top := s.collect(max(limit, 2*fewDocs))
	if c.wide && !q.namesOnly && len(top) > 0 {
		return top[:min(len(top), limit)]
	}
	few := !c.wide && (countMatching(top) < fewDocs || q.namesOnly && top[fewDocs-1].exact == 0)
	if s.addInfixes(few) {
		top = s.collect(limit)
	}
	return top[:min(len(top), limit)]
}

// countMatching counts the documents that match themselves, among the first. An answer
// that does not match comes after its question, so that half of them match.
func countMatching(top []scoredDoc) (n int) {
	for i := range top[:min(len(top), 2*fewDocs)] {
		if top[i].terms|top[i].infixes != 0 {
			n++
		}
	}
	return n
}

// scorer scores the documents of a corpus for a query.
type scorer struct {
	q      *query
	c      *corpus
	filter func(int, uint32) bool

	constNorm, lengthNorm float64   // BM25's norm of a document is constNorm + lengthNorm × length
	weights               []float64 // of the terms: boost × idf
	weight                float64   // of all terms and infixes
	names                 uint64    // terms that are names
	infixes               []infix
	share                 float64 // of a question's score that its answer gets
}

// infix is a run of the query with the documents that have it inside longer runs.
type infix struct {
	bit    uint64 // in scoredDoc.infixes
	weight float64
	docs   map[int][]uint32 // by leaf
}

func newScorer(q *query, c *corpus, filter func(int, uint32) bool) *scorer {
	s := &scorer{q: q, c: c, filter: filter, weights: make([]float64, len(q.terms))}
	if !q.namesOnly { // whoever asks for names wants blocks that have them
		s.share = c.answerShare
	}
	s.constNorm = bm25K1 * (1 - bm25B)
	s.lengthNorm = bm25K1 * bm25B / max(float64(c.length)/float64(c.docs), 1)
	for i := range q.terms {
		if c.ignored>>i&1 != 0 {
			continue
		}
		docs := 0
		for l := range c.leaves {
			for _, p := range c.leaves[l].postings[i] {
				docs += int(p.docs)
			}
		}
		s.weights[i] = q.terms[i].boost() * s.idf(docs)
		s.weight += s.weights[i]
	}
	s.names = q.names() &^ c.ignored
	return s
}

// idf returns the inverse document frequency of a term that so many documents
// have.
func (s *scorer) idf(docs int) float64 {
	n := float64(docs)
	return math.Log(1 + (float64(s.c.docs)-n+0.5)/(n+0.5))
}

// tf returns BM25's term frequency factor in a document of this length. It is less
// than k1 + 1.
func (s *scorer) tf(length docLength, count uint32) float64 {
	n := float64(count)
	return n * (bm25K1 + 1) / (n + s.constNorm + s.lengthNorm*float64(length.tokens()))
}

// addInfixes searches inside longer runs for the runs of the query that no
// document has, or for all of them. It reports whether there are any.
func (s *scorer) addInfixes(all bool) bool {
	var runs []int
	for i, r := range s.q.runs {
		if r.whole >= 0 && s.c.ignored>>r.whole&1 != 0 {
			continue
		}
		if r.searchableInside() && (all || !s.hasDoc(r)) {
			runs = append(runs, i)
		}
	}
	if s.c.prepareInfixes != nil && len(runs) > 0 {
		texts := make([]string, len(runs))
		for n, i := range runs {
			texts[n] = s.q.runs[i].text
		}
		s.c.prepareInfixes(texts)
	}
	for _, i := range runs {
		s.addInfix(i)
	}
	return len(runs) > 0
}

// hasDoc reports whether a document that passes the filter has the run itself.
func (s *scorer) hasDoc(r queryRun) bool {
	if r.whole < 0 {
		return false
	}
	for l := range s.c.leaves {
		for _, p := range s.c.leaves[l].postings[r.whole] {
			for doc := range p.each {
				if s.filter(l, doc) {
					return true
				}
			}
		}
	}
	return false
}

// addInfix adds the documents that have run i inside longer runs, and not itself.
func (s *scorer) addInfix(i int) {
	r := s.q.runs[i]
	x := infix{bit: 1 << i, weight: wordInfixBoost, docs: make(map[int][]uint32)}
	if r.whole >= 0 && s.q.terms[r.whole].kind == nameToken {
		x.weight = nameInfixBoost
	}
	for l, doc := range s.c.infixDocs(r.text) {
		x.docs[l] = append(x.docs[l], doc)
	}
	total := 0
	for l, docs := range x.docs {
		slices.Sort(docs)
		docs = slices.Compact(docs)
		if r.whole >= 0 {
			whole := make(map[uint32]bool)
			for _, p := range s.c.leaves[l].postings[r.whole] {
				for doc := range p.each {
					whole[doc] = true
				}
			}
			docs = slices.DeleteFunc(docs, func(doc uint32) bool { return whole[doc] })
		}
		x.docs[l] = docs
		total += len(docs)
	}
	x.weight *= s.idf(total)
	s.weight += x.weight
	s.infixes = append(s.infixes, x)
}
