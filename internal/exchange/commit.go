package exchange

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/furlhq/furl/storage"
)

// Commit stores the new messages of the request and its plan. Call it when the
// provider has accepted the request, before the client reads any of the reply: so
// the log has the request of every reply that a client has seen. Otherwise Done and
// Answer commit.
//
// If the session has changed since Begin, the request is prepared again. If Body
// changes by that, resend is true: the new Body is stored and must be sent, and the
// reply to the old one discarded. If the request cannot be stored, the exchange is
// not recorded and Why is the reason. Commit then returns an error only if
// Options.Refuse is set, or if an earlier request of the exchange was committed.
func (x *Exchange) Commit(ctx context.Context) (resend bool, err error) {
	if x.draft == nil {
		return false, nil
	}
	began := time.Now()
	defer func() { x.Took.Store += time.Since(began) }()
	sent := x.Body
	if err = ctx.Err(); err == nil { // otherwise the client has disconnected without a reply
		err = x.commitDraft(ctx)
	}
	if errors.Is(err, storage.ErrNoSession) && x.firstHead == 0 { // deleted since Begin
		err = x.commitElsewhere(ctx)
	}
	if err == nil {
		return !bytes.Equal(sent, x.Body), nil
	}
	x.Drop()
	if x.firstHead != 0 {
		return false, err
	}
	x.Session, x.Fit, x.done = nil, nil, nil
	x.setBody(sent)
	if ctx.Err() != nil {
		return false, nil
	}
	x.recordFailure(err)
	if x.all.Options().Refuse {
		return false, err
	}
	return false, nil
}

// dropped reports whether the exchange has ended before anything was committed.
func (x *Exchange) dropped() bool { return x.draft == nil && x.firstHead == 0 }

// commitElsewhere commits an exchange whose session was deleted to the session
// that now matches it.
func (x *Exchange) commitElsewhere(ctx context.Context) error {
	x.Drop()
	x.all.Forget(x.Session)
	x.done = nil
	s, err := x.all.match(ctx, x.incoming)
	if err == nil {
		err = x.prepareFirst(ctx, s)
	}
	if err == nil {
		err = x.commitDraft(ctx)
	}
	return err
}

var errEnded = errors.New("exchange has ended")

// commitDraft commits the draft of an exchange to the session and its store.
func (x *Exchange) commitDraft(ctx context.Context) error {
	if x.draft == nil {
		return errEnded
	}
	was := x.Exchange
	if err := x.draft.Commit(ctx); err != nil {
		x.restore(was)
		return err
	}
	x.all.read(x.Session, func(t *tx) {
		x.draft, x.overflow = nil, nil
		x.lastHead, x.continueAt = x.Fit.Head, x.Fit.Head
		t.committed.last = x.Fit.Head
		if x.firstHead == 0 {
			t.committed.first = x.Fit.Head
			x.firstHead, x.Committed = x.continueAt, true
			t.opened = t.opened || x.startsSession
		}
	})
	return nil
}
