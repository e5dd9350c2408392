package recall

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
)

// The best documents are found without a look at all: what a unit's documents
// can get at most is known from the terms it has. The units that can get most
// come first; a unit that cannot reach the documents found so far ends the
// search, and within a unit the documents that only have terms which cannot
// reach them are not summed up. What is found is the same as without.

// most is what any number of occurrences of a term in a document are worth at
// most, with a little for rounding.
const most = (saturation + 1) * (1 + 1e-9)

// chance is what the documents of a unit can get at most.
type chance struct {
	unit  int
	tier  int
	score float64
	terms uint64 // that the unit has
}

// fewUnits are left to one processor: to begin others would take longer.
const fewUnits = 8

// top gives the best documents. Their score is comparable within one call.
func (s *scorer) top(limit int) []ranked {
	chances := s.chances()
	atOnce := max(s.c.atOnce, 1)
	if len(chances) < fewUnits {
		atOnce = 1
	}
	best := make([][]ranked, atOnce)
	var next atomic.Int64
	var last atomic.Pointer[ranked] // of as many as are asked for
	eachAtOnce(atOnce, atOnce, func(i int) {
		best[i] = s.topOf(func() (chance, bool) {
			n := int(next.Add(1)) - 1
			if n >= len(chances) {
				return chance{}, false
			}
			return chances[n], true
		}, limit, &last)
	})
	top := slices.Concat(best...)
	if atOnce > 1 { // no two are equal: their places differ
		slices.SortFunc(top, s.order)
	}
	return top[:min(len(top), limit)]
}

// chances gives the units that have something of the query, those that can get
// most first.
func (s *scorer) chances() []chance {
	var all []chance
	for n := range s.c.units {
		c := chance{unit: n}
		sum, pieces := 0.0, 0
		for i, w := range s.terms {
			if len(s.c.units[n].postings[i]) > 0 {
				c.terms |= 1 << i
				sum += w
			}
		}
		for _, p := range s.pieces {
			if len(p.docs[n]) > 0 {
				pieces++
				sum += p.weight
			}
		}
		if c.terms == 0 && pieces == 0 {
			continue
		}
		if s.q.Names {
			c.tier = 2*bits.OnesCount64(c.terms&s.names) + pieces
		}
		c.score = s.atMost(sum)
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b chance) int { return cmp.Or(cmp.Compare(b.tier, a.tier), cmp.Compare(b.score, a.score)) })
	return all
}

// atMost is what a document can get that matches terms of this weight.
func (s *scorer) atMost(weight float64) float64 {
	return most * weight * math.Sqrt(min(weight/s.weight, 1))
}

// order is which of two documents comes first.
func (s *scorer) order(a, b ranked) int {
	if s.q.Names {
		if c := cmp.Compare(b.tier(), a.tier()); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.unit, a.unit), cmp.Compare(b.doc.doc, a.doc.doc))
}

// topOf gives the best documents of some units, which come in order. What it
// leaves out is behind as many others, here or where else last comes from.
func (s *scorer) topOf(next func() (chance, bool), limit int, last *atomic.Pointer[ranked]) []ranked {
	var top []ranked
	var x scratch
	for c, ok := next(); ok; c, ok = next() {
		least := last.Load()
		vital := c.terms
		if least != nil {
			if s.q.Names && c.tier < least.tier() || (!s.q.Names || c.tier == least.tier()) && c.score < least.score {
				break // those that follow can get no more
			}
			vital = s.vital(&c, least)
		}
		s.score(c.unit, vital, &x)
		for _, n := range x.touched {
			d := &x.docs[n]
			if least != nil && !s.q.Names && d.sum < least.score {
				continue // a score is at most the sum
			}
			r := ranked{doc: doc{c.unit, n}, exact: bits.OnesCount64(d.matched & s.names), matched: d.matched, pieces: d.pieces}
			if least != nil && s.q.Names {
				if behind := cmp.Compare(least.tier(), r.tier()); behind > 0 || behind == 0 && d.sum < least.score {
					continue
				}
			}
			r.score = d.sum * math.Sqrt(d.weight/s.weight)
			if least != nil && s.order(*least, r) < 0 || !s.only(c.unit, n) {
				continue
			}
			at, _ := slices.BinarySearchFunc(top, r, s.order)
			top = slices.Insert(top, at, r)
			if len(top) < limit {
				continue
			}
			top = top[:limit]
			least = s.raise(last, top[limit-1])
		}
	}
	return top
}

