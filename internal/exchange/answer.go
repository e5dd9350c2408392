package exchange

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/recalltext"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/wire"
)

// Limits of recall in one exchange.
const (
	maxRounds   = 4   // continuing requests
	maxCalls    = 8   // calls in one reply
	maxHits     = 5   // hits of a search
	maxExcerpt  = 400 // bytes of a hit
	maxNeighbor = 160 // bytes of the messages before and after a hit
)

// Recalls returns the number of answered calls of recall tools.
func (x *Exchange) Recalls() int { return x.recalls }

// Offered reports whether the body has recall tools. Replies to it must be passed
// to Answer.
func (x *Exchange) Offered() bool { return len(x.offered) > 0 && x.Session != nil && x.done != nil }

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
		results[i] = furl.Block{Kind: furl.KindResult, ID: c.ID, Own: true}
		text, err := "", errors.New("too many calls of memory tools in this reply; answer without further calls")
		if x.rounds <= maxRounds && i < maxCalls {
			text, err = x.lookUp(keep, c)
		}
		if err != nil {
			text, results[i].Error = "Error: "+err.Error(), true
		} else if last && !others {
			text += "\n\n[This was the last call of a memory tool allowed in this reply. Continue without further calls.]"
		}
		results[i].Text = text
	}
	x.recalls += len(calls)
	var head furl.Seq
	x.Fit.Received, x.Fit.Sent = x.original, sent
	fit := x.Fit
	defer func() { fit.Received, fit.Sent = nil, nil }()
	err = inside(x.Session).Update(keep, func(st sessionTx) error {
		if fresh, err := st.Observe(keep, x.Fit, reply); err != nil || !fresh {
			return err
		}
		t := x.all.tx(x.Session, st)
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
	if err := x.prepare(ctx, x.Session, true); err != nil {
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

// lookUp returns the result of one call.
func (x *Exchange) lookUp(ctx context.Context, call *furl.Block) (string, error) {
	var args struct {
		Query    string `json:"query"`
		Handle   string `json:"handle"`
		FromLine int    `json:"from_line"`
		ToLine   int    `json:"to_line"`
	}
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return "", errors.New("invalid arguments: they do not match the tool's schema")
	}
	if call.Name == ToolGet {
		return x.originalText(args.Handle, recall.Range{FromLine: max(0, args.FromLine), ToLine: max(0, args.ToLine)})
	}
	if strings.TrimSpace(args.Query) == "" {
		return "", recalltext.ErrEmptyQuery
	}
	return x.searchResult(ctx, recalltext.Truncate(args.Query, recalltext.MaxQuery))
}

// searchResult returns the result of a search for the model.
func (x *Exchange) searchResult(ctx context.Context, query string) (string, error) {
	hits, err := x.Session.Search(ctx, query, session.SearchOptions{Limit: maxHits, Excerpt: maxExcerpt, Context: maxNeighbor, WithoutRecall: true})
	if err != nil {
		x.all.Options().Logger.Warn("search by a recall tool failed", "session", x.Session.ID(), "error", err)
		return "", errors.New("the search failed; try again later")
	}
	if len(hits) == 0 {
		return "No hidden content matches. Try other words, such as names, paths or identifiers.", nil
	}
	var b strings.Builder
	if other := hits[0].Query; other != "" {
		fmt.Fprintf(&b, "Nothing matches the query; these are results for %q.\n", other)
	}
	fmt.Fprintf(&b, "Search results, best first. Use %s with a handle for the full text.\n", ToolGet)
	for i := range hits {
		h := &hits[i]
		fmt.Fprintf(&b, "\n[%s] %s\n%s\n", h.Handle, recalltext.Block(h.Role, h.Kind, h.Tool, h.Time, h.Error), recalltext.Truncate(h.Excerpt, 2*maxExcerpt))
		if h.Kind != furl.KindText.String() {
			continue // the messages beside calls and results say little about them
		}
		if n := h.Before; n != nil {
			fmt.Fprintf(&b, "before, [%s] %s: %s\n", n.Handle, n.Role, n.Text)
		}
		if n := h.After; n != nil {
			fmt.Fprintf(&b, "after, [%s] %s: %s\n", n.Handle, n.Role, n.Text)
		}
	}
	return b.String(), nil
}

// originalText returns the original of a handle for the model.
func (x *Exchange) originalText(handle string, lines recall.Range) (string, error) {
	o, err := x.Session.Get(handle)
	if err != nil {
		if _, bad := recall.ParseHandle(handle); bad != nil {
			return "", bad
		}
		return "", fmt.Errorf("unknown handle %.80q", handle)
	}
	head, piece, err := recalltext.Original(o, lines)
	if err != nil {
		return "", err
	}
	return head + "\n\n" + piece, nil
}
