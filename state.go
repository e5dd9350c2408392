package furl

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
	"time"
	"unicode/utf8"
)

// State is the fold of a path: its messages, and what is shown for each block.
// The zero value is the state of the empty path. A State is not safe for
// concurrent use.
type State struct {
	head Seq

	// Messages of the path, in order.
	msgs    []*Message
	seqs    []Seq // of the messages; ascending
	parents []Seq // of the messages' records
	times   []time.Time
	chains  []Digest // of the messages up to and with each
	base    []int    // first block ordinal of each message; one more at the end
	tokens  []int    // tokens of all messages before each; one more at the end
	groups  []group
	groupOf []int // index into groups, per message
	open    []openCall

	reply    int  // first message of the newest reply
	replying bool // the reply may go on
	goesOn   bool // it answers or continues a call that the provider ran before it

	fixed []int // ordinals of fixed blocks, ascending
	// pinned are the units with fixed blocks and with blocks of the ids pinnedIDs, those of
	// fixed blocks; nil: not made yet. With pinnedStale, messages since then have others.
	pinned      []interval
	pinnedIDs   map[string]bool
	pinnedStale bool

	layers stack[layer]
	labels stack[label] // the first is "as recorded"
	cover  cover
	holds  cover // labels are Holds

	exchanges []exchange
	exchOf    []int      // per message: the last exchange before it, -1 none
	lastEdit  Seq        // newest reduction or restoration
	passed    stack[Seq] // records that are not messages, ascending

	// last is the newest view, as long as nothing changes.
	last    *View
	lastFor Thinking // what its model does with thinking
	room    *room    // sizes of the newest view, shared with drafts

	memos  *memos
	exact  []Digest // per message, zero until a view needs it
	marked int      // layers that hold a mark
	taken  bool     // some layers were taken over from another branch
}

// layer is one reduction or opening on the path.
type layer struct {
	seq    Seq
	at     time.Time
	by     Actor
	msgs   int        // messages before it
	red    *Reduction // nil for an opening
	paints []interval // sorted
	lifted bool
	marks  bool
}

// label says what a painted block shows: item of a reduction.
type label struct {
	layer int // index into layers, -1 for "as recorded"
	item  int
}

type exchange struct {
	seq  Seq
	ex   *Exchange
	msgs int // messages before it
}

