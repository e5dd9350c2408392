package session

import (
	"slices"

	"github.com/furlhq/furl"
)

// Clients resend the whole history with each request. This file says where in
// a log a history goes on; it changes nothing and reads no store.

// chainsOf gives the chain of digests at the end of each message.
func chainsOf(msgs []furl.Message) []furl.Digest {
	chains := make([]furl.Digest, len(msgs))
	var chain furl.Digest
	for i := range msgs {
		chain = msgs[i].Extend(chain)
		chains[i] = chain
	}
	return chains
}

// bare reports whether a message adds nothing to a chain: it is empty, or
// thinking and nothing else.
func bare(m *furl.Message) bool {
	for i := range m.Blocks {
		if m.Blocks[i].Kind != furl.KindThinking {
			return false
		}
	}
	return true
}

// places indexes a log by the chains of its messages. It grows with the log,
// whatever branch is appended to.
type places struct {
	upto furl.Seq
	ends map[furl.Digest][]furl.Seq // messages that end a chain, ascending
	base []furl.Seq                 // per record: the message it stands behind, itself if it is one
	tip  map[furl.Seq]furl.Seq      // per message: the newest record behind it with none between; 0: of the root
	// cleared tells what the client itself shows in place of results: by
	// which reduction, and what.
	cleared map[furl.Pos]clearing
}

// clearing is a text that the client shows in place of a result.
type clearing struct {
	by   furl.Seq
	text string
}

// stageClient is the stage of reductions that clients have made in their own
// history.
const stageClient = "client"

func (p *places) follow(log *furl.Log) {
	if p.ends == nil {
		*p = places{
			ends: make(map[furl.Digest][]furl.Seq), base: []furl.Seq{0},
			tip: make(map[furl.Seq]furl.Seq), cleared: make(map[furl.Pos]clearing),
		}
	}
	for _, r := range log.Records(p.upto) {
		p.record(r)
		p.upto = r.Seq
	}
}

func (p *places) record(r furl.Record) {
	base := p.base[r.Parent]
	switch b := r.Body.(type) {
	case *furl.Message:
		base = r.Seq
		if !bare(b) {
			p.ends[r.Chain] = append(p.ends[r.Chain], r.Seq)
		}
	case *furl.Reduction:
		if b.Stage == stageClient {
			for _, it := range b.Items {
				if in, ok := it.Show.(furl.In); ok && len(it.Spans) == 1 {
					p.cleared[it.Spans[0].First] = clearing{r.Seq, in.Text}
				}
			}
		}
	case *furl.Head:
		p.base = append(p.base, base)
		return
	}
	p.base = append(p.base, base)
	p.tip[base] = r.Seq
}

// place is where a history goes on.
type place struct {
	matched int      // messages of the history that are in the log
	message furl.Seq // the last of them; 0: none
	at      furl.Seq // the newest record behind it with no message between
}

// find gives the place of a history with these chains: behind the longest part
// of it that is in the log. Of several places with the same chain the one on
// the current path is meant, else the newest.
func (p *places) find(log *furl.Log, chains []furl.Digest, msgs []furl.Message) place {
	for i := len(chains) - 1; i >= 0; i-- {
		seqs := p.ends[chains[i]]
		if bare(&msgs[i]) || len(seqs) == 0 {
			continue
		}
		message := seqs[len(seqs)-1]
		for _, seq := range slices.Backward(seqs) {
			if _, ok := log.State().Find(seq); ok {
				message = seq
				break
			}
		}
		return place{i + 1, message, p.tip[message]}
	}
	return place{at: p.root()}
}

// root is where a conversation that shares nothing goes on: at the beginning.
func (p *places) root() furl.Seq { return 0 }

// The ways in which a recorded message may stand in a history.
const (
	leftOut   = -1 // not at all: thinking that the client does not send again
	regrouped = -2 // in other messages than it was recorded in
)

// pairing says which message of a request each message of a path is.
type pairing struct {
	to    []int // per message of the path
	extra []int // messages of the request that are bare and not on the path
	same  bool  // each is the one at its own index
}

