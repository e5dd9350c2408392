package main

import (
	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/internal/fidelity"
	"github.com/furlhq/furl/transcript"
)

// future is what the oracle knows of a recorded session before it starts.
type future struct {
	requests []request
	messages map[*furl.Message]*message
	// Of the requests without reductions: the tokens of the prompt, those that were
	// read from the cache, and those of messages that no earlier request had.
	prompt, read, fresh []int
	models              []furl.Model
	prompts             [][]prompt // by candidate
	// floor is filled in by the oracle's plans.
	floor saving
}

// request is one recorded request.
type request struct {
	// names are the identifiers that the reply uses.
	names []name
	// segment is the segment of the session that it belongs to.
	segment *segment
}

// name is an identifier that a reply uses, and the blocks that have it.
type name struct {
	text    string
	holders []place
}

type place struct {
	msg   *furl.Message
	block int
}

// message is what the oracle knows of a message of the session.
type message struct {
	first int // the first request that has it
	// needed is the last request whose reply needs lines that the oracle keeps in
	// this block, by block; -1: none.
	needed []int
}

// segment is a part of a session in which each request extends the previous one.
// A rewind or a compaction by the agent starts the next segment.
type segment struct {
	from, to int // its first request, and the first of the next segment
	units    []unit
}

// unit is a unit of the path at the end of a segment.
type unit struct {
	index    int // of its first message on the path
	first    int // the first request that has it
	next     int // the first request that has a newer step
	spoken   int // the first request that has newer words of the user
	kind     furl.UnitKind
	messages []*furl.Message
	blocks   []place
	calls    bool
}

// never is a request after the last one.
const never = 1 << 30

// learn goes over a recorded session once.
func learn(rec *transcript.Session) (*future, error) {
	l := learner{log: rec.Log, state: new(furl.State), future: &future{messages: make(map[*furl.Message]*message)}}
	for seq := furl.Seq(1); int(seq) <= rec.Log.Len(); seq++ {
		if err := l.record(rec.Log.At(seq)); err != nil {
			return nil, err
		}
	}
	l.endSegment()
	l.keepLines()
	return l.future, nil
}

// learner applies the records of a recording one by one.
type learner struct {
	*future
	log   *furl.Log
	state *furl.State
	path  []*furl.Message
	track fidelity.Tracker
	seen  fidelity.Seen
	lines [][]name // by request
	seg   *segment
	view  *furl.View // of the newest request
}

func (l *learner) record(r furl.Record) error {
	switch b := r.Body.(type) {
	case *furl.Message:
		l.add(b)
	case *furl.Exchange:
		l.request(r.Seq, b)
	case *furl.Head:
		l.endSegment()
		return l.rewind(r.Parent)
	default:
		l.endSegment()
	}
	return l.state.Apply(r)
}

func (l *learner) add(m *furl.Message) {
	l.track.Add(m)
	l.path = append(l.path, m)
	if l.messages[m] == nil {
		needed := make([]int, len(m.Blocks))
		for i := range needed {
			needed[i] = -1
		}
		l.messages[m] = &message{first: len(l.requests), needed: needed}
	}
}

// rewind continues from an earlier record.
func (l *learner) rewind(to furl.Seq) error {
	l.state = new(furl.State)
	for _, r := range l.log.Path(to) {
		if err := l.state.Apply(r); err != nil {
			return err
		}
	}
	shared := 0
	for shared < min(len(l.path), l.state.Len()) {
		if _, m := l.state.Message(shared); m != l.path[shared] {
			break
		}
		shared++
	}
	l.track.Truncate(shared)
	l.path = l.path[:shared]
	for i := shared; i < l.state.Len(); i++ {
		_, m := l.state.Message(i)
		l.add(m)
	}
	return nil
}

