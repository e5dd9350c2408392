package exchange

import (
	"context"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/internal/recalltext"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire"
)

// Limits of recall in one exchange.
const (
	maxRounds = recalltext.MaxRounds // continuing requests
	maxCalls  = recalltext.MaxCalls  // calls in one reply
)

// Recalls returns the number of answered calls of recall tools.
func (x *Exchange) Recalls() int { return x.recalls }

// Offered reports whether the body has recall tools. Replies to it must be passed
// to Answer.
func (x *Exchange) Offered() bool { return len(x.offered) > 0 && x.Session != nil && x.flight != nil }

// IsRecall reports whether name is one of the recall tools in the body. furl
// answers calls of these, and the client must not see them.
func (x *Exchange) IsRecall(name string) bool { return slices.Contains(x.offered, name) }

// Answer records a reply as Done does, and answers the calls of recall tools in
// it. If the model called no other tools, again is true and Body is the next
// request; pass the reply to it to Answer too. Otherwise, or if a limit is reached,
// the exchange has ended; call Drop.
//
// Calls and results are recorded with Own set. Later requests include them,
// although the client never sends them.
func (x *Exchange) Answer(ctx context.Context, reply *protocol.Reply) (again bool, err error) {
	calls, others := x.ownCalls(reply)
	if len(calls) == 0 {
		return false, x.recordReply(ctx, reply)
	}
	keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	sent := x.Body
	if err := x.ensureCommitted(keep); err != nil {
		return false, err
	}
	x.rounds++
	last := x.rounds >= maxRounds
	results := make([]furl.Block, len(calls))
	for i, c := range calls {
		results[i] = furl.Block{Kind: furl.KindResult, ID: c.ID, Name: c.Name, Own: true}
		text, err := "", recalltext.ErrTooMany
		if x.rounds <= maxRounds && i < maxCalls {
			text, err = recalltext.Answer(keep, x.Session, x.all.Options().Logger, c.Name, c.Args)
		}
		if err != nil {
			text, results[i].Error = "Error: "+err.Error(), true
		} else if last && !others {
			text += recalltext.LastRound
		}
		results[i].Text = text
	}
	x.recalls += len(calls)
	var head furl.Seq
	err = x.Session.Internal().Update(keep, open.Committed, func(st *open.Change) error {
		if fresh, err := st.Observe(keep, x.Fit, open.Bodies{Received: x.original, Sent: sent}, reply); err != nil || !fresh {
			return err
		}
		t := x.all.tx(x.Session.Internal(), st)
		err := t.appendResults(reply.Format, calls, results)
		head = t.Log().Head()
		return err
	})
	if err != nil {
		return false, fmt.Errorf("record results of recall tools: %w", err)
	}
	if others || head == 0 || x.rounds > maxRounds || !reply.Complete || reply.Refusal != nil || !continues(reply) {
		return false, nil
	}
	if err := ctx.Err(); err != nil {
		return false, nil // the client has disconnected
	}
	x.continueAt = head
	if err := x.prepare(ctx, x.Session.Internal(), true); err != nil {
		return false, fmt.Errorf("prepare the request after a recall: %w", err)
	}
	return true, nil
}

// continues reports whether tool results can follow a reply.
func continues(reply *protocol.Reply) bool {
	api := wire.For(reply.Format)
	return api != nil && api.Continues(reply.Stop)
}

// ownCalls returns the calls of recall tools in a reply after setting Own on them;
// others is set if there are calls of other tools.
func (x *Exchange) ownCalls(reply *protocol.Reply) (own []*furl.Block, others bool) {
	if x.Session == nil || reply == nil || len(x.offered) == 0 {
		return nil, false
	}
	for _, m := range reply.Messages {
		for i := range m.Blocks {
			switch b := &m.Blocks[i]; {
			case b.Kind == furl.KindCall && x.IsRecall(b.Name):
				b.Own = true
				own = append(own, b)
			case b.Kind == furl.KindCall:
				others = true
			}
		}
	}
	return own, others
}

// appendResults appends the results of recall tools. It prefers to keep the
// originals that the model requested by handle; otherwise the next plan would
// hide them again.
func (t *tx) appendResults(format furl.Format, calls []*furl.Block, results []furl.Block) error {
	api := wire.For(format)
	if api == nil {
		return fmt.Errorf("unknown wire format %q", format)
	}
	messages, err := api.ToolResults(results)
	if err != nil {
		return err
	}
	c := t.Counter(t.Meta().Model)
	var kept []furl.Span
	n := 0
	for _, m := range messages {
		for i := range m.Blocks {
			m.Blocks[i].Own = true
		}
		m.Measure(c)
		r, err := t.Append(furl.Furl, m)
		if err != nil {
			return err
		}
		for i := range m.Blocks {
			if calls[n].Name == ToolGet && !results[n].Error {
				kept = append(kept, spanOf(furl.Pos{Msg: r.Seq, Block: i}))
			}
			n++
		}
	}
	if len(kept) == 0 {
		return nil
	}
	_, err = t.Append(furl.Furl, &furl.Restoration{Spans: kept, Hold: furl.Keep})
	return err
}
