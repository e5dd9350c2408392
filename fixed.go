package furl

import (
	"cmp"
	"slices"
)

// What furl does not understand stays whole and in its place: a block of unknown
// type may be half of a pair, instructions, or signed with what is around it. The same
// holds for what defines tools inside the list: without it, the model cannot call
// them. The wire packages mark such blocks as Fixed. Reductions go around the unit
// that contains one if furl or a person made them, so that no policy, summary or
// takeover and no older version of furl can hide it. Only the client can change its history, and
// a provider can replace it by a compaction.

// Fixed returns the spans of the path that are always shown as recorded: each fixed
// block with its whole unit, and the units with a block of the same id.
func (s *State) Fixed() []Span {
	var spans []Span
	for _, iv := range s.pinnedUnits() {
		spans = append(spans, Span{First: s.pos(iv.lo), Last: s.pos(iv.hi - 1)})
	}
	return spans
}

// pinnedUnits returns the ordinals of these spans, sorted and merged.
func (s *State) pinnedUnits() []interval {
	if len(s.fixed) == 0 {
		return nil
	}
	if s.pinnedIDs != nil && !s.pinnedStale {
		return s.pinned
	}
	ids := make(map[string]bool)
	var units []interval
	add := func(ord int) {
		if n := len(units); n > 0 && units[n-1].lo <= ord && ord < units[n-1].hi {
			return
		}
		lo, hi := s.unitRange(ord)
		units = append(units, interval{lo: lo, hi: hi})
	}
	for _, ord := range s.fixed {
		add(ord)
		if b := s.block(ord); b.ID != "" {
			ids[b.ID] = true
		}
	}
	if len(ids) > 0 {
		for i, m := range s.msgs {
			for j := range m.Blocks {
				if id := m.Blocks[j].ID; id != "" && ids[id] {
					add(s.base[i] + j)
				}
			}
		}
	}
	s.pinned, s.pinnedIDs, s.pinnedStale = merge(units), ids, false
	return s.pinned
}

// changesPinned reports whether message i, the newest, is in a pinned unit or makes one.
func (s *State) changesPinned(i int) bool {
	g := s.groupOf[i]
	if g > 0 && s.groups[g].lo > s.base[i] {
		g-- // its first blocks are in the unit before
	}
	if lo, n := s.groups[g].lo, len(s.pinned); lo < s.base[i] && n > 0 && s.pinned[n-1].hi > lo {
		return true
	}
	return slices.ContainsFunc(s.msgs[i].Blocks, func(b Block) bool { return b.Fixed || b.ID != "" && s.pinnedIDs[b.ID] })
}

// isPinned reports whether an ordinal is in a unit with a fixed block.
func (s *State) isPinned(ord int) bool {
	pinned := s.pinnedUnits()
	i, found := slices.BinarySearchFunc(pinned, ord, func(iv interval, ord int) int { return cmp.Compare(iv.lo, ord) })
	return found || i > 0 && ord < pinned[i-1].hi
}

// aroundPinned leaves the units with fixed blocks out of a reduction's sorted paints, whose
// labels are not added yet. Thinking that the provider has refused goes from there too: with
// it, each later request would be refused.
func (s *State) aroundPinned(red *Reduction, labels []label, paints []interval) []interval {
	pinned := s.pinnedUnits()
	if len(pinned) == 0 {
		return paints
	}
	var out []interval
	from := 0 // the first that may be in what is left of the paints
	for _, p := range paints {
		if _, gone := red.Items[labels[p.label-s.labels.len()].item].Show.(Gone); gone && red.Stage == StageRefusedThinking {
			out = append(out, p)
			continue
		}
		for from < len(pinned) && pinned[from].hi <= p.lo {
			from++
		}
		for _, iv := range pinned[from:] {
			if iv.lo >= p.hi {
				break
			}
			if iv.lo > p.lo {
				out = append(out, interval{p.lo, iv.lo, p.label})
			}
			p.lo = max(p.lo, iv.hi)
		}
		if p.lo < p.hi {
			out = append(out, p)
		}
	}
	return out
}
