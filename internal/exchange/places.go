package exchange

import (
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/gist"
	"github.com/furlhq/furl/protocol"
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

// chainsIn gives the chains of a request's messages.
func chainsIn(req *protocol.Request) []furl.Digest {
	if len(req.Chains) == len(req.Messages) {
		return req.Chains
	}
	return chainsOf(req.Messages)
}

// places indexes a log by the chains of its messages. It grows with the log,
// whatever branch is appended to.
type places struct {
	upto furl.Seq
	ends map[furl.Digest][]furl.Seq // messages that end a chain, ascending
	base []furl.Seq                 // per record: the message it follows, itself if it is one
	tip  map[furl.Seq]furl.Seq      // per message: the newest record after it with none between; 0: of the root
	// cleared tells what the client itself shows in place of results: by
	// which reduction, and what.
	cleared map[furl.Pos]clearing
}

// clearing is a text that the client shows in place of a result.
type clearing struct {
	by   furl.Seq
	text string
}

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
		if !gist.Bare(b) {
			p.ends[r.Chain] = append(p.ends[r.Chain], r.Seq)
		} else if b.HasOwn() {
			break // to its client it is not there: a history goes on after it
		}
		base = r.Seq
	case *furl.Reduction:
		p.clear(r.Seq, b)
	case *furl.Takeover:
		for seq, body := range b.Taken() {
			if red, ok := body.(*furl.Reduction); ok {
				p.clear(seq, red)
			}
		}
	case *furl.Head:
		p.base = append(p.base, base)
		return
	}
	p.base = append(p.base, base)
	p.tip[base] = r.Seq
}

// clear notes what the client itself shows by a reduction.
func (p *places) clear(seq furl.Seq, red *furl.Reduction) {
	if red.Stage != event.StageClient {
		return
	}
	for _, it := range red.Items {
		if in, ok := it.Show.(furl.In); ok && len(it.Spans) == 1 {
			p.cleared[it.Spans[0].First] = clearing{seq, in.Text}
		}
	}
}

// place is where a history goes on.
type place struct {
	matched int      // messages of the history that are in the log
	message furl.Seq // the last of them; 0: none
	at      furl.Seq // the newest record after it with no message between
}

// find gives the place of a history with these chains: after the longest part
// of it that is in the log. Of several places with the same chain the one on
// the current path is meant, else the newest.
func (p *places) find(log *furl.Log, chains []furl.Digest, msgs []furl.Message) place {
	for i := len(chains) - 1; i >= 0; i-- {
		seqs := p.ends[chains[i]]
		if gist.Bare(&msgs[i]) || len(seqs) == 0 {
			continue
		}
		message := onPath(log.State(), seqs)
		return place{i + 1, message, p.tip[message]}
	}
	return place{at: p.root()}
}

// root is where a conversation that shares nothing goes on: at the beginning.
func (p *places) root() furl.Seq { return 0 }

// The ways in which a recorded message may be in a history.
const (
	leftOut   = -1 // not at all: thinking that the client does not send again
	regrouped = -2 // in other messages than it was recorded in, or not at all
)

// pairing says which message of a request each message of a path is.
type pairing struct {
	to    []int // per message of the path
	extra []int // messages of the request that are bare and not on the path
	same  bool  // each is the one at its own index
	own   bool  // some of the path are furl's own, and not in the request
	// reworded are messages of the path that the client has in other blocks.
	reworded map[int]bool
}

// pair pairs the messages of a path with those of a request that ends the same
// chain. Where the client has grouped blocks into other messages, those between
// two common ends are regrouped.
func pair(s *furl.State, chains []furl.Digest, msgs []furl.Message) pairing {
	n := s.Len()
	p := pairing{to: make([]int, n), same: n == len(msgs)}
	i, j := 0, 0
	looked := 0 // nothing of furl's own is between i and here
	for i < n && j < len(msgs) {
		if i >= looked {
			end, own := run(s, i)
			if looked = end; own {
				i, j = p.answered(s, chains, msgs, i, j, end)
				continue
			}
		}
		_, m := s.Message(i)
		// Leading instructions add nothing to a chain either.
		switch x, y := gist.Bare(m) || s.Chain(i+1).IsZero(), gist.Bare(&msgs[j]) || chains[j].IsZero(); {
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
	for i < n {
		end, own := run(s, i)
		if own {
			i, j = p.answered(s, chains, msgs, i, j, end)
			continue
		}
		for end = max(end, i+1); i < end; i++ {
			p.to[i], p.same = leftOut, false
		}
	}
	for ; j < len(msgs); j++ {
		p.extra, p.same = append(p.extra, j), false
	}
	return p
}

// run gives the end of the run of the model's messages, and of furl's answers
// between them, that begins at message i of the path, and whether some of them
// are furl's own: the client has such a run in other messages.
func run(s *furl.State, i int) (end int, own bool) {
	for end = i; end < s.Len(); end++ {
		_, m := s.Message(end)
		ours := m.HasOwn()
		if m.Role != furl.RoleAssistant && !ours {
			break
		}
		own = own || ours
	}
	return end, own
}

// answered steps over such a run and over what the client has of it.
func (p *pairing) answered(s *furl.State, chains []furl.Digest, msgs []furl.Message, i, j, end int) (int, int) {
	for ; i < end; i++ {
		p.to[i] = regrouped
	}
	p.own, p.same = true, false
	for k := j; k < len(msgs); k++ {
		if chains[k] == s.Chain(end) && !gist.Bare(&msgs[k]) {
			return end, k + 1
		}
	}
	return end, j
}

// regroup steps over what is between here and the next common end.
func (p *pairing) regroup(s *furl.State, chains []furl.Digest, msgs []furl.Message, i, j int) (int, int) {
	at := make(map[furl.Digest]int)
	for k := j; k < len(chains); k++ {
		if !gist.Bare(&msgs[k]) {
			at[chains[k]] = k
		}
	}
	for ; i < s.Len(); i++ {
		_, m := s.Message(i)
		p.to[i], p.own = regrouped, p.own || m.HasOwn()
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
				if red, ok := s.Reduction(before.by); !ok || red.Undone {
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
				items = append(items, furl.Item{Spans: []furl.Span{spanOf(pos)}, Show: in})
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
		cleared = &furl.Reduction{Stage: event.StageClient, Reason: "the client shows these results otherwise", Items: items}
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

// spanOf is the span of one block.
func spanOf(p furl.Pos) furl.Span { return furl.Span{First: p, Last: p} }
