package exchange

import (
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/fingerprint"
	"github.com/furlhq/furl/protocol"
)

// Clients resend the whole history with each request. This file finds where in a
// log a history continues, and pairs the messages of the two. It changes nothing
// and does not read the store.

// chainsOf returns the chain of digests at the end of each message.
func chainsOf(msgs []furl.Message) []furl.Digest {
	chains := make([]furl.Digest, len(msgs))
	var chain furl.Digest
	for i := range msgs {
		chain = msgs[i].Extend(chain)
		chains[i] = chain
	}
	return chains
}

// chainsIn returns the chains of a request's messages.
func chainsIn(req *protocol.Request) []furl.Digest {
	if len(req.Chains) == len(req.Messages) {
		return req.Chains
	}
	return chainsOf(req.Messages)
}

// places is an index of a log by the chains of its messages. It covers all
// branches.
type places struct {
	upto furl.Seq                   // last indexed record
	ends map[furl.Digest][]furl.Seq // the messages at the end of a chain, ascending
	base []furl.Seq                 // by record: the last message up to it on its path
	tip  map[furl.Seq]furl.Seq      // by message, 0 for the root: the last record that follows it without another message
	// cleared are the texts that the client sends in place of recorded results.
	cleared map[furl.Pos]clearing
}

// clearing is a text that the client sends in place of a result, and the reduction
// that records it.
type clearing struct {
	by   furl.Seq
	text string
}

// follow adds the records of a log that are not indexed yet.
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
		if !fingerprint.AddsNothing(b) {
			p.ends[r.Chain] = append(p.ends[r.Chain], r.Seq)
		} else if b.HasOwn() {
			break // the client does not have it, so histories continue before it
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

// clear indexes the results that the client has changed by a reduction.
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

// place is a position in a log where a history continues.
type place struct {
	matched int      // number of messages of the history that are in the log
	message furl.Seq // the last of them; 0: none
	at      furl.Seq // the last record that follows it without another message
}

// find returns the position after the longest part of a history that is in the log.
// If several messages have the same chain, it prefers one on the current path, else
// the newest.
func (p *places) find(log *furl.Log, chains []furl.Digest, msgs []furl.Message) place {
	for i := len(chains) - 1; i >= 0; i-- {
		seqs := p.ends[chains[i]]
		if fingerprint.AddsNothing(&msgs[i]) || len(seqs) == 0 {
			continue
		}
		message := onPath(log.State(), seqs)
		return place{i + 1, message, p.tip[message]}
	}
	return place{at: p.root()}
}

// root is the position of a history that has nothing in common with the log.
func (p *places) root() furl.Seq { return 0 }

// Values of pairing.to for messages without a counterpart.
const (
	leftOut   = -1 // the client does not send it, such as thinking
	regrouped = -2 // the client has it in other messages, or not at all
)

// pairing maps the messages of a path to those of a request.
type pairing struct {
	to    []int // by message of the path: the index in the request, or leftOut or regrouped
	extra []int // messages of the request without content that are not on the path
	same  bool  // the mapping is the identity
	own   bool  // the path has messages with Own set, which are not in the request
	// reworded are the messages of the path that the client has with other blocks.
	reworded map[int]bool
}

// pair maps the messages of a path to those of a request with the same chain at its
// end. Where the client has grouped blocks into messages differently, the messages
// between two common chains are regrouped.
func pair(s *furl.State, chains []furl.Digest, msgs []furl.Message) pairing {
	n := s.Len()
	p := pairing{to: make([]int, n), same: n == len(msgs)}
	i, j := 0, 0
	looked := 0 // no message with Own set is between i and looked
	for i < n && j < len(msgs) {
		if i >= looked {
			end, own := run(s, i)
			if looked = end; own {
				i, j = p.answered(s, chains, msgs, i, j, end)
				continue
			}
		}
		_, m := s.Message(i)
		// Leading instructions do not extend a chain either.
		switch x, y := fingerprint.AddsNothing(m) || s.Chain(i+1).IsZero(), fingerprint.AddsNothing(&msgs[j]) || chains[j].IsZero(); {
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

// run returns the end of the run of assistant messages and recall results that
// starts at message i of the path. own is set if some of them have Own set; the
// client has such a run in other messages.
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

// answered skips such a run on the path and its counterpart in the request.
func (p *pairing) answered(s *furl.State, chains []furl.Digest, msgs []furl.Message, i, j, end int) (int, int) {
	for ; i < end; i++ {
		p.to[i] = regrouped
	}
	p.own, p.same = true, false
	for k := j; k < len(msgs); k++ {
		if chains[k] == s.Chain(end) && !fingerprint.AddsNothing(&msgs[k]) {
			return end, k + 1
		}
	}
	return end, j
}

// regroup skips the messages up to the next common chain.
func (p *pairing) regroup(s *furl.State, chains []furl.Digest, msgs []furl.Message, i, j int) (int, int) {
	at := make(map[furl.Digest]int)
	for k := j; k < len(chains); k++ {
		if !fingerprint.AddsNothing(&msgs[k]) {
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

// changes returns the results that the client has changed since the last request:
// a reduction for those it now sends differently, and the earlier reductions for
// those it now sends as recorded again.
func (p *places) changes(s *furl.State, pairs pairing, msgs []furl.Message, c furl.Counter) (cleared *furl.Reduction, again []furl.Seq) {
	var items []furl.Item
	kept := make(map[furl.Seq]bool)  // reductions with results that are still changed
	whole := make(map[furl.Seq]bool) // reductions with results that are as recorded again
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
		cleared = &furl.Reduction{Stage: event.StageClient, Reason: "the client changed these results", Items: items}
	}
	return cleared, again
}

// result returns the result of a call in a message, nil if there is none.
func result(m *furl.Message, id string) *furl.Block {
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Kind == furl.KindResult && b.ID == id {
			return b
		}
	}
	return nil
}

// sameResult reports whether two results of a call have the same content.
func sameResult(a, b *furl.Block) bool {
	return a.Text == b.Text && slices.EqualFunc(a.Media, b.Media, func(x, y furl.Media) bool { return x.Digest == y.Digest })
}

// same reports whether two messages have the same content apart from thinking.
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

// spanOf returns the span of one block.
func spanOf(p furl.Pos) furl.Span { return furl.Span{First: p, Last: p} }