// Fold returns the state of the path that ends at head. An unknown head is an
// error wrapping ErrNotOnPath.
func Fold(log *Log, head Seq) (*State, error) {
	if head > Seq(log.Len()) {
		return nil, fmt.Errorf("fold to record %d: %w", head, ErrNotOnPath)
	}
	s := new(State)
	for _, r := range log.Path(head) {
		if err := s.Apply(r); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// begin makes the zero value ready.
func (s *State) begin() {
	if s.base == nil {
		s.base, s.tokens = []int{0}, []int{0}
		s.labels.push(label{layer: -1})
		s.memos, s.room = new(memos), new(room)
	}
}

// draft returns a copy of the state that can be changed without changing s. It
// shares memory with s and is valid only until s changes.
func (s *State) draft() *State {
	s.begin()
	t := *s
	t.last = nil
	t.layers, t.labels, t.passed = s.layers.fork(), s.labels.fork(), s.passed.fork()
	t.groups, t.groupOf = slices.Clone(s.groups), slices.Clone(s.groupOf) // a late result changes earlier ones
	t.memos = s.memos.draft(len(s.msgs))
	return &t
}

// Head is the newest record of the path.
func (s *State) Head() Seq { return s.head }

// Len is the number of messages on the path.
func (s *State) Len() int { return len(s.msgs) }

// Message gives message i of the path and its record.
func (s *State) Message(i int) (Seq, *Message) { return s.seqs[i], s.msgs[i] }

// Time is when message i of the path was recorded; zero when unknown.
func (s *State) Time(i int) time.Time { return s.times[i] }

// Chain returns the chain of digests of the first n messages of the path, zero
// for none.
func (s *State) Chain(n int) Digest {
	if n == 0 {
		return Digest{}
	}
	return s.chains[n-1]
}

// Find gives the index on the path of the message with the record seq.
func (s *State) Find(seq Seq) (int, bool) { return slices.BinarySearch(s.seqs, seq) }

// Apply adds the next record of the path, at the cost of that record. An
// invalid record is an error and changes nothing.
func (s *State) Apply(r Record) error {
	s.begin()
	s.last = nil
	var err error
	switch b := r.Body.(type) {
	case *Message:
		s.addMessage(r, b)
	case *Reduction:
		err = s.addReduction(r, b)
	case *Restoration:
		err = s.addRestoration(r, b)
	case *Takeover:
		err = s.addTakeover(r, b)
	case *Exchange:
		s.exchanges = append(s.exchanges, exchange{r.Seq, b, len(s.msgs)})
	case *Head:
		err = errors.New("a head is not part of a path")
	default:
		err = fmt.Errorf("unknown body %T", r.Body)
	}
	if err != nil {
		return fmt.Errorf("record %d: %w", r.Seq, err)
	}
	if _, ok := r.Body.(*Message); !ok {
		s.passed.push(r.Seq)
	}
	s.head = r.Seq
	return nil
}

// With returns the state with a record of this body appended, which is not a
// message. It is valid until s changes.
func (s *State) With(body Body) (*State, error) {
	return s.with(Record{Seq: s.head + 1, Parent: s.head, By: Furl, Body: body})
}

func (s *State) with(r Record) (*State, error) {
	s.begin()
	t := *s
	t.layers, t.labels, t.passed = s.layers.fork(), s.labels.fork(), s.passed.fork()
	err := t.Apply(r)
	return &t, err
}

// Preferring returns the state as if the blocks of some spans had been kept by a
// Restoration with Hold Keep; a pin stays. It is no record, so nothing is stored. It is
// valid until s changes.
func (s *State) Preferring(spans []Span) (*State, error) {
	s.begin()
	t := *s
	t.layers, t.labels, t.passed = s.layers.fork(), s.labels.fork(), s.passed.fork()
	var paints []interval
	for _, sp := range spans {
		lo, hi, err := s.ordinals(sp)
		if err != nil {
			return nil, err
		}
		paints = append(paints, interval{lo: lo, hi: hi})
	}
	t.hold(&Restoration{Open: true}, merge(paints)) // as a person who opens them keeps them
	return &t, nil
}

// Size returns the size of the next request according to the newest usage or
// reduction on the path, plus counted newer messages; 0 if unknown. Package
// token estimates better.
func (s *State) Size() int {
	ex, msgs, stale := s.lastExchange()
	if stale || ex == nil && s.lastEdit > 0 {
		last := s.layers.at(s.layers.len() - 1)
		if last.seq != s.lastEdit || last.red == nil || last.red.After == 0 {
			return 0 // something was restored since
		}
		n := last.red.After
		for i := len(s.seqs) - 1; i >= 0 && s.seqs[i] > last.seq; i-- {
			n += s.msgs[i].Tokens()
		}
		return n
	}
	if ex == nil {
		return 0
	}
	size := cmp.Or(ex.Usage.Prompt(), ex.Estimated)
	if size == 0 {
		return 0
	}
	return size + s.tokens[len(s.msgs)] - s.tokens[msgs]
}

// LastExchange returns the newest request on the path, nil if there is none.
func (s *State) LastExchange() *Exchange {
	ex, _, _ := s.lastExchange()
	return ex
}

// lastExchange gives the newest request on the path, how many messages stood
// before its reply, and whether anything was reduced or restored since; such
// a usage says nothing about the next request. It is nil when there was none.
func (s *State) lastExchange() (ex *Exchange, messages int, stale bool) {
	if len(s.exchanges) == 0 {
		return nil, 0, false
	}
	x := s.exchanges[len(s.exchanges)-1]
	return x.ex, x.msgs, s.lastEdit > x.seq
}

// Applied is a reduction on a path.
type Applied struct {
	*Reduction
	Seq Seq
	At  time.Time // when it was recorded
	By  Actor
	// Messages is the number of messages of the path before it.
	Messages int
	Undone   bool
}

func (l *layer) applied() Applied { return Applied{l.red, l.seq, l.at, l.by, l.msgs, l.lifted} }

// External reports whether the client, the provider or an imported recording made the
// reduction. The client does not send what it hides, so furl saves nothing by it.
func (a *Applied) External() bool {
	return a.Stage == StageClient || a.By == Upstream || a.By == Import
}

// Reductions returns the reductions on the path in order, undone ones included.
func (s *State) Reductions() iter.Seq[Applied] {
	return func(yield func(Applied) bool) {
		for i := range s.layers.len() {
			if l := s.layers.at(i); l.red != nil && !yield(l.applied()) {
				return
			}
		}
	}
}

// Reduction returns a reduction on the path; false if it is not there.
func (s *State) Reduction(seq Seq) (Applied, bool) {
	i, ok := s.layer(seq)
	if !ok {
		return Applied{}, false
	}
	return s.layers.at(i).applied(), true
}

// layer finds the layer of a reduction. Layers are nearly always in the order
// of their records; one that was taken over may follow a newer one.
func (s *State) layer(seq Seq) (int, bool) {
	n := s.layers.len()
	is := func(i int) bool { l := s.layers.at(i); return l.seq == seq && l.red != nil }
	if i := sort.Search(n, func(i int) bool { return s.layers.at(i).seq >= seq }); i < n && is(i) {
		return i, true
	}
	if s.taken {
		for i := range n {
			if is(i) {
				return i, true
			}
		}
	}
	return n, false
}

// ShownBy returns the reduction that shows something else for the block, 0 if
// it is shown as recorded or is not on the path.
func (s *State) ShownBy(p Pos) Seq {
	ord, err := s.ordinal(p)
	if err != nil {
		return 0
	}
	lab := s.cover.at(ord)
	if lab == 0 {
		return 0
	}
	return s.layers.at(s.labels.at(lab).layer).seq
}

// Covering returns the other reductions that show something for blocks of the
// reduction seq: while they do, undoing it changes nothing there.
func (s *State) Covering(seq Seq) []Seq {
	i, ok := s.layer(seq)
	if !ok {
		return nil
	}
	var over []Seq
	for _, p := range s.layers.at(i).paints {
		s.cover.within(p.lo, p.hi, func(iv interval) bool {
			if iv.label == 0 {
				return true
			}
			if by := s.layers.at(s.labels.at(iv.label).layer).seq; by != seq && !slices.Contains(over, by) {
				over = append(over, by)
			}
			return true
		})
	}
	return over
}

func (s *State) addMessage(r Record, m *Message) {
	i := len(s.msgs)
	chain := r.Chain
	if chain.IsZero() { // a record made by hand
		chain = s.extend(m)
	}
	s.chains = append(s.chains, chain)
	s.msgs = append(s.msgs, m)
	s.seqs = append(s.seqs, r.Seq)
	s.parents = append(s.parents, r.Parent)
	s.times = append(s.times, r.At)
	s.base = append(s.base, s.base[i]+max(1, len(m.Blocks)))
	s.tokens = append(s.tokens, s.tokens[i]+m.Tokens())
	s.exchOf = append(s.exchOf, len(s.exchanges)-1)
	s.exact = append(s.exact, Digest{})
	for b := range m.Blocks {
		if m.Blocks[b].Fixed {
			s.fixed = append(s.fixed, s.base[i]+b)
		}
	}
	s.group(i, m)
	s.pinnedStale = s.pinnedStale || s.changesPinned(i)
}

func (s *State) addReduction(r Record, red *Reduction) error {
	l, labels, err := s.resolve(r.Seq, red)
	if err != nil {
		return err
	}
	if r.By == Furl || r.By == Person { // clients and providers compact as they like
		l.paints = s.aroundPinned(red, labels, l.paints)
	}
	l.at, l.by, l.msgs = r.At, r.By, len(s.msgs)
	s.layers.push(l)
	s.labels.push(labels...)
	s.lay(&l)
	s.lastEdit = r.Seq
	return nil
}

// resolve turns a reduction's spans into ordinals and checks that it covers
// only what it may.
func (s *State) resolve(seq Seq, red *Reduction) (layer, []label, error) {
	l := layer{seq: seq, red: red}
	var labels []label
	for n, item := range red.Items {
		lab := s.labels.len() + len(labels)
		labels = append(labels, label{layer: s.layers.len(), item: n})
		if len(item.Spans) == 0 {
			return l, nil, fmt.Errorf("item %d covers nothing", n)
		}
		for _, sp := range item.Spans {
			lo, hi, err := s.ordinals(sp)
			if err != nil {
				return l, nil, fmt.Errorf("item %d: %w", n, err)
			}
			if err := s.mayShow(item.Show, lo, hi); err != nil {
				return l, nil, fmt.Errorf("item %d: %w", n, err)
			}
			l.paints = append(l.paints, interval{lo, hi, lab})
		}
		if mark, ok := item.Show.(Mark); ok {
			if l.marks = true; len(mark.Messages) == 0 && red.Stage != StageClient {
				return l, nil, errors.New("a mark without words")
			}
		}
	}
	slices.SortFunc(l.paints, func(a, b interval) int { return cmp.Compare(a.lo, b.lo) })
	for i := 1; i < len(l.paints); i++ {
		if l.paints[i].lo < l.paints[i-1].hi {
			return l, nil, errors.New("two items cover the same block")
		}
	}
	return l, labels, nil
}

// ordinals resolves a span of the path.
func (s *State) ordinals(sp Span) (lo, hi int, err error) {
	lo, err = s.ordinal(sp.First)
	if err != nil {
		return 0, 0, err
	}
	last, err := s.ordinal(sp.Last)
	if err != nil {
		return 0, 0, err
	}
	if last < lo {
		return 0, 0, fmt.Errorf("span ends before it begins, at message %d block %d", sp.Last.Msg, sp.Last.Block)
	}
	return lo, last + 1, nil
}

func (s *State) ordinal(p Pos) (int, error) {
	i, ok := s.Find(p.Msg)
	if !ok {
		return 0, fmt.Errorf("message %d: %w", p.Msg, ErrNotOnPath)
	}
	if p.Block < 0 || p.Block >= s.base[i+1]-s.base[i] {
		return 0, fmt.Errorf("message %d has no block %d: %w", p.Msg, p.Block, ErrNotOnPath)
	}
	return s.base[i] + p.Block, nil
}

// pos is the reverse of ordinal.
func (s *State) pos(ord int) Pos {
	i := s.msgAt(ord)
	return Pos{s.seqs[i], ord - s.base[i]}
}

// msgAt is the index of the message that holds the ordinal.
func (s *State) msgAt(ord int) int {
	i, found := slices.BinarySearch(s.base, ord)
	if !found {
		i--
	}
	return i
}

// block gives the block at an ordinal, nil in a message without blocks.
func (s *State) block(ord int) *Block {
	i := s.msgAt(ord)
	if b := ord - s.base[i]; b < len(s.msgs[i].Blocks) {
		return &s.msgs[i].Blocks[b]
	}
	return nil
}

// mayShow checks what the laws demand of one item: marks represent whole
// steps, texts fit the block, only thinking may be gone.
func (s *State) mayShow(show Show, lo, hi int) error {
	switch show := show.(type) {
	case Mark:
		if slices.ContainsFunc(show.Messages, func(m *Message) bool { return len(m.Blocks) == 0 }) {
			return errors.New("a mark without words")
		}
		for _, ord := range [...]int{lo, hi - 1} {
			from, to := s.unitRange(ord)
			if (ord == lo && from != lo && !s.parted(lo)) || (ord == hi-1 && to != hi && !s.parted(hi)) {
				p := s.pos(ord)
				return fmt.Errorf("a mark splits the step at message %d block %d", p.Msg, p.Block)
			}
		}
		if n := len(s.open); n > 0 && s.groups[s.groupOf[s.open[0].msg]].lo < hi {
			return fmt.Errorf("a mark covers message %d: %w", s.seqs[s.open[0].msg], ErrOpenCall)
		}
	case In, Gone:
		_, gone := Show(show).(Gone)
		for ord := lo; ord < hi; ord++ {
			b := s.block(ord)
			p := s.pos(ord)
			if b == nil {
				return fmt.Errorf("message %d has no blocks", p.Msg)
			}
			if gone != (b.Kind == KindThinking) || b.Kind == KindOpaque {
				return fmt.Errorf("message %d block %d is %v, which %T cannot replace", p.Msg, p.Block, b.Kind, show)
			}
		}
	default:
		return fmt.Errorf("unknown show %T", show)
	}
	return nil
}

// parted reports whether a mark begins or ends right before ord. Inside a step
// one does when it was made while what it covers was the whole step: an
// assistant's message that was hidden and then continued by another. No call
// and its result are ever on two sides of it, since marks over open calls are
// refused.
func (s *State) parted(ord int) bool {
	before, after := s.cover.at(ord-1), s.cover.at(ord)
	return before != after && (s.isMark(before) || s.isMark(after))
}

func (s *State) addRestoration(r Record, res *Restoration) error {
	var paints []interval
	switch {
	case res.Of != 0:
		i, ok := s.layer(res.Of)
		if !ok {
			return fmt.Errorf("lift reduction %d: %w", res.Of, ErrNotOnPath)
		}
		for _, p := range s.layers.at(i).paints {
			paints = append(paints, interval{p.lo, p.hi, 0})
		}
		s.lift(i)
	case len(res.Spans) == 0:
		return errors.New("a restoration names neither a reduction nor blocks")
	default:
		for _, sp := range res.Spans {
			lo, hi, err := s.ordinals(sp)
			if err != nil {
				return err
			}
			paints = append(paints, interval{lo, hi, 0})
		}
		paints = merge(paints)
		if res.Open {
			paints = s.widen(paints)
			s.layers.push(layer{seq: r.Seq, paints: paints})
			s.cover = s.cover.paint(paints)
		}
	}
	s.hold(res, paints)
	if res.Of != 0 || res.Open {
		s.lastEdit = r.Seq // a hold alone shows nothing
	}
	return nil
}

// Effect is what a reduction newly hides on a path.
type Effect struct {
	// Messages are replaced by the reduction's marks, in order. A message with
	// results and then text counts where its first block goes.
	Messages []Seq
	// From and To are when the first and last of them were recorded.
	From, To time.Time
	// Blocks show another text in place than before, or nothing; Chars is how many
	// characters shorter that is.
	Blocks, Chars int
	// Tokens is the recorded size of all that, as counted. Of a block that showed
	// another text in place before, it is the size of that text.
	Tokens int
}

// Effect returns what the reduction would newly hide on the path, or why it
// cannot be applied. A block that shows a text in place counts again if another text
// replaces it, as when a mask replaces a clip.
func (s *State) Effect(red *Reduction) (Effect, error) {
	var e Effect
	l, labels, err := s.resolve(s.head+1, red)
	if err != nil {
		return e, err
	}
	for _, p := range s.aroundPinned(red, labels, l.paints) {
		show := red.Items[labels[p.label-s.labels.len()].item].Show
		_, marks := show.(Mark)
		in, _ := show.(In)
		s.cover.within(p.lo, p.hi, func(iv interval) bool {
			if s.isMark(iv.label) {
				return true // it was hidden before
			}
			if !marks {
				var was Show // nil: as recorded
				if iv.label != 0 {
					was = s.show(iv.label)
				}
				s.effectInPlace(&e, iv, was, in)
				return true
			}
			e.Tokens += s.tokensIn(iv.lo, iv.hi)
			for i := s.msgAt(iv.lo); i < len(s.msgs) && s.base[i] < iv.hi; i++ {
				if s.base[i] < iv.lo {
					continue
				}
				if len(e.Messages) == 0 {
					e.From = s.times[i]
				}
				e.To = s.times[i]
				e.Messages = append(e.Messages, s.seqs[i])
			}
			return true
		})
	}
	return e, nil
}

// effectInPlace adds to e what showing a text, or nothing, in place of a range of blocks
// hides. was is what the range shows before it.
func (s *State) effectInPlace(e *Effect, iv interval, was Show, in In) {
	before, replaces := was.(In)
	if _, gone := was.(Gone); gone || replaces && before.Text == in.Text {
		return // it changes nothing
	}
	shown := utf8.RuneCountInString(in.Text)
	e.Blocks += iv.hi - iv.lo
	if replaces {
		e.Tokens += (iv.hi - iv.lo) * before.Tokens
		e.Chars += (iv.hi - iv.lo) * max(0, utf8.RuneCountInString(before.Text)-shown)
		return
	}
	e.Tokens += s.tokensIn(iv.lo, iv.hi)
	for ord := iv.lo; ord < iv.hi; ord++ {
		if b := s.block(ord); b != nil {
			chars := utf8.RuneCountInString(b.Text)
			if b.Kind == KindCall {
				chars += utf8.RuneCount(b.Args)
			}
			e.Chars += max(0, chars-shown)
		}
	}
}

// Memo returns what a package keeps with a state in a value of a type of its own:
// something derived from the messages of the path and extended as the path grows, so
// that each message is read once. At first it is the result of create. For a draft,
// create gets the memo of the state that the draft continues, which it must not change,
// and the number of messages that they share; otherwise nil and 0.
func Memo[T any](s *State, create func(original *T, shared int) *T) *T {
	s.begin()
	return memoOf(s.memos, create)
}

// memos are the memos of a state and of the copies of it that have the same
// messages.
type memos struct {
	byType   map[any]any // *T by (*T)(nil)
	original *memos      // of a draft
	messages int         // of the path that the draft continues
}

func memoOf[T any](m *memos, create func(original *T, shared int) *T) *T {
	memo, ok := m.byType[(*T)(nil)].(*T)
	if ok {
		return memo
	}
	var original *T
	if m.original != nil {
		original = memoOf(m.original, create)
	}
	memo = create(original, m.messages)
	if m.byType == nil {
		m.byType = make(map[any]any)
	}
	m.byType[(*T)(nil)] = memo
	return memo
}

// draft returns the memos of a draft that continues so many messages.
func (m *memos) draft(messages int) *memos { return &memos{original: m, messages: messages} }
