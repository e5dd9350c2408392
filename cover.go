package furl

import (
	"cmp"
	"slices"
)

// A cover says, for each block ordinal of a path, which label shows it. It is
// stored as runs: run i reaches from its start to the start of run i+1, the
// last one to the end of all things. Ordinals before the first run, and those
// never painted, have label 0. Painting makes a new cover; old ones stay valid.
//
// Painting layers in path order, the newest last, is all there is to "the
// newest layer that covers a block shows it": layers may nest, overlap or
// coincide, and what lies beneath costs nothing to a reader.
type cover []run

type run struct {
	start int
	label int
}

// An interval of ordinals, end excluded, that is to get a label.
type interval struct {
	lo, hi int
	label  int
}

// paint returns the cover with the intervals painted over it. They must be
// sorted and must not overlap. The cost is the size of the cover plus the
// number of intervals.
func (c cover) paint(ivs []interval) cover {
	if len(ivs) == 0 {
		return c
	}
	from, _ := slices.BinarySearchFunc(c, ivs[0].lo, func(r run, lo int) int { return r.start - lo })
	out := make(cover, from, len(c)+2*len(ivs))
	copy(out, c[:from])
	at := from // next run of c to take over
	below := 0 // label of c in force at the point reached
	if from > 0 {
		below = c[from-1].label
	}
	for i, iv := range ivs {
		if iv.lo >= iv.hi {
			continue
		}
		// Runs of c between the last interval and this one.
		for at < len(c) && c[at].start < iv.lo {
			below = c[at].label
			out = out.push(c[at].start, below)
			at++
		}
		out = out.push(iv.lo, iv.label)
		// Runs of c under this interval are painted over.
		for at < len(c) && c[at].start <= iv.hi {
			below = c[at].label
			at++
		}
		if i+1 == len(ivs) || ivs[i+1].lo > iv.hi {
			out = out.push(iv.hi, below)
		}
	}
	for ; at < len(c); at++ {
		out = out.push(c[at].start, c[at].label)
	}
	return out
}

// push appends a run, joining it to the last where that changes nothing.
func (c cover) push(start, label int) cover {
	if n := len(c); n > 0 {
		if c[n-1].start == start {
			c[n-1].label = label
			if n > 1 && c[n-2].label == label {
				return c[:n-1]
			}
			return c
		}
		if c[n-1].label == label {
			return c
		}
	} else if label == 0 {
		return c
	}
	return append(c, run{start, label})
}

// at gives the label of one ordinal.
func (c cover) at(ord int) int {
	i, found := slices.BinarySearchFunc(c, ord, func(r run, ord int) int { return r.start - ord })
	if found {
		return c[i].label
	}
	if i == 0 {
		return 0
	}
	return c[i-1].label
}

// within yields the runs that meet [lo, hi), cut to it.
func (c cover) within(lo, hi int, yield func(interval) bool) {
	i, found := slices.BinarySearchFunc(c, lo, func(r run, lo int) int { return r.start - lo })
	if !found {
		i--
	}
	for lo < hi {
		end, label := hi, 0
		if i >= 0 {
			label = c[i].label
		}
		if i+1 < len(c) {
			end = min(end, c[i+1].start)
		}
		if end > lo && !yield(interval{lo, end, label}) {
			return
		}
		lo = end
		i++
	}
}

// merge sorts intervals and joins those that touch or overlap.
func merge(ivs []interval) []interval {
	slices.SortFunc(ivs, func(a, b interval) int { return cmp.Compare(a.lo, b.lo) })
	out := ivs[:0]
	for _, iv := range ivs {
		if n := len(out); n > 0 && iv.lo <= out[n-1].hi && iv.label == out[n-1].label {
			out[n-1].hi = max(out[n-1].hi, iv.hi)
			continue
		}
		out = append(out, iv)
	}
	return out
}

