package furl

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
	"time"
)

// Takeover applies the reductions and restorations of another branch to this
// one, without repeating them: each one made after the last common record, if
// all messages it names are on this branch. Undone reductions and what cannot
// be applied are left out.
type Takeover struct {
	// Branch is the last record of the other branch.
	Branch Seq
	// Moved maps messages that have other numbers on this branch.
	Moved []Moved

	taken    []taken // set by the Log that has the record
	resolved bool
}

// Moved says that Messages messages from Old on another branch are those from
// New on this one.
type Moved struct {
	Old, New Seq
	Messages int
}

func (*Takeover) body() {}

// taken is a reduction or restoration of another branch with the spans that it
// has on this one.
type taken struct {
	seq  Seq
	at   time.Time
	by   Actor
	body Body
}

// Taken returns the reductions and restorations that may apply on the path by
// this record, in order, with their spans there. State.Reductions tells which
// do. A record that is not from a Log has none.
func (t *Takeover) Taken() iter.Seq2[Seq, Body] {
	return func(yield func(Seq, Body) bool) {
		for _, k := range t.taken {
			if !yield(k.seq, k.body) {
				return
			}
		}
	}
}

// Equal reports whether two takeovers say the same, whatever log has them. Tests
// that compare records with go-cmp find it.
func (t *Takeover) Equal(o *Takeover) bool {
	return t == o || t != nil && o != nil && t.Branch == o.Branch && slices.Equal(t.Moved, o.Moved)
}

// Takeover returns a body that, appended to the head, applies the reductions
// and restorations of the branch that ends at a record. It returns nil if there
// are none.
func (l *Log) Takeover(branch Seq, moved []Moved) (*Takeover, error) {
	t, err := l.resolve(&Takeover{Branch: branch, Moved: moved}, l.head)
	if err != nil {
		return nil, err
	}
	state, err := l.state.with(Record{Seq: Seq(len(l.records) + 1), Parent: l.head, Body: t})
	if err != nil {
		return nil, err
	}
	if state.layers.len() == l.state.layers.len() && state.undone() == l.state.undone() && slices.Equal(state.holds, l.state.holds) {
		return nil, nil
	}
	return t, nil
}

// undone counts the reductions that were undone.
func (s *State) undone() (n int) {
	for i := range s.layers.len() {
		if s.layers.at(i).lifted {
			n++
		}
	}
	return n
}

// resolved gives the body that the log keeps for a record with this parent.
func (l *Log) resolved(body Body, parent Seq) (Body, error) {
	if t, ok := body.(*Takeover); ok {
		return l.resolve(t, parent)
	}
	return body, nil
}

// resolve finds what a takeover takes over. All records before it must be in
// the log. The cost is that of the two branches after the last record they
// share.
func (l *Log) resolve(t *Takeover, parent Seq) (*Takeover, error) {
	if t.Branch == 0 || t.Branch > Seq(len(l.records)) {
		return nil, fmt.Errorf("take over branch %d: %w", t.Branch, ErrNotOnPath)
	}
	if _, ok := l.records[t.Branch-1].Body.(*Head); ok {
		return nil, fmt.Errorf("take over branch %d: it is a rewind: %w", t.Branch, ErrNotOnPath)
	}
	shared := l.shared(t.Branch, parent)
	c := carrier{shared: shared, old: l.messages(t.Branch, shared)}
	var err error
	if c.to, err = movedTo(c.old, l.messages(parent, shared), t.Moved); err != nil {
		return nil, fmt.Errorf("take over branch %d: %w", t.Branch, err)
	}
	return &Takeover{Branch: t.Branch, Moved: t.Moved, taken: c.carry(l.layersOf(t.Branch, shared)), resolved: true}, nil
}

// shared is the last record that the paths to a and b have in common, 0 for
// none.
func (l *Log) shared(a, b Seq) Seq {
	for a != b {
		if a > b {
			a = l.records[a-1].Parent
		} else {
			b = l.records[b-1].Parent
		}
	}
	return a
}

// messages gives the messages of the path to a record that come after the
// record shared on it.
func (l *Log) messages(end, shared Seq) []Seq {
	var list []Seq
	for seq := end; seq != shared; seq = l.records[seq-1].Parent {
		if _, ok := l.records[seq-1].Body.(*Message); ok {
			list = append(list, seq)
		}
	}
	slices.Reverse(list)
	return list
}

// layersOf gives the reductions and restorations of the path to a record that
// come after the record shared on it, with those taken over there.
func (l *Log) layersOf(end, shared Seq) []taken {
	var parts [][]taken
	for seq := end; seq != shared; seq = l.records[seq-1].Parent {
		switch r := l.records[seq-1]; b := r.Body.(type) {
		case *Reduction, *Restoration:
			parts = append(parts, []taken{{r.Seq, r.At, r.By, b}})
		case *Takeover:
			parts = append(parts, b.taken)
		}
	}
	if len(parts) == 1 {
		return parts[0] // branch after branch may take over the same
	}
	slices.Reverse(parts)
	return slices.Concat(parts...)
}

// movedMessage is a message on two branches: its number on this one, and its
// index among the messages that come after the shared record on each.
type movedMessage struct {
	seq         Seq
	index, here int
}

