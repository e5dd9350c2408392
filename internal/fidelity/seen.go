package fidelity

import (
	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lexer"
)

// Seen determines what of a Reply is still visible in the view of its
// request. One Seen serves all requests of a recording under one policy; it
// reads each placeholder text once. The zero value is ready for Look. A Seen
// is not safe for concurrent use.
type Seen struct {
	reply *Reply
	shown bitset // blocks of the path shown as recorded, by number
	texts bitset // placeholder texts shown, by number

	known map[placeholder]uint32
	names map[string][]uint32 // texts that contain a name
	lines map[string][]uint32
}

// placeholder is a text shown instead of recorded blocks.
type placeholder struct {
	words string
	json  bool // arguments of a call
}

// Count sums up what a view keeps visible.
type Count struct {
	References, ReferencesKept       int // first-hand
	OwnReferences, OwnReferencesKept int
	Lines, LinesKept                 int
	Refetches                        int
	Edits, BlindEdits                int
}

// Look compares the view of a request with the reply to it. The view's path
// must be the path of the reply's Tracker; messages after its end are
// ignored.
func (s *Seen) Look(r *Reply, v *furl.View) {
	s.reply = r
	s.shown.clear(int(r.base[len(r.base)-1]))
	s.texts.clear(len(s.known))
	for i := range v.Messages {
		sh := &v.Messages[i]
		for j := range sh.Blocks {
			b := &sh.Blocks[j]
			if sh.Index < 0 || b.By != 0 {
				s.texts.set(s.read(b))
			} else if n, ok := r.number(sh.Index, b.Pos.Block); ok {
				s.shown.set(n)
			}
		}
	}
}

// read returns the number of a text, and reads it if it is new.
func (s *Seen) read(b *furl.ShownBlock) uint32 {
	key := placeholder{b.Words(), b.Block.Kind == furl.KindCall}
	n, ok := s.known[key]
	if ok {
		return n
	}
	if s.known == nil {
		s.known = make(map[placeholder]uint32)
		s.names, s.lines = make(map[string][]uint32), make(map[string][]uint32)
	}
	n = uint32(len(s.known))
	s.known[key] = n
	for piece := range b.Texts() {
		for name := range lexer.Names(piece) {
			note(s.names, name, n)
		}
		for line := range Variants(piece) {
			note(s.lines, line, n)
		}
	}
	return n
}

func note(in map[string][]uint32, what string, n uint32) {
	list := in[what]
	if len(list) == 0 || list[len(list)-1] != n {
		in[what] = append(list, n)
	}
}

// Shown reports whether a block of the path is shown as recorded.
func (s *Seen) Shown(msg, block int) bool {
	n, ok := s.reply.number(msg, block)
	return ok && s.shown.has(n)
}

// Ref reports whether the reply's reference i is visible in the view.
func (s *Seen) Ref(i int) bool {
	ref := &s.reply.Refs[i]
	return s.shown.hasAny(ref.holders) || s.texts.hasAny(s.names[ref.Name])
}

// Line reports whether the reply's quoted line i is completely visible in the
// view.
func (s *Seen) Line(i int) bool {
	return s.visible(&s.reply.Lines[i])
}

func (s *Seen) visible(line *Line) bool {
	return s.shown.hasAny(line.holders) || s.texts.hasAny(s.lines[line.Text])
}

// Refetch reports whether the reply's repeat i repeats a call whose result
// the view hides.
func (s *Seen) Refetch(i int) bool {
	rep := &s.reply.Repeats[i]
	return len(rep.results) > 0 && !s.shown.hasAny(rep.results)
}

// Count counts everything.
func (s *Seen) Count() Count {
	var c Count
	for i := range s.reply.Refs {
		all, kept := &c.OwnReferences, &c.OwnReferencesKept
		if s.reply.Refs[i].FirstHand {
			all, kept = &c.References, &c.ReferencesKept
		}
		*all++
		if s.Ref(i) {
			*kept++
		}
	}
	for i := range s.reply.Lines {
		c.Lines++
		if s.Line(i) {
			c.LinesKept++
		}
	}
	for i := range s.reply.Repeats {
		if s.Refetch(i) {
			c.Refetches++
		}
	}
	for i := range s.reply.Edits {
		c.Edits++
		if s.Blind(i) != nil {
			c.BlindEdits++
		}
	}
	return c
}

// Reply returns the reply with only those references, lines and edits that are
// visible in the view. If the view is the one that was sent, these are the
// ones that the recorded agent could have used.
func (s *Seen) Reply() *Reply {
	r := &Reply{Repeats: s.reply.Repeats, Edits: s.visibleEdits(), Unmeasured: s.reply.Unmeasured, base: s.reply.base}
	for i := range s.reply.Refs {
		if s.Ref(i) {
			r.Refs = append(r.Refs, s.reply.Refs[i])
		}
	}
	for i := range s.reply.Lines {
		if s.Line(i) {
			r.Lines = append(r.Lines, s.reply.Lines[i])
		}
	}
	return r
}

// number is the number of a block on the path.
func (r *Reply) number(msg, block int) (uint32, bool) {
	if msg < 0 || msg+1 >= len(r.base) || block < 0 {
		return 0, false
	}
	n := r.base[msg] + uint32(block)
	return n, n < r.base[msg+1]
}

// bitset is a set of small numbers.
type bitset []uint64

// clear empties the set and makes room for n numbers.
func (b *bitset) clear(n int) {
	words := n/64 + 1
	if cap(*b) < words {
		*b = make(bitset, words, 2*words)
	}
	*b = (*b)[:words]
	clear(*b)
}

func (b *bitset) set(n uint32) {
	for int(n/64) >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[n/64] |= 1 << (n % 64)
}

func (b bitset) has(n uint32) bool { return int(n/64) < len(b) && b[n/64]>>(n%64)&1 != 0 }

// hasAny searches from the end: new blocks are most likely visible.
func (b bitset) hasAny(list []uint32) bool {
	for i := len(list) - 1; i >= 0; i-- {
		if b.has(list[i]) {
			return true
		}
	}
	return false
}
