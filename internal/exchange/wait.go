package exchange

import (
	"context"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
)

// A reply is sent on before it is recorded, and some clients ask on as soon as they
// have read its last event. The history that such a client sends then is not known
// yet: its request waits for the end of the exchange whose reply it holds.

// note notes an exchange that is under way.
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

// maxAwait bounds how long a request waits.
const maxAwait = 5 * time.Second

// await waits for exchanges of a session whose reply the history goes on from, so
// that the reply is recorded once, after its exchange.
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
		// Without a committed request its client has no answer yet.
		if x.first != 0 && (x.first == pl.at || x.head == pl.at && x.head != 0) {
			return x.end
		}
	}
	return nil
}

// byReply finds the session of a history that was nowhere, once the replies
// under way that it may go on from are recorded; nil if it is in none of them.
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
		// Also if none is under way: it may have ended since the last look.
		s, err := a.byHistory(ctx, in)
		if err != nil || s != nil || end == nil {
			return s, err
		}
	}
}

// replying finds an exchange under way whose request is the beginning of the
// history, up to a message of the assistant. It gives nil if there is none.
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

// answering finds an exchange of the session whose request ends one of these
// chains, nil if there is none or the session is another client's.
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
