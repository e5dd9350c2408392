package exchange

import (
	"context"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
)

// A reply is forwarded before it is recorded, and some clients send their next
// request as soon as they have read its last event. That request's history is not
// recorded yet, so it waits for the end of the exchange whose reply it contains.

// note adds an exchange to the exchanges in flight.
func (t *tx) note(x *Exchange) {
	x.head, x.chain = 0, furl.Digest{}
	if n := len(x.in.chains) - x.in.tail; n > 0 {
		x.chain = x.in.chains[n-1]
	}
	if x.end != nil {
		return
	}
	x.Session, x.end, x.release = t.s, make(chan struct{}), t.s.Hold()
	if t.pending == nil {
		t.pending = make(map[*Exchange]struct{})
	}
	t.pending[x] = struct{}{}
}

// maxAwait is the longest wait of a request.
const maxAwait = 5 * time.Second

// await waits for the exchanges of a session whose reply is in the history, so that
// the reply is recorded once, after its request.
func (a *Sessions) await(ctx context.Context, s *session.Session, in *arrival) {
	timeout := time.NewTimer(maxAwait)
	defer timeout.Stop()
	for {
		var end <-chan struct{}
		a.read(s, func(t *tx) { end = t.waitFor(in) })
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

// waitFor returns the end of the exchange in flight whose reply is in the history,
// nil if there is none.
func (t *tx) waitFor(in *arrival) <-chan struct{} {
	if len(t.pending) == 0 {
		return nil
	}
	t.places.follow(t.Log())
	pl := t.place(in)
	if pl.matched == len(in.chains)-in.tail || in.req.Messages[pl.matched].Role != furl.RoleAssistant {
		return nil
	}
	for x := range t.pending {
		// Before its request is committed, the client has no reply.
		if x.first != 0 && (x.first == pl.at || x.head == pl.at && x.head != 0) {
			return x.end
		}
	}
	return nil
}

// byReply matches a history again after the replies in flight that it may contain
// are recorded. It returns nil if no session matches.
func (a *Sessions) byReply(ctx context.Context, in *arrival) (*session.Session, error) {
	if usable(in.req.Messages, in.chains) == nil {
		return nil, nil
	}
	timeout := time.NewTimer(maxAwait)
	defer timeout.Stop()
	for {
		end := a.replying(in)
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

// replying returns the end of an exchange in flight whose request is the start of
// the history, up to an assistant message; nil if there is none.
func (a *Sessions) replying(in *arrival) (end <-chan struct{}) {
	begins := make(map[furl.Digest]bool)
	for i := 1; i < len(in.chains); i++ {
		if in.req.Messages[i].Role == furl.RoleAssistant && !in.chains[i-1].IsZero() {
			begins[in.chains[i-1]] = true
		}
	}
	if len(begins) == 0 {
		return nil
	}
	for _, s := range a.InMemory() {
		if !s.Held() {
			continue
		}
		a.read(s, func(t *tx) { end = t.answering(begins, in.hints.Hint) })
		if end != nil {
			return end
		}
	}
	return nil
}

// answering returns the end of an exchange of the session whose request has one of
// these chains at its end. It is nil if there is none or the hints differ.
func (t *tx) answering(chains map[furl.Digest]bool, hint string) <-chan struct{} {
	if own := t.Meta().Hint; hint != "" && own != "" && own != hint {
		return nil
	}
	for x := range t.pending {
		if x.first != 0 && chains[x.chain] && !x.chain.IsZero() {
			return x.end
		}
	}
	return nil
}
