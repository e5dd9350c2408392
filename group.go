package furl

import "slices"

// Messages form groups: a step (assistant messages, then the results of their
// calls), words of the user, or instructions in the list. A step stays open
// while it has calls without results; a late result joins everything since
// its call into one step, so that no cut can part the two.
type group struct {
	kind        UnitKind
	first, last int // messages
	step        int // number of the step on the path, from 1; 0 for no step
	results     bool
}

// group puts message i, the newest, into its group.
func (s *State) group(i int, m *Message) {
	results := s.settle(i, m)
	last := len(s.groups) - 1
	switch {
	case results >= 0:
		s.join(results, i)
		s.groups[results].results = true
	case !m.Role.Known() && last >= 0 && s.groups[last].kind == UnitStep,
		m.Role == RoleAssistant && last >= 0 && s.groups[last].kind == UnitStep &&
			(!s.groups[last].results || s.isOpen(last) || !s.msgs[i-1].Role.Known()):
		// What says for nobody to speak may belong to what is before it and to what
		// comes after it.
		s.groups[last].last = i
		s.groupOf = append(s.groupOf, last)
	case (m.Role == RoleTool || m.observes()) && last >= 0 && s.groups[last].kind == UnitStep:
		// It answers no call that furl knows of, as what is opaque does, or an
		// observation does: part of the step before it, not words of the user.
		s.join(last, i)
		s.groups[last].results = true
	default:
		g := group{kind: UnitUser, first: i, last: i}
		switch m.Role {
		case RoleUser, RoleTool:
		case RoleSystem, RoleDeveloper:
			g.kind = UnitSystem
		default:
			g.kind, g.step = UnitStep, s.steps()+1
		}
		s.groups = append(s.groups, g)
		s.groupOf = append(s.groupOf, last+1)
	}
	for b := range m.Blocks {
		if m.Blocks[b].Kind == KindCall {
			s.open = append(s.open, openCall{m.Blocks[b].ID, i})
		}
	}
}

// settle closes the calls that message i answers and gives the earliest group
// among theirs, -1 if it answers none.
func (s *State) settle(i int, m *Message) int {
	earliest := -1
	for b := range m.Blocks {
		if m.Blocks[b].Kind != KindResult {
			continue
		}
		id := m.Blocks[b].ID
		at := slices.IndexFunc(s.open, func(o openCall) bool { return o.id == id })
		if at < 0 {
			continue
		}
		if g := s.groupOf[s.open[at].msg]; earliest < 0 || g < earliest {
			earliest = g
		}
		s.open = slices.Delete(slices.Clone(s.open), at, at+1)
	}
	return earliest
}

// join merges all groups from g on, and message i, into g.
func (s *State) join(g, i int) {
	for j := s.groups[g].last + 1; j < i; j++ {
		s.groupOf[j] = g
	}
	s.groupOf = append(s.groupOf, g)
	s.groups = s.groups[:g+1]
	s.groups[g].last = i
}

func (s *State) isOpen(g int) bool {
	return slices.ContainsFunc(s.open, func(o openCall) bool { return s.groupOf[o.msg] == g })
}

// steps is the number of steps on the path.
func (s *State) steps() int {
	for i := len(s.groups) - 1; i >= 0; i-- {
		if n := s.groups[i].step; n > 0 {
			return n
		}
	}
	return 0
}

// OpenCalls gives the ids of the calls that have no result yet.
func (s *State) OpenCalls() []string {
	ids := make([]string, len(s.open))
	for i, o := range s.open {
		ids[i] = o.id
	}
	return ids
}

// words is the ordinal at which a step's last message turns from results to
// words of the user; the end of the group if it never does.
func (s *State) words(g group) int {
	end := s.base[g.last+1]
	if g.kind != UnitStep {
		return end
	}
	m := s.msgs[g.last]
	if m.Role != RoleUser {
		return end
	}
	b := len(m.Blocks)
	for b > 0 && !m.Blocks[b-1].IsResult() && !m.Blocks[b-1].Fixed {
		b-- // a fixed block may be a result of a new kind
	}
	if b == 0 {
		return end
	}
	return s.base[g.last] + b
}

// unitRange gives the ordinals of the unit around one: its whole step, the
// user's words after it, or its group.
func (s *State) unitRange(ord int) (lo, hi int) {
	g := s.groups[s.groupOf[s.msgAt(ord)]]
	lo, hi = s.base[g.first], s.base[g.last+1]
	if w := s.words(g); ord < w {
		hi = w
	} else {
		lo = w
	}
	return lo, hi
}

// Boundary returns the newest record at or before seq at which the conversation
// can be cut: seq, or the record before the step that the cut would split.
func (s *State) Boundary(seq Seq) Seq {
	i, found := slices.BinarySearch(s.seqs, seq)
	if !found {
		i-- // the last message at or before seq
	}
	if i < 0 {
		return seq
	}
	// A step that waits for results may have instructions after it, but no
	// words of the user: a call with those after it was given up.
	for g := s.groupOf[i]; g >= 0 && s.groups[g].kind != UnitUser; g-- {
		if s.callsBefore(s.groups[g], i) {
			return s.parents[s.groups[g].first]
		}
	}
	if s.msgs[i].onlyThinks() {
		return s.parents[s.groups[s.groupOf[i]].first]
	}
	return seq
}

// onlyThinks reports whether a message is thinking and nothing else, as the
// items of OpenAI's Responses may be; a provider refuses it at the end.
func (m *Message) onlyThinks() bool {
	for i := range m.Blocks {
		if m.Blocks[i].Kind != KindThinking {
			return false
		}
	}
	return m.Role == RoleAssistant && len(m.Blocks) > 0
}

// callsBefore reports whether cutting group g, or what is after it, after
// message i leaves a call of the group without its result.
func (s *State) callsBefore(g group, i int) bool {
	var open []string
	for j := g.first; j <= min(i, g.last); j++ {
		for b := range s.msgs[j].Blocks {
			switch blk := &s.msgs[j].Blocks[b]; blk.Kind {
			case KindCall:
				open = append(open, blk.ID)
			case KindResult:
				if at := slices.Index(open, blk.ID); at >= 0 {
					open = slices.Delete(open, at, at+1)
				}
			}
		}
	}
	return len(open) > 0
}