// pair pairs the messages of a path with those of a request that ends the same
// chain. Where the client has grouped blocks into other messages, those between
// two common ends are regrouped.
func pair(s *furl.State, chains []furl.Digest, msgs []furl.Message) pairing {
	n := s.Len()
	p := pairing{to: make([]int, n), same: n == len(msgs)}
	i, j := 0, 0
	for i < n && j < len(msgs) {
		_, m := s.Message(i)
		switch x, y := bare(m), bare(&msgs[j]); {
		case x && !y:
			p.to[i] = leftOut
			i++
			p.same = false
			continue
		case y && !x:
			p.extra = append(p.extra, j)
			j++
			p.same = false
			continue
		}
		if s.Chain(i+1) == chains[j] {
			p.to[i] = j
			p.same = p.same && i == j
			i, j = i+1, j+1
			continue
		}
		p.same = false
		i, j = p.regroup(s, chains, msgs, i, j)
	}
	for ; i < n; i++ {
		p.to[i], p.same = leftOut, false
	}
	for ; j < len(msgs); j++ {
		p.extra, p.same = append(p.extra, j), false
	}
	return p
}

// regroup steps over what stands between here and the next common end.
func (p *pairing) regroup(s *furl.State, chains []furl.Digest, msgs []furl.Message, i, j int) (int, int) {
	at := make(map[furl.Digest]int)
	for k := j; k < len(chains); k++ {
		if !bare(&msgs[k]) {
			at[chains[k]] = k
		}
	}
	for ; i < s.Len(); i++ {
		p.to[i] = regrouped
		if k, ok := at[s.Chain(i+1)]; ok {
			return i + 1, k + 1
		}
	}
	return i, len(msgs)
}

// changes gives the results that the client shows otherwise than they were
// recorded, and otherwise than it did before: what it cleared, and the
// reductions by which it had cleared what it now sends as recorded again.
func (p *places) changes(s *furl.State, pairs pairing, msgs []furl.Message, c furl.Counter) (cleared *furl.Reduction, again []furl.Seq) {
	var items []furl.Item
	kept := make(map[furl.Seq]bool)  // reductions of which something still shows
	whole := make(map[furl.Seq]bool) // and those of which something came back
	for i, j := range pairs.to {
		if j < 0 {
			continue
		}
		seq, was := s.Message(i)
		for k := range was.Blocks {
			b := &was.Blocks[k]
			if b.Kind != furl.KindResult {
				continue
			}
			now := result(&msgs[j], b.ID)
			if now == nil {
				continue
			}
			pos := furl.Pos{Msg: seq, Block: k}
			before, was := p.cleared[pos]
			if was {
				if _, lifted, ok := s.Reduction(before.by); !ok || lifted {
					was = false
				}
			}
			switch {
			case sameResult(b, now):
				if was {
					whole[before.by] = true
				}
			case was && before.text == now.Text:
				kept[before.by] = true
			default:
				in := furl.InPlace(b, now.Text, c)
				in.Note = "changed by the client"
				items = append(items, furl.Item{Spans: []furl.Span{At(pos)}, Show: in})
			}
		}
	}
	for by := range whole {
		if !kept[by] {
			again = append(again, by)
		}
	}
	slices.Sort(again)
	if len(items) > 0 {
		cleared = &furl.Reduction{Stage: stageClient, Reason: "the client shows these results otherwise", Items: items}
	}
	return cleared, again
}

// result finds the result of a call in a message.
func result(m *furl.Message, id string) *furl.Block {
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Kind == furl.KindResult && b.ID == id {
			return b
		}
	}
	return nil
}

// sameResult reports whether two results of one call say the same.
func sameResult(a, b *furl.Block) bool {
	return a.Text == b.Text && slices.EqualFunc(a.Media, b.Media, func(x, y furl.Media) bool { return x.Digest == y.Digest })
}

// same reports whether two messages say the same, thinking aside.
func same(a, b *furl.Message) bool {
	if a.Digest != b.Digest || len(a.Blocks) != len(b.Blocks) {
		return false
	}
	for i := range a.Blocks {
		x, y := &a.Blocks[i], &b.Blocks[i]
		if x.Kind != y.Kind || x.Kind == furl.KindResult && !sameResult(x, y) {
			return false
		}
	}
	return true
}

