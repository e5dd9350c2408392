package exchange

import (
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/fingerprint"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/protocol"
)

// Clients resend the whole history with each request. This file finds where in a
// log a history continues, and pairs the messages of the two. It changes nothing
// and does not read the store.

// chainsOf returns the chain of digests at the end of each message.
func chainsOf(msgs []furl.Message) []furl.Digest {
	chains := make([]furl.Digest, len(msgs))
	for i := range msgs {
		chains[i] = furl.ChainAt(msgs, chains, i)
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

// position is a position in a log where a history continues.
type position struct {
	matched     int      // number of messages of the history that are in the log
	lastMatched furl.Seq // the last of them; 0: none
	head        furl.Seq // the last record that follows it without another message
}

// find returns the position after the longest part of a history that is in the log.
// If several messages have the same chain, it prefers one on the current path, else
// the newest.
func find(c *open.Change, chains []furl.Digest, msgs []furl.Message) position {
	index := c.Index()
	for i := len(chains) - 1; i >= 0; i-- {
		seqs := index.ByChain[chains[i]]
		if fingerprint.AddsNothing(&msgs[i]) || len(seqs) == 0 {
			continue
		}
		message := onPath(c.Log().State(), seqs)
		return position{i + 1, message, index.LastRecord[message]}
	}
	return position{} // it has nothing in common with the log
}

// Values of pairing.to for messages without a counterpart.
const (
	notSent   = -1 // the client does not send it, such as thinking
	regrouped = -2 // the client has it in other messages, or not at all
)

// pairing maps the messages of a path to those of a request.
type pairing struct {
	to         []int // by message of the path: the index in the request, or notSent or regrouped
	unrecorded []int // messages of the request without content that are not on the path
	identity   bool  // the mapping is the identity
	hasOwn     bool  // the path has messages with Own set, which are not in the request
	// reworded are the messages of the path that the client has with other blocks or
	// texts.
	reworded map[int]bool
	// mark is the reduction that records a compaction by the provider; 0: none. The
	// first start messages of the request are sent in its place.
	mark  furl.Seq
	start int
	// gap are the messages of the path that the client leaves out or replaces, and
	// filled the messages of the request in their place.
	gap, filled span
}

// fills reports whether the request has its message j in place of others.
func (p *pairing) fills(j int) bool { return p.filled.from <= j && j < p.filled.to }

// pair maps the messages of a path to those of a request with the same chain at its
// end. Where the client has grouped blocks into messages differently, the messages
// between two common chains are regrouped.
func pair(s *furl.State, in *incoming) pairing {
	chains, msgs, f := in.chains, in.req.Messages, in.front
	n := s.Len()
	p := pairing{to: make([]int, n), identity: n == len(msgs)}
	i, j := p.pairCompaction(s, in)
	looked := 0 // no message with Own set is between i and looked
	for i < n && j < len(msgs) {
		if f != nil && j == f.from && s.Chain(i) == f.after && !s.Chain(i+1).IsZero() {
			if end := p.skipGap(s, f, i); end > i {
				i, j, f = end, f.to, nil
				continue
			}
			f = nil // it is on another branch
		}
		if i >= looked {
			end, own := assistantRun(s, i)
			if looked = end; own {
				i, j = p.skipOwnRun(s, chains, msgs, i, j, end)
				continue
			}
		}
		_, m := s.Message(i)
		// Leading instructions do not extend a chain either.
		switch x, y := fingerprint.AddsNothing(m) || s.Chain(i+1).IsZero(), fingerprint.AddsNothing(&msgs[j]) || chains[j].IsZero(); {
		case x && !y:
			p.to[i] = notSent
			i++
			p.identity = false
			continue
		case y && !x:
			p.unrecorded = append(p.unrecorded, j)
			j++
			p.identity = false
			continue
		}
		if s.Chain(i+1) == chains[j] {
			p.to[i] = j
			p.identity = p.identity && i == j
			i, j = i+1, j+1
			continue
		}
		p.identity = false
		i, j = p.regroup(s, chains, msgs, i, j)
	}
	for i < n {
		end, own := assistantRun(s, i)
		if own {
			i, j = p.skipOwnRun(s, chains, msgs, i, j, end)
			continue
		}
		for end = max(end, i+1); i < end; i++ {
			p.to[i], p.identity = notSent, false
		}
	}
	for ; j < len(msgs); j++ {
		p.unrecorded, p.identity = append(p.unrecorded, j), false
	}
	return p
}

// skipGap skips the messages of the path that the client has left out or replaced. It
// returns the index of the next message, or i if that is not on the path.
func (p *pairing) skipGap(s *furl.State, f *front, i int) int {
	end := i
	for end < s.Len() && s.Chain(end+1) != f.next {
		end++
	}
	if end == s.Len() || end == i {
		return i
	}
	for k := i; k < end; k++ {
		p.to[k] = notSent
	}
	for k := f.from; k < f.to; k++ {
		p.unrecorded = append(p.unrecorded, k)
	}
	p.identity, p.gap, p.filled = false, span{i, end}, span{f.from, f.to}
	for p.gap.to > i { // thinking belongs to the step after the gap
		if _, m := s.Message(p.gap.to - 1); !fingerprint.AddsNothing(m) || m.HasOwn() {
			break
		}
		p.gap.to--
	}
	return end
}

// assistantRun returns the end of the run of assistant messages and recall
// results that starts at message i of the path. own is set if some of them have
// Own set; the client has such a run in other messages.
func assistantRun(s *furl.State, i int) (end int, own bool) {
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

// skipOwnRun skips such a run on the path and its counterpart in the request.
func (p *pairing) skipOwnRun(s *furl.State, chains []furl.Digest, msgs []furl.Message, i, j, end int) (int, int) {
	for ; i < end; i++ {
		p.to[i] = regrouped
	}
	p.hasOwn, p.identity = true, false
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
		p.to[i], p.hasOwn = regrouped, p.hasOwn || m.HasOwn()
		if k, ok := at[s.Chain(i+1)]; ok {
			return i + 1, k + 1
		}
	}
	return i, len(msgs)
}

// clientChanges returns what the client has changed since the last request: a
// reduction for the results that it now sends differently, one for the user's texts,
// and the earlier reductions for what it now sends as recorded again. Records that
// were redacted are not compared.
func clientChanges(edits map[furl.Pos]open.ClientEdit, s *furl.State, pairs pairing, msgs []furl.Message, c furl.Counter, redacted func(furl.Seq) bool) (cleared, texts *furl.Reduction, again []furl.Seq) {
	var results, others []furl.Item
	kept := make(map[furl.Seq]bool)  // reductions with results that are still changed
	whole := make(map[furl.Seq]bool) // reductions with results that are as recorded again
	for i, j := range pairs.to {
		if j < 0 {
			continue
		}
		seq, was := s.Message(i)
		if redacted(seq) {
			continue // the client's text is the original, and must not be recorded again
		}
		for k := range was.Blocks {
			b := &was.Blocks[k]
			pos := furl.Pos{Msg: seq, Block: k}
			before, was := edits[pos]
			var now *furl.Block
			switch {
			case b.Kind == furl.KindResult:
				now = resultOf(&msgs[j], b.ID)
			case was || pairs.reworded[i]:
				now = textOf(s, pos, &msgs[j])
			}
			if now == nil {
				continue
			}
			if was {
				if red, ok := s.Reduction(before.By); !ok || red.Undone {
					was = false
				}
			}
			items := &results
			if b.Kind != furl.KindResult {
				items = &others
			}
			switch {
			case sameResult(b, now):
				if was {
					whole[before.By] = true
				}
			case was && before.Text == now.Text:
				kept[before.By] = true
			default:
				in := furl.InPlace(b, now.Text, c)
				in.Note = "changed by the client"
				*items = append(*items, furl.Item{Spans: []furl.Span{spanOf(pos)}, Show: in})
			}
		}
	}
	for by := range whole {
		if !kept[by] {
			again = append(again, by)
		}
	}
	slices.Sort(again)
	if len(results) > 0 {
		cleared = &furl.Reduction{Stage: furl.StageClient, Reason: "the client changed these results", Items: results}
	}
	if len(others) > 0 {
		texts = &furl.Reduction{Stage: furl.StageClient, Reason: "the client changed these texts", Items: others}
	}
	return cleared, texts, again
}

// textOf returns the block of a message that the client has in place of a text of the
// user, nil if it is not one, or a policy hides the recorded text.
func textOf(s *furl.State, pos furl.Pos, m *furl.Message) *furl.Block {
	i, _ := s.Find(pos.Msg)
	_, was := s.Message(i)
	if was.Role == furl.RoleAssistant || len(m.Blocks) != len(was.Blocks) || was.Blocks[pos.Block].Kind != furl.KindText || m.Blocks[pos.Block].Kind != furl.KindText {
		return nil
	}
	if by := s.ShownBy(pos); by != 0 {
		if red, ok := s.Reduction(by); ok && red.Stage != furl.StageClient {
			return nil
		}
	}
	return &m.Blocks[pos.Block]
}

// resultOf returns the result of a call in a message, nil if there is none.
func resultOf(m *furl.Message, id string) *furl.Block {
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

// sameMessage reports whether two messages have the same content apart from
// thinking.
func sameMessage(a, b *furl.Message) bool {
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