// lift undoes layer i and paints the other layers again.
func (s *State) lift(i int) {
	if s.layers.at(i).lifted {
		return
	}
	s.layers.own()
	s.layers.at(i).lifted = true
	s.cover, s.marked = nil, 0
	for j := range s.layers.len() {
		l := s.layers.at(j)
		if l.lifted {
			continue
		}
		s.lay(l)
	}
}

// lay paints one layer over what is there.
func (s *State) lay(l *layer) {
	if l.red == nil {
		s.cover = s.cover.paint(s.widen(l.paints))
		return
	}
	s.cover = s.cover.paint(s.beneathMarks(l.paints))
	if l.marks {
		s.marked++
	}
}

// beneathMarks leaves out of a layer's paints those texts in place that would
// fall on what a mark hides: a text in a hidden envelope shows nothing, and a
// result shown without its call would break the pair. They show once the mark
// is lifted.
func (s *State) beneathMarks(paints []interval) []interval {
	if s.marked == 0 {
		return paints
	}
	var out []interval
	for _, p := range paints {
		if s.isMark(p.label) {
			out = append(out, p)
			continue
		}
		s.cover.within(p.lo, p.hi, func(iv interval) bool {
			if !s.isMark(iv.label) {
				out = append(out, interval{iv.lo, iv.hi, p.label})
			}
			return true
		})
	}
	return out
}

// widen grows intervals to the whole unit where a mark shows any of it, so
// that opening a result brings its call, and the other way round.
func (s *State) widen(ivs []interval) []interval {
	if s.marked == 0 {
		return ivs
	}
	out := slices.Clone(ivs)
	for i := range out {
		if lo, hi := s.unitRange(out[i].lo); s.underMark(lo, hi) {
			out[i].lo = min(out[i].lo, lo)
		}
		if lo, hi := s.unitRange(out[i].hi - 1); s.underMark(lo, hi) {
			out[i].hi = max(out[i].hi, hi)
		}
	}
	return merge(out)
}

func (s *State) underMark(lo, hi int) bool {
	found := false
	s.cover.within(lo, hi, func(iv interval) bool {
		found = s.isMark(iv.label)
		return !found
	})
	return found
}

func (s *State) isMark(lab int) bool {
	if lab == 0 {
		return false
	}
	_, ok := s.show(lab).(Mark)
	return ok
}

// show is what a label shows; lab is not 0.
func (s *State) show(lab int) Show {
	l := s.labels.at(lab)
	return s.layers.at(l.layer).red.Items[l.item].Show
}

func (s *State) hold(res *Restoration, paints []interval) {
	h := res.Hold
	if h == 0 && (res.Of != 0 || res.Open) {
		h = Keep
	}
	var ivs []interval
	for _, p := range paints {
		// A pin is stronger than the keep that a restore brings along.
		s.holds.within(p.lo, p.hi, func(iv interval) bool {
			if Hold(iv.label) != Pin || h == Pin || h == Release || res.Hold == Keep {
				if h == Release {
					iv.label = 0
				} else {
					iv.label = int(h)
				}
			}
			ivs = append(ivs, iv)
			return true
		})
	}
	if h != 0 {
		s.holds = s.holds.paint(ivs)
	}
}

// stack is a list that grows at its end. A fork of it grows by itself: what
// both have is shared, and forking costs what was pushed onto forks before.
type stack[T any] struct {
	base, more []T // one after the other
	forked     bool
}

func (s *stack[T]) len() int { return len(s.base) + len(s.more) }

func (s *stack[T]) at(i int) *T {
	if i < len(s.base) {
		return &s.base[i]
	}
	return &s.more[i-len(s.base)]
}

func (s *stack[T]) push(list ...T) {
	if s.forked {
		s.more = append(s.more, list...)
	} else {
		s.base = append(s.base, list...)
	}
}

func (s *stack[T]) fork() stack[T] {
	return stack[T]{base: s.base, more: slices.Clip(s.more), forked: true}
}

// own makes what is in a fork its own, so that it can be changed.
func (s *stack[T]) own() {
	if s.forked {
		*s = stack[T]{base: slices.Concat(s.base, s.more)}
	}
}
