package recall

import (
	"iter"
	"strings"

	"github.com/furlhq/furl"
)

// Index is a search index of one session in memory. It does not keep the texts.
// The zero value is empty and ready to use. It does not know which blocks answer
// others, so that it ranks these by their own words only. Searches may run concurrently, but
// not concurrently with Add.
type Index struct {
	positions []furl.Pos // of the documents
	lengths   []docLength
	length    uint64 // of all documents

	terms    map[string]uint32 // words and parts
	runs     map[string]uint32
	analyzed []analyzedRun // by the number of the run
	runTerms []uint32      // of all runs
	postings []postingList // by the number of the term
	infixes  infixTable
	infix    []bool // by the number of the term: it is in infixes
	strings  stringArena

	// Scratch space of Add.
	counts  []uint32 // of each term in the current document
	touched []uint32 // terms with a count
}

// analyzedRun has the terms of a run: runTerms[from:to]. If the run is a name,
// the first is the name itself.
type analyzedRun struct {
	from, to uint32
	name     bool
}

// docLength is the length of a document in tokens, doubled, plus one if the document
// answers the one before it.
type docLength uint32

func newDocLength(tokens uint32, answers bool) docLength {
	return docLength(tokens<<1) | docLength(boolByte(answers))
}

func (n docLength) tokens() uint32 { return uint32(n >> 1) }

func (n docLength) answers() bool { return n&1 != 0 }

// Len returns the number of documents.
func (x *Index) Len() int { return len(x.positions) }

// Add indexes a block by its texts (see furl.Block.Texts). Add each block once,
// the oldest first.
func (x *Index) Add(pos furl.Pos, texts ...string) { x.add(pos, false, texts) }

// add is Add for a block that answers the block before it, if answers is true.
func (x *Index) add(pos furl.Pos, answers bool, texts []string) {
	if x.runs == nil {
		x.runs, x.terms = make(map[string]uint32), make(map[string]uint32)
	}
	doc, length := uint32(len(x.positions)), uint32(0)
	for _, text := range texts {
		for run := range runs(text) {
			a := x.analyzed[x.addRun(run.text)]
			for _, t := range x.runTerms[a.from:a.to] {
				if x.counts[t] == 0 {
					x.touched = append(x.touched, t)
				}
				x.counts[t]++
			}
			length += a.to - a.from
		}
	}
	for _, t := range x.touched {
		x.postings[t].add(doc, x.counts[t])
		x.counts[t] = 0
	}
	x.touched = x.touched[:0]
	x.positions = append(x.positions, pos)
	x.lengths = append(x.lengths, newDocLength(length, answers))
	x.length += uint64(length)
}

// addRun returns the number of a run. It analyzes the run if it is new.
func (x *Index) addRun(run string) uint32 {
	n, ok := x.runs[run]
	if ok {
		return n
	}
	run = x.strings.clone(run)
	n = uint32(len(x.analyzed))
	x.runs[run] = n
	a := analyzedRun{from: uint32(len(x.runTerms))}
	name := ""
	analyzeRun(run, func(t token) bool {
		if t.kind == nameToken {
			a.name = true
			name = lower(run)
			x.runTerms = append(x.runTerms, x.newTerm())
			x.addInfix(x.runTerms[a.from], name)
			return true
		}
		id := x.addTerm(t.text)
		x.runTerms = append(x.runTerms, id)
		// What contains a part usually contains it in the name.
		if !x.infix[id] && !strings.Contains(name, t.text) {
			x.addInfix(id, t.text)
		}
		return true
	})
	a.to = uint32(len(x.runTerms))
	x.analyzed = append(x.analyzed, a)
	return n
}

// addTerm returns the number of a word or part.
func (x *Index) addTerm(text string) uint32 {
	id, ok := x.terms[text]
	if !ok {
		id = x.newTerm()
		x.terms[x.strings.clone(text)] = id
	}
	return id
}

func (x *Index) newTerm() uint32 {
	if n := len(x.postings); n < cap(x.postings) {
		x.postings = x.postings[:n+1]
		x.postings[n].reset() // that of an index before reset
	} else {
		x.postings = append(x.postings, postingList{})
	}
	x.infix = append(x.infix, false)
	x.counts = append(x.counts, 0)
	return uint32(len(x.postings) - 1)
}

// reset empties the index, whose memory is used again.
func (x *Index) reset() {
	clear(x.terms)
	clear(x.runs)
	*x = Index{
		positions: x.positions[:0], lengths: x.lengths[:0], terms: x.terms, runs: x.runs, analyzed: x.analyzed[:0], runTerms: x.runTerms[:0],
		postings: x.postings[:0], infixes: infixTable{x.infixes.text[:0], x.infixes.ends[:0], x.infixes.terms[:0]}, infix: x.infix[:0],
		counts: x.counts[:0], touched: x.touched[:0],
	}
}

// addInfix makes a term findable by a part of its text.
func (x *Index) addInfix(id uint32, text string) {
	x.infix[id] = true
	x.infixes.add(text, id)
}

// Search returns the blocks that match a query, the best first; the same calls
// return the same hits. If the query consists of names, blocks with these names
// come first, then blocks with longer names that contain them. Equal hits are
// ordered newest first. A word or name of the query that few blocks have is also
// searched for inside longer words and names.
//
// Search returns at most limit hits, 5 if limit is zero. If filter is not nil,
// it returns only blocks for which filter is true. Of a hit, only Pos, Score, Exact and
// Matched are set.
func (x *Index) Search(text string, limit int, filter func(furl.Pos) bool) []Hit {
	q := parseQuery(text)
	if limit == 0 {
		limit = defaultLimit
	}
	c := corpus{leaves: []leaf{x.leaf(&q)}, docs: len(x.positions), length: x.length, answerShare: answerShare, infixDocs: func(run string) iter.Seq2[int, uint32] {
		return func(yield func(int, uint32) bool) {
			for doc := range x.infixDocs(infixPattern(run)) {
				if !yield(0, doc) {
					return
				}
			}
		}
	}}
	top := topDocs(&q, &c, limit, func(_ int, doc uint32) bool { return filter == nil || filter(x.positions[doc]) })
	hits := make([]Hit, len(top))
	for i, d := range top {
		hits[i] = Hit{Pos: x.positions[d.doc], Score: d.score, Exact: d.exact, Matched: q.matched(d.terms, d.infixes)}
	}
	return hits
}

// leaf returns the index with the postings of a query.
func (x *Index) leaf(q *query) leaf {
	l := leaf{docs: len(x.positions), lengths: func() []docLength { return x.lengths }, postings: make([][]postings, len(q.terms))}
	for i := range q.terms {
		if id, ok := x.find(&q.terms[i]); ok {
			l.postings[i] = []postings{x.postings[id].postings(0)}
		}
	}
	return l
}

// find returns the number of a term.
func (x *Index) find(t *token) (uint32, bool) {
	if t.kind == nameToken {
		run, ok := x.runs[t.text]
		if !ok || !x.analyzed[run].name {
			return 0, false
		}
		return x.runTerms[x.analyzed[run].from], true
	}
	id, ok := x.terms[t.text]
	return id, ok
}

// infixDocs returns the documents with a term that contains a pattern.
func (x *Index) infixDocs(pattern string) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for id := range x.infixes.containing(pattern) {
			for doc := range x.postings[id].postings(0).each {
				if !yield(doc) {
					return
				}
			}
		}
	}
}
