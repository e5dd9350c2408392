package exchange

import (
	"context"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/protocol"
)

// A provider can replace a history by a summary of its own, a compaction, which only it
// can read. The client's next request begins with the compaction, often after messages
// that the client keeps. furl records this as a reduction on the path: a mark hides
// everything up to the compaction, and shows the messages that replace it. So the session
// continues as one, and what was replaced can still be searched.
//
// In later requests, the messages up to the compaction are those of the client, which may
// differ from the mark's.

// stageCompact is the stage of compactions, as in package policy.
const stageCompact = "compact"

// lastCompaction returns the index of the last message with a compaction, -1 if there is
// none.
func lastCompaction(msgs []furl.Message) int {
	for i := len(msgs) - 1; i >= 0; i-- {
		if msgs[i].HasCompaction() {
			return i
		}
	}
	return -1
}

// compactedIn returns the position of the request's newest compaction in the request and
// on the path, false if it is not on the path.
func (in *incoming) compactedIn(st *furl.State, matched int) (request, path int, ok bool) {
	request = lastCompaction(in.req.Messages[:matched])
	if request < 0 {
		return 0, 0, false
	}
	for path = st.Len() - 1; path >= 0; path-- {
		if _, m := st.Message(path); m.HasCompaction() && st.Chain(path+1) == in.chains[request] {
			return request, path, true
		}
	}
	return 0, 0, false
}

// compactedBy returns the reduction whose mark hides a message of the path, 0 if none does.
func compactedBy(st *furl.State, message int) furl.Seq {
	seq, _ := st.Message(message)
	by := st.ShownBy(furl.Pos{Msg: seq})
	if red, ok := st.Reduction(by); !ok || red.Stage != stageCompact {
		return 0
	}
	return by
}

// followCompaction makes the path that of a client that has left out what a compaction
// replaced. It returns how many messages of the request are on the path then.
func (t *tx) followCompaction(in *incoming, msgs []furl.Message, matched int, c furl.Counter) (int, error) {
	st := t.Log().State()
	request, path, ok := in.compactedIn(st, matched)
	if !ok || compactedBy(st, path) != 0 || sameStart(st, path, in.chains, request) {
		return matched, nil
	}
	if len(msgs[request].Blocks) == 1 {
		start := make([]*furl.Message, request+1)
		for i := range start {
			start[i] = cloneMessage(&msgs[i])
			start[i].Measure(c)
		}
		if t.recordCompaction(path, start, in.req.Model) == nil {
			return matched, nil
		}
	}
	// The compaction is part of a longer reply, or a call before it has no result: the
	// client's list begins a new root.
	if _, err := t.Rewind(0, furl.Client); err != nil {
		return 0, err
	}
	return 0, nil
}

// sameStart reports whether a request has the messages of the path before a compaction.
func sameStart(st *furl.State, path int, chains []furl.Digest, request int) bool {
	var before furl.Digest
	if request > 0 {
		before = chains[request-1]
	}
	return st.Chain(path) == before && (path == 0) == (request == 0)
}

// recordCompaction records that messages replace the path up to and including a message.
// After an error nothing is recorded.
func (t *tx) recordCompaction(last int, by []*furl.Message, model string) error {
	st := t.Log().State()
	first, _ := st.Message(0)
	end, m := st.Message(last)
	red := &furl.Reduction{
		Stage: stageCompact, Reason: "the provider compacted the conversation",
		Items:   []furl.Item{{Spans: []furl.Span{{First: furl.Pos{Msg: first}, Last: furl.Pos{Msg: end, Block: max(0, len(m.Blocks)-1)}}}, Show: furl.Mark{Messages: by}}},
		Summary: &furl.Summary{Number: 1, Messages: last, Model: model},
	}
	for was := range st.Reductions() {
		if was.Summary != nil {
			red.Summary.Number = was.Summary.Number + 1
		}
	}
	t.Measure(red)
	if _, err := t.Append(furl.Upstream, red); err != nil {
		return fmt.Errorf("record compaction by the provider: %w", err)
	}
	return nil
}

// compacts reports whether a reply replaces the history: it ends with a compaction by
// itself.
func compacts(reply *protocol.Reply) bool {
	if !reply.Complete || len(reply.Messages) == 0 {
		return false
	}
	last := reply.Messages[len(reply.Messages)-1]
	return len(last.Blocks) == 1 && last.HasCompaction()
}

// recordCompacted records a reply that replaces the history: the exchange, the
// compaction, and the reduction that shows the messages of the reply.
func (x *Exchange) recordCompacted(ctx context.Context, bodies open.Bodies, reply *protocol.Reply) error {
	x.AskNothing = true
	whole := reply.Messages
	only := *reply
	only.Messages = whole[len(whole)-1:]
	return x.Session.Internal().Update(ctx, open.Committed, func(st *open.Change) error {
		fresh, err := st.Observe(ctx, x.Fit, bodies, &only)
		if err != nil || !fresh {
			return err
		}
		c := st.Counter(x.req.Model)
		start := make([]*furl.Message, len(whole))
		for i, m := range whole {
			start[i] = cloneMessage(m)
			start[i].Measure(c)
		}
		t := x.all.tx(x.Session.Internal(), st)
		if err := t.recordCompaction(st.Log().State().Len()-1, start, x.req.Model); err != nil {
			x.all.Options().Logger.Warn("compaction recorded as an ordinary reply", "session", x.Session.ID(), "error", err)
		}
		return nil
	})
}

// awaitsCompaction returns the end of an exchange in flight that may bring a compaction of
// the history, nil if there is none.
func (t *tx) awaitsCompaction(in *incoming) <-chan struct{} {
	last := lastCompaction(in.req.Messages)
	if last < 0 || len(t.Index().ByChain[in.chains[last]]) > 0 {
		return nil
	}
	for f := range t.Flights {
		if f.Compacts && f.First != 0 {
			return f.Done
		}
	}
	return nil
}

// pairCompaction maps the start of a path and of a request up to their common compaction.
// It returns the indexes of what follows. The path's messages are hidden by the mark, and
// the request's are sent in its place.
func (p *pairing) pairCompaction(s *furl.State, in *incoming) (path, request int) {
	request, path, ok := in.compactedIn(s, len(in.req.Messages)-in.tailLen)
	if !ok {
		return 0, 0
	}
	by := compactedBy(s, path)
	if by == 0 {
		if sameStart(s, path, in.chains, request) {
			return 0, 0
		}
		// The reduction was undone: what it hid is sent as recorded, before what the
		// client has.
		for i := range path {
			p.to[i] = regrouped
		}
		for j := range request {
			p.unrecorded = append(p.unrecorded, j)
		}
		p.to[path], p.identity = request, false
		return path + 1, request + 1
	}
	for i := range path + 1 {
		p.to[i] = notSent
	}
	p.mark, p.start, p.identity = by, request+1, false
	return path + 1, request + 1
}
