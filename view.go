package furl

import (
	"iter"
	"slices"
)

// View is what the model sees: a pure function of a State and the model's
// capabilities. Its cost is that of the visible messages. It shares memory with
// its State and is read-only.
type View struct {
	// State is the state the view shows.
	State *State
	// Messages are the shown messages in order, marks among them.
	Messages []Shown
	// Units group the same blocks into what may be hidden together.
	Units []Unit
	// Steps is the number of steps on the path, those that are not shown
	// included.
	Steps int
	// Tokens is the counted size of the shown blocks, without thinking that the
	// provider drops.
	Tokens int
	// Items is the number of visible tool calls and results (Budget.PerItem).
	Items int
	// Bytes approximates the size on the wire; Images counts images shown.
	Bytes, Images int
	// Dropped counts thinking blocks left out because their prefix renders
	// differently now.
	Dropped int
	// ThinkingFrom is the index in Messages of the first message whose thinking
	// the provider keeps and bills; 0 if it keeps all.
	ThinkingFrom int
	// LastThinking is the newest visible thinking block, zero if there is none.
	LastThinking Pos

	blocks []ShownBlock
}

// Shown is one message as the model sees it.
type Shown struct {
	Seq Seq // the message's record; 0 for a mark
	// Index is the message's position on the path, -1 for a mark.
	Index int
	// By is the reduction that shows this mark; 0 for a recorded message.
	By  Seq
	Msg *Message // as recorded, or the mark's own message
	// Blocks are the visible blocks, in order.
	Blocks []ShownBlock
}

// ShownBlock is one block as the model sees it.
type ShownBlock struct {
	Pos   Pos    // zero in a mark
	Block *Block // as recorded
	// By is the reduction whose text is shown instead, 0 if as recorded.
	By   Seq
	Text string // what is shown, if By is set
	// Tokens is the size of what is shown; 0 for thinking that the provider
	// drops.
	Tokens int
	Hold   Hold // Keep, Pin or 0; Pin in a unit with a fixed block
}

// AsRecorded reports whether the whole message is shown as it was recorded.
func (s *Shown) AsRecorded() bool {
	if len(s.Blocks) != len(s.Msg.Blocks) {
		return false
	}
	for i := range s.Blocks {
		if s.Blocks[i].By != 0 {
			return false
		}
	}
	return true
}

// Words returns the text the model reads: the replacement, the recorded text,
// or a call's arguments.
func (b *ShownBlock) Words() string {
	switch {
	case b.By != 0:
		return b.Text
	case b.Block.Kind == KindCall:
		return string(b.Block.Args)
	}
	return b.Block.Text
}

// Texts returns what can be read in a block as shown; see Block.Texts.
func (b *ShownBlock) Texts() iter.Seq[string] {
	switch {
	case b.By == 0:
		return b.Block.Texts()
	case b.Block.Kind == KindCall:
		return jsonStrings(b.Text)
	}
	return func(yield func(string) bool) { yield(b.Text) }
}

// item is 1 for a tool call or result, else 0.
func (b *ShownBlock) item() int {
	if b.Block.Kind == KindCall || b.Block.Kind == KindResult {
		return 1
	}
	return 0
}

// UnitKind says what a unit is.
type UnitKind uint8

// The kinds of unit.
const (
	UnitSystem UnitKind = iota // instructions in the message list
	UnitUser                   // words of the user
	UnitStep                   // an assistant's messages with their results
	UnitMark                   // a mark, for all it represents
)

