package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The schedule costs no more than the best of all schedules with at most one edit at
// each request.
func TestScheduleIsOptimal(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		pr := randomProblem(rng)
		want := math.Inf(1)
		all := make([]edit, 0, pr.to-pr.from)
		var try func(request int)
		try = func(request int) {
			if request == pr.to {
				want = min(want, pr.costOf(all))
				return
			}
			try(request + 1)
			for p := range pr.positions {
				if pr.positions[p].first < request {
					all = append(all, edit{request, p})
					try(request + 1)
					all = all[:len(all)-1]
				}
			}
		}
		try(pr.from)
		edits := pr.solve()
		if got := pr.costOf(edits); got > want+1e-9 {
			t.Fatalf("problem %d: the schedule %v costs %.3f, the best one %.3f", n, edits, got, want)
		}
	}
}

func randomProblem(rng *rand.Rand) *problem {
	pr := &problem{from: 3, to: 3 + 2 + rng.IntN(4), read: 0.1, write: 1.25, overhead: 5}
	first := 0
	for range 1 + rng.IntN(4) {
		first = min(first+rng.IntN(4), pr.to-1)
		pr.positions = append(pr.positions, position{first: first, tokens: float64(20 + rng.IntN(200))})
	}
	for p, pos := range pr.positions {
		left := pos.tokens
		for range rng.IntN(3) {
			freed := left * rng.Float64()
			left -= freed
			pr.items = append(pr.items, item{at: p, from: pos.first + 1 + rng.IntN(4), freed: freed})
		}
	}
	for range pr.to - pr.from {
		lost := len(pr.positions)
		if rng.IntN(4) == 0 {
			lost = rng.IntN(lost + 1)
		}
		pr.lost = append(pr.lost, lost)
	}
	return pr
}

// costOf prices a schedule request by request.
func (pr *problem) costOf(edits []edit) float64 {
	s := newSearch(pr)
	hidden := make([]bool, len(pr.items))
	cost := 0.0
	for t := pr.from; t < pr.to; t++ {
		if i := slices.IndexFunc(edits, func(e edit) bool { return e.request == t }); i >= 0 {
			cost += s.writing(edits[i].position, t)
			for j, it := range pr.items {
				hidden[j] = hidden[j] || it.at >= edits[i].position && it.from <= t
			}
		}
		for j, it := range pr.items {
			switch {
			case hidden[j] || it.from > t:
			case it.at >= pr.lost[t-pr.from]:
				cost += it.freed * pr.write
			default:
				cost += it.freed * pr.read
			}
		}
	}
	return cost
}

// A marked problem has no edit inside of what an earlier edit has written.
func TestScheduleStaysAtEntries(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := range 200 {
		pr := randomProblem(rng)
		pr.marked = true
		edits := pr.solve()
		for i, e := range edits {
			for _, earlier := range slices.Backward(edits[:i]) {
				if earlier.position == e.position {
					break // it left an entry there
				}
				if earlier.position < e.position && pr.positions[e.position].first <= earlier.request {
					t.Fatalf("problem %d: %v is inside of what %v has written", n, e, earlier)
				}
				if earlier.position < e.position {
					break
				}
			}
		}
	}
}
