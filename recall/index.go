package recall

import (
	"iter"
	"strings"

	"github.com/furlhq/furl"
)

// Index finds blocks by what stands in them. It grows with what is added and
// keeps no text. The zero value is empty and ready to use. Searches may run
// at the same time as one another, but not at the same time as Add.
type Index struct {
	docs    []furl.Pos
	lens    []uint32 // words and parts of each document
	total   uint64   // of lens
	runs    map[string]uint32
	made    []made   // what each run is made of
	termOf  []uint32 // backing of made
	words   map[string]uint32
	lists   []list // of each term
	strings arena
	lowered lowered // the terms to look for pieces in
	piece   []bool  // which terms these are

	// Scratch of Add.
	counts  []uint32 // of each term in the current document
	touched []uint32
}

// made says what terms a run gives: termOf[from:to], the run's own name first
// if it is one.
type made struct {
	from, to uint32
	name     bool
}

// Len is the number of blocks added.
func (x *Index) Len() int { return len(x.docs) }

// Add makes a block findable by its texts (see furl.Block.Texts). A block is
// added once; what was added later counts as newer.
func (x *Index) Add(pos furl.Pos, texts ...string) {
	if x.runs == nil {
		x.runs, x.words = make(map[string]uint32), make(map[string]uint32)
	}
	doc, length := uint32(len(x.docs)), uint32(0)
	for _, text := range texts {
		for run := range runs(text) {
			m := x.made[x.run(run)]
			for _, term := range x.termOf[m.from:m.to] {
				if x.counts[term] == 0 {
					x.touched = append(x.touched, term)
				}
				x.counts[term]++
			}
			length += m.to - m.from
		}
	}
	for _, term := range x.touched {
		x.lists[term].add(doc, x.counts[term])
		x.counts[term] = 0
	}
	x.touched = x.touched[:0]
	x.docs = append(x.docs, pos)
	x.lens = append(x.lens, length)
	x.total += uint64(length)
}

// run gives the number of a run, having cut it into terms if it is new.
func (x *Index) run(run string) uint32 {
	id, ok := x.runs[run]
	if ok {
		return id
	}
	run = x.strings.keep(run)
	id = uint32(len(x.made))
	x.runs[run] = id
	m := made{from: uint32(len(x.termOf))}
	name := ""
	eachTerm(run, func(t Term) bool {
		if t.Kind == Name {
			m.name = true
			name = lower(run)
			x.termOf = append(x.termOf, x.term())
			x.lookInside(x.termOf[m.from], name)
			return true
		}
		id := x.word(t.Text)
		x.termOf = append(x.termOf, id)
		// A piece of a part is a piece of the name, most often.
		if !x.piece[id] && !strings.Contains(name, t.Text) {
			x.lookInside(id, t.Text)
		}
		return true
	})
	m.to = uint32(len(x.termOf))
	x.made = append(x.made, m)
	return id
}

// word gives the number of a word's or part's term.
func (x *Index) word(word string) uint32 {
	id, ok := x.words[word]
	if !ok {
		id = x.term()
		x.words[x.strings.keep(word)] = id
	}
	return id
}

// lookInside makes a term findable by pieces of it.
func (x *Index) lookInside(id uint32, text string) {
	x.piece[id] = true
	x.lowered.add(text, id)
}

func (x *Index) term() uint32 {
	x.lists = append(x.lists, list{})
	x.piece = append(x.piece, false)
	x.counts = append(x.counts, 0)
	return uint32(len(x.lists) - 1)
}

// Options narrow a search.
type Options struct {
	// Limit is the most hits to return. If zero, 5.
	Limit int
	// Only, if set, says which blocks may be found, such as those that a
	// view does not show.
	Only func(furl.Pos) bool
}

// Hit is a block found.
type Hit struct {
	Pos furl.Pos
	// Score orders the hits of one search; it means nothing beside that of
	// another.
	Score float64
	// Exact counts the names of the query that stand in the block as they
	// are.
	Exact int
	// Matched are the pieces of the query that were found in the block.
	Matched []string
}

const defaultLimit = 5

// Search gives the blocks that fit a query best, best first; the order is
// the same whenever it is asked for. If the query consists of names, blocks
// that hold them exactly come before all others, and blocks that hold them
// within longer ones before the rest. Of equals the newest comes first.
//
// A word or name of the query of which no block is found, or too few, is also
// looked for inside longer words and names.
func (x *Index) Search(query string, o Options) []Hit {
	q := Parse(query)
	limit := o.Limit
	if limit == 0 {
		limit = defaultLimit
	}
	c := corpus{units: []unit{x.unit(&q)}, docs: len(x.docs), length: x.total, containing: func(run string) iter.Seq2[int, uint32] {
		return func(yield func(int, uint32) bool) {
			for doc := range x.containing(pattern(run)) {
				if !yield(0, doc) {
					return
				}
			}
		}
	}}
	found := rank(&q, &c, limit, func(_ int, doc uint32) bool { return o.Only == nil || o.Only(x.docs[doc]) })
	hits := make([]Hit, len(found))
	for i, r := range found {
		hits[i] = Hit{Pos: x.docs[r.doc.doc], Score: r.score, Exact: r.exact, Matched: q.matched(r.matched, r.pieces)}
	}
	return hits
}

// unit gives the documents that the terms of a query stand in.
func (x *Index) unit(q *Query) unit {
	u := unit{docs: len(x.docs), lens: func() []uint32 { return x.lens }, postings: make([][]chunk, len(q.Terms))}
	for i := range q.Terms {
		if id, ok := x.find(&q.Terms[i]); ok {
			u.postings[i] = []chunk{{docs: x.lists[id].docs, buf: x.lists[id].buf}}
		}
	}
	return u
}

// find gives the number of a term.
func (x *Index) find(t *Term) (uint32, bool) {
	if t.Kind == Name {
		run, ok := x.runs[t.Text]
		if !ok || !x.made[run].name {
			return 0, false
		}
		return x.termOf[x.made[run].from], true
	}
	id, ok := x.words[t.Text]
	return id, ok
}

// containing gives the documents that have a term which contains a pattern, in
// one pass over all terms there are.
func (x *Index) containing(want string) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for id := range x.lowered.containing(want) {
			for doc := range x.lists[id].each {
				if !yield(doc) {
					return
				}
			}
		}
	}
}
