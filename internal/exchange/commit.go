package exchange

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/furlhq/furl/internal/open"
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
	if errors.Is(err, storage.ErrNoSession) && !x.Committed { // deleted since Begin
		err = x.commitElsewhere(ctx)
	}
	if err == nil {
		return !bytes.Equal(sent, x.Body), nil
	}
	x.Drop()
	if x.Committed {
		return false, err
	}
	x.Session, x.Fit, x.flight = nil, nil, nil
	x.setBody(sent)
	if ctx.Err() != nil {
		return false, nil
	}
	x.recordFailure(err)
	if x.all.sessions.Options().Refuse {
		return false, err
	}
	return false, nil
}

// dropped reports whether the exchange has ended before anything was committed.
func (x *Exchange) dropped() bool { return x.draft == nil && !x.Committed }

// commitElsewhere commits an exchange whose session was deleted to the session
// that now matches it.
func (x *Exchange) commitElsewhere(ctx context.Context) error {
	x.Drop()
	x.all.Forget(x.Session.Internal())
	x.flight = nil
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
	if err := x.draft.Commit(ctx, open.Committed); err != nil {
		x.restore(was)
		return err
	}
	return nil
}

// committed notes that the draft was committed.
func (x *Exchange) committed(t *tx) {
	x.draft, x.overflow = nil, nil
	head := x.Fit.Head
	x.continueAt, x.flight.Last, t.Last = head, head, head
	if !x.Committed {
		x.flight.First, t.First, x.Committed = head, head, true
		t.Opened = t.Opened || x.startsSession
	}
}
