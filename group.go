package furl

import "slices"

// The blocks of a path form groups: a step (assistant messages, then the
// results of their calls), words of the user, or instructions in the list. A
// step stays open while it has calls without results; a late result joins
// everything since its call into one step, so that no cut can part the two.
//
// A group begins inside a message only where that message first answers calls
// that the provider ran in the step before (Half): the answers belong to that
// step, the rest begins the next one.
type group struct {
	kind        UnitKind
	lo          int // first ordinal; the group ends where the next one begins
	first, last int // messages; two groups may share one
	step        int // number of the step on the path, from 1; 0 for no step
	results     bool
}

// openCall is a call without a result.
type openCall struct {
	id     string
	msg    int
	hosted bool // one half of a pair, which the client does not answer
}

// group puts message i, the newest, into its group.
func (s *State) group(i int, m *Message) {
	s.giveUp(i, m)
	results, answers := s.settle(i, m)
	last := len(s.groups) - 1
	switch {
	case results >= 0:
		s.join(results, i)
		s.groups[results].results = true
		if m.Role == RoleAssistant && answers < len(m.Blocks) && !s.isOpen(results) && !slices.ContainsFunc(m.Blocks[:answers], isCall) {
			s.groups = append(s.groups, group{kind: UnitStep, lo: s.base[i] + answers, first: i, last: i, step: s.steps() + 1})
			s.groupOf[i] = results + 1
		}
	case !m.Role.Known() && last >= 0 && s.groups[last].kind == UnitStep,
		m.Role == RoleAssistant && last >= 0 && s.groups[last].kind == UnitStep &&
			(!s.groups[last].results || s.isOpen(last) || !s.msgs[i-1].Role.Known()):
		// A message without a role may belong to the messages before it and to those
		// after it.
		s.groups[last].last = i
		s.groupOf = append(s.groupOf, last)
	case (m.Role == RoleTool || m.observes()) && last >= 0 && s.groups[last].kind == UnitStep:
		// It answers no call that furl knows of, as what is opaque does, or an
		// observation does: part of the step before it, not words of the user.
		s.join(last, i)
		s.groups[last].results = true
	default:
		g := group{kind: UnitUser, lo: s.base[i], first: i, last: i}
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
	s.opens(i, m)
}

// opens adds the calls of message i, the newest, that it does not answer itself.
func (s *State) opens(i int, m *Message) {
	var answers map[string]int // the block of the last answer to a call, by its id
	for b := range m.Blocks {
		if m.Blocks[b].Half == HalfAnswer {
			if answers == nil {
				answers = make(map[string]int)
			}
			answers[m.Blocks[b].ID] = b
		}
	}
	for b := range m.Blocks {
		if blk := &m.Blocks[b]; isCall(*blk) && (blk.Kind == KindCall || answers[blk.ID] <= b) {
			s.open = append(s.open, openCall{id: blk.ID, msg: i, hosted: blk.Half == HalfCall})
		}
	}
}

func isCall(b Block) bool { return b.Kind == KindCall || b.Half == HalfCall }

// giveUp closes the calls run by the provider that get no answer any more. Such
// a call is answered at the start of the next reply, or while its program goes
// on, the reply has calls of that program (Block.Caller). So the calls are given
// up after a reply with neither, and after words of the user, which the provider
// refuses before the answer. What comes after such a call is then hidden like
// everything else.
func (s *State) giveUp(i int, m *Message) {
	switch {
	case m.Role == RoleAssistant:
		if !s.replying {
			s.reply, s.replying, s.goesOn = i, true, false
		}
		s.goesOn = s.goesOn || s.continuesHosted(m)
		return
	case !m.Role.Known():
		return // it may be part of the reply
	}
	replied := s.replying
	s.replying = false
	words := m.Role == RoleUser && !slices.ContainsFunc(m.Blocks, func(b Block) bool { return b.IsResult() || b.Half == HalfAnswer })
	if len(s.open) == 0 || !words && (!replied || s.goesOn) {
		return
	}
	s.open = slices.DeleteFunc(slices.Clone(s.open), func(o openCall) bool { return o.hosted && (words || o.msg < s.reply) })
}

// continuesHosted reports whether a message of the newest reply answers a call
// run by the provider before the reply, or has a call of its program.
func (s *State) continuesHosted(m *Message) bool {
	for b := range m.Blocks {
		blk := &m.Blocks[b]
		id := blk.Caller
		if blk.Half == HalfAnswer {
			id = blk.ID
		}
		if id != "" && slices.ContainsFunc(s.open, func(o openCall) bool { return o.hosted && o.id == id && o.msg < s.reply }) {
			return true
		}
	}
	return false
}

// settle closes the calls that message i answers. It returns the earliest group
// among theirs, -1 if it answers none, and the number of blocks up to the last
// answer.
func (s *State) settle(i int, m *Message) (earliest, blocks int) {
	earliest = -1
	own := false // s.open is a copy: drafts share it
	for b := range m.Blocks {
		blk := &m.Blocks[b]
		if blk.Kind != KindResult && blk.Half != HalfAnswer {
			continue
		}
		at := slices.IndexFunc(s.open, func(o openCall) bool { return o.id == blk.ID && o.hosted == (blk.Half == HalfAnswer) })
		if at < 0 {
			continue
		}
		if g := s.groupOf[s.open[at].msg]; earliest < 0 || g < earliest {
			earliest = g
		}
		if blocks = b + 1; !own {
			s.open, own = slices.Clone(s.open), true
		}
		s.open = slices.Delete(s.open, at, at+1)
	}
	return earliest, blocks
}

// join merges all groups from g on, and message i, into g.
func (s *State) join(g, i int) {
	for j := i - 1; j >= 0 && s.groupOf[j] > g; j-- {
		s.groupOf[j] = g
	}
	s.groupOf = append(s.groupOf, g)
	s.groups = s.groups[:g+1]
	s.groups[g].last = i
}

// end is the ordinal at which a group ends.
func (s *State) end(g int) int {
	if g+1 < len(s.groups) {
		return s.groups[g+1].lo
	}
	return s.base[len(s.msgs)]
}

// groupAt is the group of the block at an ordinal.
func (s *State) groupAt(ord int) int {
	g := s.groupOf[s.msgAt(ord)]
	if ord < s.groups[g].lo {
		g--
	}
	return g
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

// OpenCalls gives the ids of the calls that wait for a result of the client.
func (s *State) OpenCalls() []string {
	ids := make([]string, 0, len(s.open))
	for _, o := range s.open {
		if !o.hosted {
			ids = append(ids, o.id)
		}
	}
	return ids
}

// AwaitsProvider reports whether a call that the provider runs (Half) has no
// answer yet. The next message must then be the model's, or results of the
// client.
func (s *State) AwaitsProvider() bool {
	return slices.ContainsFunc(s.open, func(o openCall) bool { return o.hosted })
}

// words is the ordinal at which a step's last message turns from results to
// words of the user; the end of the group if it never does.
func (s *State) words(gi int) int {
	g, end := s.groups[gi], s.end(gi)
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
	g := s.groupAt(ord)
	lo, hi = s.groups[g].lo, s.end(g)
	if w := s.words(g); ord < w {
		hi = w
	} else {
		lo = w
	}
	return lo, hi
}

// Boundary returns the newest record at or before seq at which the conversation
// can be cut and continued by anyone: seq, or the record before the step that
// the cut would split.
func (s *State) Boundary(seq Seq) Seq { return s.boundary(seq, true) }

// boundary is Boundary. If hosted is false, a cut may part a call that the
// provider runs from its answer: who continues there, such as a client that
// repeats a request, must have the provider answer it.
func (s *State) boundary(seq Seq, hosted bool) Seq {
	i, found := slices.BinarySearch(s.seqs, seq)
	if !found {
		i-- // the last message at or before seq
	}
	if i < 0 {
		return seq
	}
	// A step that waits for results may have instructions after it, but no
	// words of the user: a call with those after it was given up.
	cut := i // the last message that stays
	for g := s.groupOf[i]; g >= 0 && s.groups[g].kind != UnitUser; g-- {
		if s.groups[g].first <= cut && s.callsBefore(g, cut, hosted) {
			cut = s.groups[g].first - 1
		}
	}
	if cut < i {
		return s.parents[cut+1]
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
func (s *State) callsBefore(gi, i int, hosted bool) bool {
	g, end := s.groups[gi], s.end(gi)
	var open []openCall
	for j := g.first; j <= min(i, g.last); j++ {
		for b := range s.msgs[j].Blocks {
			blk := &s.msgs[j].Blocks[b]
			half := blk.Half != 0
			switch {
			case s.base[j]+b < g.lo || s.base[j]+b >= end || half && !hosted:
			case blk.Kind == KindCall || blk.Half == HalfCall:
				open = append(open, openCall{id: blk.ID, hosted: half})
			case blk.Kind == KindResult || blk.Half == HalfAnswer:
				if at := slices.Index(open, openCall{id: blk.ID, hosted: half}); at >= 0 {
					open = slices.Delete(open, at, at+1)
				}
			}
		}
	}
	return slices.ContainsFunc(open, func(o openCall) bool { return !o.hosted || s.answered(gi, i, o.id) })
}

// answered reports whether a call that the provider runs, in group gi, is
// answered after message i or may still be: it was not given up.
func (s *State) answered(gi, i int, id string) bool {
	if slices.ContainsFunc(s.open, func(o openCall) bool { return o.hosted && o.id == id }) {
		return true
	}
	for j := i + 1; j <= s.groups[gi].last; j++ {
		if slices.ContainsFunc(s.msgs[j].Blocks, func(b Block) bool { return b.Half == HalfAnswer && b.ID == id }) {
			return true
		}
	}
	return false
}