func (l *learner) request(seq furl.Seq, ex *furl.Exchange) {
	if l.seg == nil {
		l.seg = &segment{from: len(l.requests)}
	}
	model, _ := catalog.Default().Lookup(ex.Model)
	l.view = l.state.View(model)
	var reply []*furl.Message
	for seq++; int(seq) <= l.log.Len(); seq++ {
		m, ok := l.log.At(seq).Body.(*furl.Message)
		if !ok || m.Role != furl.RoleAssistant {
			break
		}
		reply = append(reply, m)
	}
	l.seen.Look(l.track.Reply(reply...), l.view)
	used := l.seen.Reply() // what the recorded agent could see
	q := request{segment: l.seg}
	for _, ref := range used.Refs {
		q.names = append(q.names, name{ref.Name, l.places(used.Holders(ref))})
	}
	var lines []name
	for _, line := range used.Lines {
		lines = append(lines, name{line.Text, l.places(used.LineHolders(line))})
	}
	for _, edit := range used.Edits {
		for _, line := range edit.Lines {
			lines = append(lines, name{line.Text, l.places(used.LineHolders(line))})
		}
	}
	l.lines = append(l.lines, lines)
	l.requests = append(l.requests, q)
}

// places returns the blocks that have something and that the recorded agent could see.
func (l *learner) places(holders func(yield func(int, int) bool)) []place {
	var list []place
	for msg, block := range holders {
		if !l.seen.Shown(msg, block) { // the agent itself has hidden it
			continue
		}
		list = append(list, place{l.path[msg], block})
	}
	return list
}

// endSegment lists the units of the path as of the newest request.
func (l *learner) endSegment() {
	if l.seg == nil {
		return
	}
	l.seg.to = len(l.requests)
	step, user := never, never // the first requests that have a newer one
	units := make([]unit, len(l.view.Units))
	for i := len(units) - 1; i >= 0; i-- {
		vu := &l.view.Units[i]
		u := unit{index: -1, kind: vu.Kind, next: step, spoken: user}
		for j := vu.First; j <= vu.Last; j++ {
			if sh := &l.view.Messages[j]; sh.Index >= 0 {
				if u.index < 0 {
					u.index = sh.Index
				}
				u.messages = append(u.messages, sh.Msg)
				u.first = max(u.first, l.messages[sh.Msg].first)
			}
		}
		for j := range vu.Blocks {
			sb := &vu.Blocks[j]
			if at, ok := l.view.State.Find(sb.Pos.Msg); ok && sb.Pos.Msg != 0 {
				_, m := l.view.State.Message(at)
				u.blocks = append(u.blocks, place{m, sb.Pos.Block})
				u.calls = u.calls || sb.Block.Kind == furl.KindCall
			}
		}
		switch u.kind {
		case furl.UnitStep:
			step = u.first
		case furl.UnitUser:
			user = u.first
		}
		units[i] = u
	}
	l.seg.units = units
	l.seg = nil
}

// keepLines chooses a block for each line that a reply needs: one that is kept
// until then or longer anyway, else the one that costs least to keep.
func (l *learner) keepLines() {
	for n := len(l.lines) - 1; n >= 0; n-- {
		for most := 1; most <= maxHolders; most *= 4 { // those with few holders first
			for _, line := range l.lines[n] {
				if len(line.holders) <= most || most*4 > maxHolders {
					l.keepLine(n, line.holders)
				}
			}
		}
	}
}

const maxHolders = 16

func (l *learner) keepLine(n int, holders []place) {
	best, least := -1, 0
	for i, h := range holders {
		m := l.messages[h.msg]
		if m.needed[h.block] >= n || h.msg.Role == furl.RoleUser && !h.msg.Blocks[h.block].IsResult() {
			return // visible then
		}
		b := &h.msg.Blocks[h.block]
		size := len(b.Text) + len(b.Args) + 40
		if cost := size * (n - m.first + 1); best < 0 || cost < least {
			best, least = i, cost
		}
	}
	if best >= 0 {
		l.messages[holders[best].msg].needed[holders[best].block] = n
	}
}

// hideFrom returns the first request in which the oracle may hide a block of a
// unit.
func (f *future) hideFrom(u *unit, p place) int {
	m := f.messages[p.msg]
	return max(u.next, m.first+1, m.needed[p.block]+1)
}

// foldFrom returns the first request in which the oracle may hide a step.
func (f *future) foldFrom(u *unit, b *furl.Budget, early bool) int {
	from := u.next
	if !early && b.Model.Thinking.LastOnly {
		from = u.spoken
	}
	if !u.calls {
		return never
	}
	for _, p := range u.blocks {
		from = max(from, f.hideFrom(u, p))
	}
	return from
}