// takeover gives what a new branch takes over from the path it leaves: its
// active reductions, and what was opened, kept and pinned there, as far as all
// blocks that they name recur unchanged on the new path. old is the path that
// is left, s the new one, of which the first shared messages are the old's own.
func takeover(log *furl.Log, old []furl.Record, s *furl.State, shared furl.Seq) []furl.Body {
	r := recurring(old, s, shared)
	lifted := make(map[furl.Seq]bool)
	for _, rec := range old {
		if res, ok := rec.Body.(*furl.Restoration); ok && res.Of != 0 {
			lifted[res.Of] = true
		}
	}
	var out []furl.Body
	for _, rec := range old {
		if r.onPath(rec.Seq) {
			continue
		}
		switch b := rec.Body.(type) {
		case *furl.Reduction:
			if lifted[rec.Seq] || b.Stage == stageClient {
				continue // what the client itself changed it shows again
			}
			items, ok := r.items(b.Items)
			if !ok {
				continue
			}
			red := *b
			red.Items, red.Copy = items, rec.Seq
			out = append(out, &red)
		case *furl.Restoration:
			if spans, ok := r.spans(b.Spans); ok && b.Of == 0 {
				out = append(out, &furl.Restoration{Open: b.Open, Spans: spans, Hold: b.Hold})
			}
		}
	}
	return out
}

// recurrence maps messages of an old path to the same ones on a new path.
type recurrence struct {
	s   *furl.State
	to  map[furl.Seq]furl.Seq // by record
	old map[furl.Seq]int      // index among the messages of the old path
	cut furl.Seq              // records of the old path up to here are on the new one
}

func (r *recurrence) onPath(seq furl.Seq) bool { return seq <= r.cut }

// recurring finds, in order, which messages of the old path are on the new.
func recurring(old []furl.Record, s *furl.State, shared furl.Seq) *recurrence {
	r := &recurrence{s: s, to: make(map[furl.Seq]furl.Seq), old: make(map[furl.Seq]int), cut: shared}
	at := 0
	if i, ok := s.Find(lastMessage(old, shared)); ok {
		at = i + 1
	}
	fresh := make(map[furl.Digest][]int) // messages of the new path alone
	for i := at; i < s.Len(); i++ {
		_, m := s.Message(i)
		fresh[m.Digest] = append(fresh[m.Digest], i)
	}
	n := 0
	for _, rec := range old {
		m, ok := rec.Body.(*furl.Message)
		if !ok {
			continue
		}
		r.old[rec.Seq] = n
		n++
		if rec.Seq <= shared {
			r.to[rec.Seq] = rec.Seq
			continue
		}
		for list := fresh[m.Digest]; len(list) > 0; list = fresh[m.Digest] {
			i := list[0]
			fresh[m.Digest] = list[1:]
			if seq, now := s.Message(i); i >= at && same(m, now) {
				r.to[rec.Seq], at = seq, i+1
				break
			}
		}
	}
	return r
}

// lastMessage is the newest message of a path at or before a record.
func lastMessage(path []furl.Record, upto furl.Seq) furl.Seq {
	var last furl.Seq
	for _, rec := range path {
		if rec.Seq > upto {
			break
		}
		if _, ok := rec.Body.(*furl.Message); ok {
			last = rec.Seq
		}
	}
	return last
}

func (r *recurrence) items(items []furl.Item) ([]furl.Item, bool) {
	out := make([]furl.Item, len(items))
	for i, it := range items {
		spans, ok := r.spans(it.Spans)
		if !ok {
			return nil, false
		}
		out[i] = furl.Item{Spans: spans, Show: it.Show}
	}
	return out, true
}

// spans carries spans over: of each, all messages must recur one behind the
// other.
func (r *recurrence) spans(spans []furl.Span) ([]furl.Span, bool) {
	out := make([]furl.Span, len(spans))
	for i, sp := range spans {
		first, ok1 := r.to[sp.First.Msg]
		last, ok2 := r.to[sp.Last.Msg]
		if !ok1 || !ok2 {
			return nil, false
		}
		a, _ := r.s.Find(first)
		b, _ := r.s.Find(last)
		if b-a != r.old[sp.Last.Msg]-r.old[sp.First.Msg] {
			return nil, false
		}
		out[i] = furl.Span{First: furl.Pos{Msg: first, Block: sp.First.Block}, Last: furl.Pos{Msg: last, Block: sp.Last.Block}}
	}
	return out, len(spans) > 0
}