// Unit is a run of shown blocks that a stage may hide together without parting
// a call from its result.
type Unit struct {
	Kind   UnitKind
	Blocks []ShownBlock
	// First and Last are indexes into View.Messages. A message with results and
	// then user text is part of two units, and so is a reply that begins with the
	// answers to calls that the provider ran in the step before.
	First, Last int
	// Messages is the number of recorded messages; a message shared by two
	// units counts in the one of its first block.
	Messages int
	// Step is the number of the step on the path, from 1; 0 for no step.
	Step   int
	Tokens int  // shown
	Items  int  // tool calls and results shown
	Hidden int  // original tokens that a mark hides
	By     Seq  // the reduction of a mark
	Hold   Hold // the strongest hold on any of its blocks
	Open   bool // a call in it has no result yet, and may get one
	// Newest marks the newest step and the newest user text; Preamble the leading
	// instructions.
	Newest, Preamble bool
	// Fixed marks a unit that is always shown as recorded; see State.Fixed. Its Hold
	// is Pin.
	Fixed bool
	// Protected marks what no policy may hide: leading instructions, the newest
	// user text, the newest step, a step with an open call, a compaction by the provider,
	// and what is pinned.
	Protected bool

	spans  []interval // what a mark represents
	lo, hi int        // its blocks in the view's
}

// View shows the state to the model m. Asking again before the state changes
// gives the same view.
func (s *State) View(m Model) *View {
	s.begin()
	if v := s.last; v != nil && v.State == s && s.lastFor == m.Thinking {
		return v
	}
	b := viewer{s: s, v: s.blank()}
	b.build()
	if m.Thinking.Binds {
		b.unbind()
	}
	if m.Thinking.LastOnly {
		b.unbill()
	}
	b.units()
	b.sizes()
	s.last, s.lastFor = b.v, m.Thinking
	*s.room = room{len(b.v.Messages), len(b.v.Units), len(b.v.blocks)}
	return b.v
}

// room is how much a view needed.
type room struct{ messages, units, blocks int }

// blank is an empty view with room for about as much as the last one showed.
func (s *State) blank() *View {
	v := &View{State: s, Steps: s.steps()}
	if l := s.room; l.messages > 0 {
		v.Messages = make([]Shown, 0, l.messages+8)
		v.Units = make([]Unit, 0, l.units+8)
		v.blocks = make([]ShownBlock, 0, l.blocks+16)
	}
	return v
}

// viewer assembles a view.
type viewer struct {
	s *State
	v *View

	spans   []blockSpan // of v.Messages in v.blocks
	marks   []shownMark
	pending []int // labels of marks to emit when the current message ends

	// The unit that grows with the next messages, of the group group. The words
	// of the user after its results begin at the ordinal words.
	unit         Unit
	growing      bool
	group, words int
}

type blockSpan struct{ lo, hi int }

type shownMark struct {
	label int
	first int // its first message in v.Messages
	spans []interval
}

// build walks the cover and emits messages, edited blocks and marks.
func (b *viewer) build() {
	b.spans = make([]blockSpan, 0, cap(b.v.Messages))
	end := b.s.base[len(b.s.msgs)]
	b.s.cover.within(0, end, func(iv interval) bool {
		if b.s.isMark(iv.label) {
			b.mark(iv)
			return true
		}
		b.show(iv)
		return true
	})
	b.flush()
	// Appending moved v.blocks; point the messages at it now.
	for i := range b.v.Messages {
		b.v.Messages[i].Blocks = b.v.blocks[b.spans[i].lo:b.spans[i].hi:b.spans[i].hi]
	}
}

// mark notes one interval that a mark represents; the mark itself is shown
// once, before the first.
func (b *viewer) mark(iv interval) {
	if at := slices.IndexFunc(b.marks, func(m shownMark) bool { return m.label == iv.label }); at >= 0 {
		b.marks[at].spans = append(b.marks[at].spans, iv)
		return
	}
	b.marks = append(b.marks, shownMark{label: iv.label, first: -1, spans: []interval{iv}})
	b.pending = append(b.pending, len(b.marks)-1)
	// A mark never is inside a message: wait for the next one, unless
	// the interval begins between two.
	if i := b.s.msgAt(iv.lo); b.s.base[i] == iv.lo {
		b.flush()
	}
}

