package recall

import (
	"iter"

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
	lowered lowered

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
	eachTerm(run, func(t Term) bool {
		if t.Kind == Name {
			m.name = true
			x.termOf = append(x.termOf, x.term())
		} else {
			x.termOf = append(x.termOf, x.word(t.Text))
		}
		return true
	})
	m.to = uint32(len(x.termOf))
	x.made = append(x.made, m)
	x.lowered.add(run)
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

func (x *Index) term() uint32 {
	x.lists = append(x.lists, list{})
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
	only := func(doc uint32) bool { return o.Only == nil || o.Only(x.docs[doc]) }
	found := rank(&q, x, limit, only)
	hits := make([]Hit, len(found))
	for i, r := range found {
		hits[i] = Hit{Pos: x.docs[r.doc], Score: r.score, Exact: r.exact, Matched: q.matched(r.matched, r.pieces)}
	}
	return hits
}

// totals, length, postings and containing make Index a source.

func (x *Index) totals() (int, float64) {
	return len(x.docs), float64(x.total) / float64(max(len(x.docs), 1))
}

func (x *Index) length(doc uint32) uint32 { return x.lens[doc] }

func (x *Index) postings(t Term) (uint32, iter.Seq2[uint32, uint32]) {
	id, ok := uint32(0), false
	if t.Kind == Name {
		var run uint32
		if run, ok = x.runs[t.Text]; ok && x.made[run].name {
			id = x.termOf[x.made[run].from]
		}
	} else {
		id, ok = x.words[t.Text]
	}
	if !ok {
		return 0, nil
	}
	return x.lists[id].docs, x.lists[id].each
}

// containing looks at every run there is, in one pass: a name has a list of
// its own, a word is found by its term.
func (x *Index) containing(run string) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for id := range x.lowered.containing(run) {
			m := x.made[id]
			if m.from == m.to {
				continue
			}
			for doc := range x.lists[x.termOf[m.from]].each {
				if !yield(doc) {
					return
				}
			}
		}
	}
}