// raise notes that there are as many documents as are asked for down to this
// one, and gives the best of which that is known.
func (s *scorer) raise(last *atomic.Pointer[ranked], to ranked) *ranked {
	for {
		was := last.Load()
		if was != nil && s.order(*was, to) <= 0 {
			return was
		}
		if last.CompareAndSwap(was, &to) {
			return &to
		}
	}
}

// vital gives those of a unit's terms of which a document must have one, or a
// piece, to come before the last of those found. Names always are where they
// come before all else.
func (s *scorer) vital(c *chance, last *ranked) uint64 {
	vital := c.terms
	weak := c.terms
	if s.q.Names {
		if last.tier() > 0 {
			return vital & s.names
		}
		weak &^= s.names
	}
	for sum := 0.0; weak != 0; {
		least := -1
		for rest := weak; rest != 0; rest &= rest - 1 {
			if i := bits.TrailingZeros64(rest); least < 0 || s.terms[i] < s.terms[least] {
				least = i
			}
		}
		if sum += s.terms[least]; s.atMost(sum) >= last.score {
			break
		}
		weak &^= 1 << least
		vital &^= 1 << least
	}
	return vital
}

// scratch is what one unit is scored in.
type scratch struct {
	docs    []scored
	touched []uint32
	vital   []bool // documents with a vital term or a piece
	marked  []uint32
}

func (x *scratch) begin(docs int) {
	for _, doc := range x.touched {
		x.docs[doc] = scored{}
	}
	for _, doc := range x.marked {
		x.vital[doc] = false
	}
	x.touched, x.marked = x.touched[:0], x.marked[:0]
	if docs > len(x.docs) {
		x.docs, x.vital = make([]scored, docs), make([]bool, docs)
	}
}

func (x *scratch) at(doc uint32) *scored {
	d := &x.docs[doc]
	if d.matched|d.pieces == 0 {
		x.touched = append(x.touched, doc)
	}
	return d
}

func (x *scratch) mark(doc uint32) {
	if !x.vital[doc] {
		x.vital[doc] = true
		x.marked = append(x.marked, doc)
	}
}

// score sums up what those documents of a unit match that have a vital term or
// a piece; it leaves them in x.docs, and their numbers in x.touched. The terms
// are added in their order in the query, whichever are vital, so that a sum is
// always the same to the last bit.
func (s *scorer) score(n int, vital uint64, x *scratch) {
	u := &s.c.units[n]
	x.begin(u.docs)
	all := true // whether every term is vital
	for i := range s.terms {
		all = all && (vital>>i&1 != 0 || len(u.postings[i]) == 0)
	}
	if !all {
		s.markVital(n, vital, x)
		if len(x.marked) == 0 {
			return
		}
	}
	lens := u.lens()
	for i, w := range s.terms {
		for _, c := range u.postings[i] {
			for doc, count := range c.each {
				if !all && !x.vital[doc] {
					continue
				}
				d := x.at(doc)
				d.sum += w * s.saturated(lens[doc], count)
				d.weight += w
				d.matched |= 1 << i
			}
		}
	}
	for _, p := range s.pieces {
		for _, doc := range p.docs[n] {
			d := x.at(doc)
			d.sum += p.weight * s.saturated(lens[doc], 1)
			d.weight += p.weight
			d.pieces |= p.bit
		}
	}
}

// markVital marks the documents that have a vital term or a piece.
func (s *scorer) markVital(n int, vital uint64, x *scratch) {
	for i := range s.terms {
		if vital>>i&1 == 0 {
			continue
		}
		for _, c := range s.c.units[n].postings[i] {
			for doc := range c.each {
				x.mark(doc)
			}
		}
	}
	for _, p := range s.pieces {
		for _, doc := range p.docs[n] {
			x.mark(doc)
		}
	}
}

// tier counts names that stand in a document as they are, and half those that
// stand within a longer run.
func (r *ranked) tier() int {
	return 2*r.exact + bits.OnesCount64(r.pieces)
}