// flush emits the marks that waited for a message to end.
func (b *viewer) flush() {
	for _, n := range b.pending {
		m := &b.marks[n]
		m.first = len(b.v.Messages)
		l := b.s.labels.at(m.label)
		layer := b.s.layers.at(l.layer)
		for _, msg := range layer.red.Items[l.item].Show.(Mark).Messages {
			lo := len(b.v.blocks)
			for i := range msg.Blocks {
				blk := &msg.Blocks[i]
				b.v.blocks = append(b.v.blocks, ShownBlock{Block: blk, Tokens: blk.Tokens})
			}
			b.v.Messages = append(b.v.Messages, Shown{Index: -1, By: layer.seq, Msg: msg})
			b.spans = append(b.spans, blockSpan{lo, len(b.v.blocks)})
		}
	}
	b.pending = b.pending[:0]
}

// show emits the blocks of an interval that is shown as recorded, in place or
// not at all.
func (b *viewer) show(iv interval) {
	s := b.s
	var in In
	var by Seq
	if iv.label != 0 {
		by = s.layers.at(s.labels.at(iv.label).layer).seq
		var ok bool
		if in, ok = s.show(iv.label).(In); !ok {
			return // gone; a message with nothing left is not shown
		}
	}
	for i := s.msgAt(iv.lo); i < len(s.msgs) && s.base[i] < iv.hi; i++ {
		msg := s.msgs[i]
		b.message(i, msg)
		lo, hi := max(iv.lo, s.base[i])-s.base[i], min(iv.hi, s.base[i+1])-s.base[i]
		for n := lo; n < min(hi, len(msg.Blocks)); n++ {
			sb := ShownBlock{Pos: Pos{s.seqs[i], n}, Block: &msg.Blocks[n], Tokens: msg.Blocks[n].Tokens}
			if by != 0 {
				sb.By, sb.Text, sb.Tokens = by, in.Text, in.Tokens
			}
			b.v.blocks = append(b.v.blocks, sb)
		}
		b.spans[len(b.spans)-1].hi = len(b.v.blocks)
	}
}

// message begins message i unless it is the one being shown.
func (b *viewer) message(i int, msg *Message) {
	if n := len(b.v.Messages); n > 0 && b.v.Messages[n-1].Index == i {
		return
	}
	b.flush()
	b.v.Messages = append(b.v.Messages, Shown{Seq: b.s.seqs[i], Index: i, Msg: msg})
	b.spans = append(b.spans, blockSpan{len(b.v.blocks), len(b.v.blocks)})
}

// units groups the shown blocks.
func (b *viewer) units() {
	v, s := b.v, b.s
	next := 0 // next mark
	for at := 0; at < len(v.Messages); {
		sh, span := &v.Messages[at], b.spans[at]
		if sh.Index < 0 {
			b.flushUnit()
			for b.shows(&b.marks[next]) == 0 {
				next++ // a mark without messages is not shown
			}
			m := &b.marks[next]
			next++
			at = b.markUnit(m, at)
			continue
		}
		g, from := s.groupOf[sh.Index], span.lo
		if begin := s.groups[g].lo - s.base[sh.Index]; begin > 0 { // its first blocks are of the step before
			for from < span.hi && v.blocks[from].Pos.Block < begin {
				from++
			}
			if from > span.lo {
				b.grow(g-1, at, span.lo, from)
			}
		}
		if from < span.hi || from == span.lo {
			b.grow(g, at, from, span.hi)
		}
		at++
	}
	b.flushUnit()
	b.protect()
}

// shows is the number of messages that a mark shows.
func (b *viewer) shows(m *shownMark) int {
	l := b.s.labels.at(m.label)
	return len(b.s.layers.at(l.layer).red.Items[l.item].Show.(Mark).Messages)
}

