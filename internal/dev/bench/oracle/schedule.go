package main

import (
	"math"
	"slices"
)

// item is something that can be hidden: from a request on, at a position of the
// prompt, freeing tokens.
type item struct {
	at    int // its position, see problem.positions
	from  int // the first request that may hide it
	freed float64
}

// position is a place in the prompt where an edit can start: a unit.
type position struct {
	first  int     // the first request that has the unit
	tokens float64 // what the unit shows
}

// problem is one segment of a session: when to edit the prompt, and from which
// position on. An edit at a request hides all items at its position and after it
// that may be hidden then, and pays for writing what remains after its position.
type problem struct {
	from, to  int // requests
	read      float64
	write     float64
	positions []position
	items     []item
	// lost is the position from which the cache is lost anyway, by request; the
	// number of positions if it is not.
	lost []int
	// marked says that cached prefixes end at cache breakpoints only: an edit whose
	// position is inside of what an earlier edit has written finds none there. Then
	// it starts where the earlier edit did, or not at all.
	marked bool
	// overhead is the tokens that an edit adds for its marker and list.
	overhead float64
}

// maxSlots and maxPositions bound the size of the search: time grows with the
// fourth power, memory with the third. Longer segments are searched with a coarser
// grid of requests, or of positions.
const (
	maxSlots     = 300
	maxPositions = 300
)

// edit is one decision: at this request, from this position on.
type edit struct{ request, position int }

// solve returns the edits that cost least, by dynamic programming. Items at later
// positions are covered by all edits that start before them. So between two
// consecutive edits that cover a position, the positions from it on are a problem
// of their own: cost(p, t1, t2) is the least cost of the items from position p on
// between two such edits. Either no edit in between covers p, and its items wait
// until t2, or the last edit that covers it divides the time in two:
//
//	base(p, t1, t2) = cost(p+1, t1, t2) + waiting(p, t1, t2)
//	cost(p, t1, t2) = min(base(p, t1, t2), min over t of cost(p, t1, t) + writing(p, t) + base(p, t, t2))
//
// This is the exact optimum of the problem on the grid: what an edit writes does
// not depend on earlier edits, since it hides everything after its position.
func (pr *problem) solve() []edit {
	s := newSearch(pr)
	for p := len(s.groups) - 1; p >= 0; p-- {
		s.position(p)
	}
	var edits []edit
	s.trace(&edits, 0, 0, len(s.times)-1)
	slices.SortFunc(edits, func(a, b edit) int { return a.request - b.request })
	return edits
}

// search is the state of one solve.
type search struct {
	*problem
	// times are the requests of the grid. The first entry is before all of them,
	// the last after.
	times []int
	// groups are the positions of the grid, each with the first of its positions.
	groups []int
	cost   []float64 // of the positions from the current one on, by pair of times
	base   []float64
	// choice is the last edit that covers a position between two times, by position
	// and pair; 0: none.
	choice [][]int16
}

func newSearch(pr *problem) *search {
	s := &search{problem: pr, times: []int{pr.from - 1}}
	step := (pr.to - pr.from + maxSlots - 1) / maxSlots
	for t := pr.from; t < pr.to; t++ {
		if free := pr.lost[t-pr.from] < len(pr.positions); free || (t-pr.from)%max(1, step) == 0 {
			s.times = append(s.times, t)
		}
	}
	s.times = append(s.times, pr.to)
	step = max(1, (len(pr.positions)+maxPositions-1)/maxPositions)
	for p := 0; p < len(pr.positions); p += step {
		s.groups = append(s.groups, p)
	}
	n := len(s.times)
	s.cost, s.base = make([]float64, n*n), make([]float64, n*n)
	s.choice = make([][]int16, len(s.groups))
	return s
}

// groupEnd returns the first position after a group.
func (s *search) groupEnd(g int) int {
	if g+1 < len(s.groups) {
		return s.groups[g+1]
	}
	return len(s.positions)
}

// position computes cost for the positions from group g on.
func (s *search) position(g int) {
	n := len(s.times)
	start := s.groups[g]
	s.wait(g)
	first := 1 // the first time at which the position can be edited
	for first < n-1 && s.times[first] <= s.positions[start].first {
		first++
	}
	before := first - 1 // the newest time without the unit
	if before > 0 && s.times[before] == s.positions[start].first {
		before--
	}
	write := make([]float64, n)
	for j := first; j < n-1; j++ {
		write[j] = s.writing(start, s.times[j])
	}
	choice := make([]int16, n*n)
	copy(s.cost, s.base)
	for j1 := n - 1; j1 >= 0; j1-- {
		row, by := s.cost[j1*n:(j1+1)*n], choice[j1*n:(j1+1)*n]
		if j1 < before { // the unit does not exist yet: as from the newest such time
			copy(row[first:], s.cost[before*n+first:(before+1)*n])
			copy(by[first:], choice[before*n+first:(before+1)*n])
			continue
		}
		if s.marked && j1 > 0 && s.positions[start].first <= s.times[j1] {
			continue
		}
		for j := max(j1+1, first); j < n-1; j++ {
			until, after := row[j]+write[j], s.base[j*n:(j+1)*n]
			for j2 := j + 1; j2 < n; j2++ {
				if c := until + after[j2]; c < row[j2] {
					row[j2], by[j2] = c, int16(j)
				}
			}
		}
	}
	s.choice[g] = choice
}

// wait sets base: cost of the later positions, and what the items of the group cost
// between two times while they wait.
func (s *search) wait(g int) {
	n := len(s.times)
	copy(s.base, s.cost)
	start, end := s.groups[g], s.groupEnd(g)
	sums := make([]float64, s.to-s.from+1) // of the prices of a token at the requests
	for t := s.from; t < s.to; t++ {
		price := s.read
		if start >= s.lost[t-s.from] {
			price = s.write
		}
		sums[t-s.from+1] = sums[t-s.from] + price
	}
	for i := range s.items {
		it := &s.items[i]
		if it.at < start || it.at >= end || it.from >= s.to {
			continue
		}
		from := max(it.from, s.from)
		for j1 := 0; j1 < n && (j1 == 0 || s.times[j1] < it.from); j1++ {
			for j2 := j1 + 1; j2 < n; j2++ {
				if until := s.times[j2]; until > from {
					s.base[j1*n+j2] += it.freed * (sums[until-s.from] - sums[from-s.from])
				}
			}
		}
	}
}

// writing is what an edit costs at a request: the tokens that remain after its
// position are written instead of read, if the cache is not lost there anyway.
func (s *search) writing(start, t int) float64 {
	lost := s.lost[t-s.from]
	tokens := 0.0
	for p := start; p < lost && s.positions[p].first < t; p++ {
		tokens += s.positions[p].tokens
	}
	for i := range s.items {
		if it := &s.items[i]; it.at >= start && it.at < lost && it.from <= t {
			tokens -= it.freed
		}
	}
	cost := max(0, tokens) * (s.write - s.read)
	return cost + s.overhead*(s.write+s.read*math.Sqrt(float64(s.to-t)))
}

// trace lists the edits between two times that cover the positions from group g on.
func (s *search) trace(edits *[]edit, g, j1, j2 int) {
	n := len(s.times)
	for ; g < len(s.groups); g++ {
		if j := int(s.choice[g][j1*n+j2]); j > 0 {
			s.trace(edits, g, j1, j)
			*edits = append(*edits, edit{s.times[j], s.groups[g]})
			s.trace(edits, g+1, j, j2)
			return
		}
	}
}