// movedTo maps the messages of one branch to those of another.
func movedTo(old, now []Seq, moved []Moved) (map[Seq]movedMessage, error) {
	to := make(map[Seq]movedMessage)
	nextOld, nextNew := 0, 0
	for _, m := range moved {
		i, ok1 := slices.BinarySearch(old, m.Old)
		j, ok2 := slices.BinarySearch(now, m.New)
		switch {
		case !ok1 || !ok2:
			return nil, fmt.Errorf("message %d as %d: %w", m.Old, m.New, ErrNotOnPath)
		case i < nextOld || j < nextNew:
			return nil, fmt.Errorf("message %d as %d: not in the order of the branches", m.Old, m.New)
		case m.Messages < 1 || m.Messages > len(old)-i || m.Messages > len(now)-j:
			return nil, fmt.Errorf("message %d as %d: %d messages: %w", m.Old, m.New, m.Messages, ErrNotOnPath)
		}
		for k := range m.Messages {
			to[old[i+k]] = movedMessage{seq: now[j+k], index: i + k, here: j + k}
		}
		nextOld, nextNew = i+m.Messages, j+m.Messages
	}
	return to, nil
}

// carrier carries reductions and restorations from one branch to another.
type carrier struct {
	shared Seq   // messages up to here are on both
	old    []Seq // messages of the other branch that come after it
	to     map[Seq]movedMessage
}

func (c *carrier) carry(list []taken) []taken {
	undone := make(map[Seq]bool)
	of := make(map[Seq]*Reduction) // that come after the shared record
	for _, k := range list {
		switch b := k.body.(type) {
		case *Reduction:
			of[k.seq] = b
		case *Restoration:
			undone[b.Of] = true
		}
	}
	var out []taken
	same := true
	for _, k := range list {
		body, ok := c.carried(k, undone, of)
		if same = same && ok && body == k.body; !ok {
			continue
		}
		k.body = body
		out = append(out, k)
	}
	if same {
		return list
	}
	return slices.Clip(out)
}

// carried gives what a reduction or restoration is on this branch; false if it
// does not hold here.
func (c *carrier) carried(k taken, undone map[Seq]bool, of map[Seq]*Reduction) (Body, bool) {
	switch b := k.body.(type) {
	case *Reduction:
		if undone[k.seq] {
			return nil, false
		}
		return c.reduction(b)
	case *Restoration:
		return c.restoration(b, of[b.Of])
	}
	return nil, false
}

// reduction gives a reduction with its spans on this branch; false if some of
// what it names is not there.
func (c *carrier) reduction(red *Reduction) (*Reduction, bool) {
	items, changed := make([]Item, len(red.Items)), false
	for i, it := range red.Items {
		spans, moved, ok := c.spans(it.Spans)
		if !ok {
			return nil, false
		}
		items[i], changed = Item{Spans: spans, Show: it.Show}, changed || moved
	}
	if !changed {
		return red, true
	}
	here := *red
	here.Items = items
	return &here, true
}

// restoration gives what a restoration means on this branch. Of is the
// reduction that it undoes, if that is not shared and so is not taken over: its
// undo has no more to say than that the blocks are kept.
func (c *carrier) restoration(res *Restoration, of *Reduction) (*Restoration, bool) {
	if res.Of != 0 && of == nil {
		return res, true
	}
	named, hold := res.Spans, res.Hold
	if of != nil {
		named = nil
		for _, it := range of.Items {
			named = append(named, it.Spans...)
		}
		if hold == 0 {
			hold = Keep
		}
	}
	spans, moved, ok := c.spans(named)
	if !ok || len(spans) == 0 {
		return nil, false
	}
	if of == nil && !moved {
		return res, true
	}
	return &Restoration{Open: res.Open && of == nil, Spans: spans, Hold: hold}, true
}

// spans gives spans on this branch. All messages of each must be there, one
// right after the other. Moved tells whether any has other numbers.
func (c *carrier) spans(spans []Span) (out []Span, moved, ok bool) {
	out = slices.Clone(spans)
	for i := range out {
		sp := &out[i]
		if sp.Last.Msg <= c.shared {
			continue
		}
		last, ok := c.to[sp.Last.Msg]
		if !ok {
			return nil, false, false
		}
		from, here := 0, 0 // the first message of the span after the shared record
		if sp.First.Msg > c.shared {
			first, ok := c.to[sp.First.Msg]
			if !ok {
				return nil, false, false
			}
			sp.First.Msg, from, here = first.seq, first.index, first.here
		}
		for k := from; k <= last.index; k++ {
			if m, ok := c.to[c.old[k]]; !ok || m.here-here != k-from {
				return nil, false, false
			}
		}
		sp.Last.Msg = last.seq
		moved = moved || *sp != spans[i]
	}
	return out, moved, true
}

// addTakeover applies what a takeover takes over, as far as it holds here.
func (s *State) addTakeover(r Record, t *Takeover) error {
	if !t.resolved {
		return errors.New("a takeover can be applied only as its log has it")
	}
	s.taken = true
	for _, k := range t.taken {
		k := Record{Seq: k.seq, At: k.at, By: k.by, Body: k.body}
		switch b := k.Body.(type) {
		case *Reduction:
			if _, ok := s.layer(k.Seq); !ok {
				_ = s.addReduction(k, b) // what cannot be hidden here is shown
			}
		case *Restoration:
			i, ok := s.layer(b.Of)
			if b.Of != 0 && (!ok || s.layers.at(i).lifted) || s.has(k.Seq) {
				continue
			}
			_ = s.addRestoration(k, b)
		}
	}
	s.lastEdit = r.Seq
	return nil
}

// has reports whether a record that is not a message is on the path itself.
func (s *State) has(seq Seq) bool {
	n := s.passed.len()
	i := sort.Search(n, func(i int) bool { return *s.passed.at(i) >= seq })
	return i < n && *s.passed.at(i) == seq
}