// grow adds blocks [from, to) of message at to the unit of group g, parting a
// step's results from the user's words after them, which become a unit of their
// own.
func (b *viewer) grow(g, at, from, to int) {
	v, s, u := b.v, b.s, &b.unit
	sh := &v.Messages[at]
	if !b.growing || g != b.group {
		b.flushUnit()
		b.growing, b.group, b.words = true, g, s.words(g)
		kind := s.groups[g].kind
		*u = Unit{Kind: kind, First: at, Last: at, Step: s.groups[g].step, lo: from, hi: from, Open: kind == UnitStep && len(s.open) > 0 && s.isOpen(g)}
	}
	mid := to
	if cut := b.words - s.base[sh.Index]; u.Kind == UnitStep && cut < len(sh.Msg.Blocks) { // first block of words
		for mid = from; mid < to && v.blocks[mid].Pos.Block < cut; mid++ {
		}
	}
	if mid > from || mid == to {
		u.hi, u.Last = mid, at
		if from == b.spans[at].lo {
			u.Messages++
		}
	}
	if mid < to {
		rest := Unit{Kind: UnitUser, First: at, Last: at, lo: mid, hi: to}
		if u.hi > u.lo {
			b.close(*u)
		}
		*u = rest
	}
}

// flushUnit closes the unit that is growing.
func (b *viewer) flushUnit() {
	if b.growing {
		b.close(b.unit)
		b.growing = false
	}
}

// markUnit closes the unit of a mark and steps over its messages.
func (b *viewer) markUnit(m *shownMark, at int) int {
	s := b.s
	l, n := s.labels.at(m.label), b.shows(m)
	u := Unit{Kind: UnitMark, First: at, Last: at + n - 1, By: s.layers.at(l.layer).seq, spans: m.spans}
	u.lo, u.hi = b.spans[at].lo, b.spans[at+n-1].hi
	for _, iv := range m.spans {
		lo, hi := s.msgAt(iv.lo), s.msgAt(iv.hi-1)
		u.Messages += hi - lo + 1
		if iv.lo != s.base[lo] {
			u.Messages-- // its first block counts elsewhere
		}
		u.Hidden += s.tokensIn(iv.lo, iv.hi)
	}
	b.close(u)
	return at + n
}

func (b *viewer) close(u Unit) {
	u.Blocks = b.v.blocks[u.lo:u.hi:u.hi]
	for i := range u.Blocks {
		u.Tokens += u.Blocks[i].Tokens
		u.Items += u.Blocks[i].item()
	}
	b.v.Units = append(b.v.Units, u)
}

// protect marks what no policy may hide, and sums up the holds.
func (b *viewer) protect() {
	units := b.v.Units
	for i := range units {
		// Instructions may follow what is of unknown type.
		if fixed := b.fixed(&units[i]); units[i].Kind != UnitSystem && !fixed {
			break
		}
		units[i].Preamble = units[i].Kind == UnitSystem
	}
	var step, user bool
	for i := len(units) - 1; i >= 0 && !(step && user); i-- {
		switch units[i].Kind {
		case UnitStep:
			units[i].Newest, step = !step, true
		case UnitUser:
			units[i].Newest, user = !user, true
		}
	}
	if len(b.s.holds) > 0 {
		b.hold()
	}
	for i := range units {
		u := &units[i]
		if u.Fixed = b.fixed(u); u.Fixed {
			u.Hold = Pin
		}
		for j := u.lo; j < u.hi; j++ {
			sb := &b.v.blocks[j]
			if u.Fixed {
				sb.Hold = Pin
			}
			u.Protected = u.Protected || sb.Block.IsCompaction()
		}
		u.Protected = u.Protected || u.Preamble || u.Newest || u.Open || u.Hold == Pin
	}
}

// fixed reports whether a unit is always shown as recorded.
func (b *viewer) fixed(u *Unit) bool {
	if len(b.s.fixed) == 0 || u.Kind == UnitMark || len(u.Blocks) == 0 {
		return false
	}
	ord, err := b.s.ordinal(u.Blocks[0].Pos)
	return err == nil && b.s.isPinned(ord)
}

