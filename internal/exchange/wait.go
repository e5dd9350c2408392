package exchange

import (
	"context"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/session"
)

// A reply is forwarded before it is recorded, and some clients send their next
// request as soon as they have read its last event. That request's history is not
// recorded yet, so it waits for the end of the exchange whose reply it contains.

// track adds an exchange to the requests in flight.
func (t *tx) track(x *Exchange) {
	if x.flight == nil {
		x.Session, x.flight = session.FromInternal(t.s), t.Start(x.compacts)
	}
	x.flight.Last, x.flight.EndChain = 0, furl.Digest{}
	if n := len(x.incoming.chains) - x.incoming.tailLen; n > 0 {
		x.flight.EndChain = x.incoming.chains[n-1]
	}
}

// awaitTimeout is the longest wait of a request.
const awaitTimeout = 5 * time.Second

// await waits for the exchanges of a session whose reply is in the history, so that
// the reply is recorded once, after its request.
func (a *Sessions) await(ctx context.Context, s *open.Session, in *incoming) {
	timeout := time.NewTimer(awaitTimeout)
	defer timeout.Stop()
	for {
		var end <-chan struct{}
		a.read(s, func(t *tx) { end = t.pendingIn(in) })
		if end == nil {
			return
		}
		select {
		case <-end:
		case <-timeout.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// pendingIn returns the end of the exchange in flight whose reply is in the
// history, nil if there is none.
func (t *tx) pendingIn(in *incoming) <-chan struct{} {
	if len(t.Flights) == 0 {
		return nil
	}
	t.UpdateIndex()
	if end := t.awaitsCompaction(in); end != nil {
		return end
	}
	pl := t.locate(in)
	if pl.matched == len(in.chains)-in.tailLen || in.req.Messages[pl.matched].Role != furl.RoleAssistant {
		return nil
	}
	for f := range t.Flights {
		// Before its request is committed, the client has no reply.
		if f.First != 0 && (f.First == pl.head || f.Last == pl.head && f.Last != 0) {
			return f.Done
		}
	}
	return nil
}

// byPendingReply matches a history again after the replies in flight that it
// may contain are recorded. It returns nil if no session matches.
func (a *Sessions) byPendingReply(ctx context.Context, in *incoming) (*open.Session, error) {
	if matchableChains(in.req.Messages, in.chains) == nil {
		return nil, nil
	}
	timeout := time.NewTimer(awaitTimeout)
	defer timeout.Stop()
	for {
		end := a.pendingReply(in)
		if end != nil {
			select {
			case <-end:
			case <-timeout.C:
				return nil, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		// Also if none is in flight: it may have ended since the first match.
		s, err := a.byHistory(ctx, in)
		if err != nil || s != nil || end == nil {
			return s, err
		}
	}
}

// pendingReply returns the end of an exchange in flight whose request is the
// start of the history, up to an assistant message; nil if there is none.
func (a *Sessions) pendingReply(in *incoming) (end <-chan struct{}) {
	begins := make(map[furl.Digest]bool)
	for i := 1; i < len(in.chains); i++ {
		if in.req.Messages[i].Role == furl.RoleAssistant && !in.chains[i-1].IsZero() {
			begins[in.chains[i-1]] = true
		}
	}
	if len(begins) == 0 && lastCompaction(in.req.Messages) < 0 {
		return nil
	}
	for _, s := range a.InMemory() {
		if !s.InUse() {
			continue
		}
		a.read(s, func(t *tx) { end = t.pendingWith(begins, in) })
		if end != nil {
			return end
		}
	}
	return nil
}

// pendingWith returns the end of an exchange of the session whose request has
// one of these chains at its end, or may bring the history's compaction. It is nil if
// there is none or the hints differ.
func (t *tx) pendingWith(chains map[furl.Digest]bool, in *incoming) <-chan struct{} {
	hint := in.hints.Hint
	if own := t.Meta().Hint; hint != "" && own != "" && own != hint {
		return nil
	}
	for f := range t.Flights {
		if f.First != 0 && chains[f.EndChain] && !f.EndChain.IsZero() {
			return f.Done
		}
	}
	return t.awaitsCompaction(in)
}