// hold notes the holds of the blocks, and the strongest of each unit: also that
// of thinking that is not shown because its prefix has changed.
func (b *viewer) hold() {
	for i := range b.v.blocks {
		if p := b.v.blocks[i].Pos; p.Msg != 0 {
			ord, _ := b.s.ordinal(p)
			b.v.blocks[i].Hold = Hold(b.s.holds.at(ord))
		}
	}
	for i := range b.v.Units {
		u := &b.v.Units[i]
		if u.Kind == UnitMark || len(u.Blocks) == 0 {
			continue
		}
		lo, _ := b.s.ordinal(u.Blocks[0].Pos)
		last, _ := b.s.ordinal(u.Blocks[len(u.Blocks)-1].Pos)
		if begun := i > 0 && b.v.Units[i-1].Last == u.First; !begun {
			lo = max(b.s.base[b.v.Messages[u.First].Index], b.s.groups[b.s.groupAt(lo)].lo)
		}
		b.s.holds.within(lo, last+1, func(iv interval) bool {
			u.Hold = max(u.Hold, Hold(iv.label))
			return true
		})
	}
}

func (b *viewer) sizes() {
	v := b.v
	for i := range v.Messages {
		sh := &v.Messages[i]
		whole := len(sh.Blocks) == len(sh.Msg.Blocks)
		for j := range sh.Blocks {
			sb := &sh.Blocks[j]
			v.Tokens += sb.Tokens
			v.Items += sb.item()
			whole = whole && sb.By == 0
			if sb.Block.Kind == KindThinking && sb.Pos.Msg != 0 {
				v.LastThinking = sb.Pos
			}
			if sb.By == 0 {
				for k := range sb.Block.Media {
					if sb.Block.Media[k].Kind == KindImage {
						v.Images++
					}
				}
			}
		}
		if whole {
			v.Bytes += sh.Msg.Bytes()
			continue
		}
		for j := range sh.Blocks {
			v.Bytes += sh.Blocks[j].bytes()
		}
	}
}

// bytes approximates the wire size of one shown block.
func (b *ShownBlock) bytes() int {
	switch {
	case b.By != 0:
		return len(b.Text) + 64
	case b.Block.End > b.Block.Start:
		return b.Block.End - b.Block.Start
	}
	return len(b.Block.Text) + len(b.Block.Args) + 64
}

// tokensIn sums the recorded tokens of a range of ordinals.
func (s *State) tokensIn(lo, hi int) int {
	if lo >= hi {
		return 0
	}
	first, last := s.msgAt(lo), s.msgAt(hi-1)
	n := s.tokens[last+1] - s.tokens[first]
	for ord := s.base[first]; ord < lo; ord++ {
		n -= s.blockTokens(ord)
	}
	for ord := hi; ord < s.base[last+1]; ord++ {
		n -= s.blockTokens(ord)
	}
	return n
}

func (s *State) blockTokens(ord int) int {
	if b := s.block(ord); b != nil {
		return b.Tokens
	}
	return 0
}

// Spans returns the blocks of the path that units represent, adjacent spans
// joined.
func (v *View) Spans(units ...Unit) []Span {
	s := v.State
	var ivs []interval
	for i := range units {
		u := &units[i]
		if u.Kind == UnitMark {
			for _, iv := range u.spans {
				ivs = append(ivs, interval{lo: iv.lo, hi: iv.hi})
			}
			continue
		}
		if ord, err := s.ordinal(u.anchor(v)); err == nil {
			lo, hi := s.unitRange(ord)
			ivs = append(ivs, interval{lo: lo, hi: hi})
		}
	}
	ivs = merge(ivs)
	spans := make([]Span, len(ivs))
	for i, iv := range ivs {
		spans[i] = Span{First: s.pos(iv.lo), Last: s.pos(iv.hi - 1)}
	}
	return spans
}

// anchor is a block of the path that lies in the unit.
func (u *Unit) anchor(v *View) Pos {
	if len(u.Blocks) > 0 {
		return u.Blocks[0].Pos
	}
	return Pos{Msg: v.Messages[u.First].Seq} // a message without blocks
}
