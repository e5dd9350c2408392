package session

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/furlhq/furl"
)

// A request may go on to the provider while what it brought is being stored:
// as long as its client gets nothing of the answer before that, nothing has
// happened that the store does not know of. Should the process end in between,
// the client sends the request again. A plan that hides something is stored
// first, because the prefix of all later prompts goes by it.

// mayGoAhead reports whether a request that was prepared may be sent before it
// is stored.
func (x *Exchange) mayGoAhead(asking bool) bool {
	return x.in.hints.Ahead && !asking && !x.Dry && !x.all.live().Refuse && len(x.Fit.Plan.Reductions) == 0
}

// storeAhead stores what changeAhead has left and unlocks the session. Out gets
// what came of it as soon as the batch is committed: whatever happens to the
// process then, the request is in the log. What is lost with the power is brought
// by the client's next request.
func (s *Session) storeAhead(ctx context.Context, had int, out chan<- error) {
	over := false
	end := func(err error) {
		over = true
		if err != nil {
			s.undo(had)
		}
		s.mu.Unlock()
		out <- err
	}
	b := s.batch(had)
	err := s.appendEarly(ctx, b, func() {
		s.stored(b)
		end(nil)
	})
	switch {
	case !over:
		end(s.refused(ctx, err))
	case err != nil:
		if s.all.storeError(context.WithoutCancel(ctx), err) { // the request may be over
			s.all.refusing.refused()
		}
		s.all.log.Error("what was recorded may be lost with the power", "session", s.key.Session, "error", err)
	}
}

// appendEarly calls committed as soon as a batch is committed.
func (s *Session) appendEarly(ctx context.Context, b *furl.Batch, committed func()) (err error) {
	defer func() {
		if recover() != nil { // a store's; it may hold what was said
			err = errors.New("the store panicked")
		}
	}()
	if early, ok := s.all.store.(furl.EarlyAppender); ok {
		return early.AppendEarly(ctx, s.key, *b, committed)
	}
	if err = s.all.store.Append(ctx, s.key, *b); err == nil {
		committed()
	}
	return err
}

// Stored waits until what the request brought is stored. Where another process
// was faster, it is prepared again on top of what that one did: then again
// reports whether Body is another now and the answer to the one before is to be
// thrown away. If it cannot be stored the exchange is recorded nowhere, and Why
// says so; what was sent was right all the same.
func (x *Exchange) Stored(ctx context.Context) (again bool) {
	if x.storing == nil {
		return false
	}
	began := time.Now()
	err := <-x.storing
	x.storing = nil
	x.Took.Store += time.Since(began)
	if err == nil {
		return false
	}
	x.Drop()
	sent := x.Body
	if errors.Is(err, furl.ErrConflict) || errors.Is(err, furl.ErrNoSession) {
		x.end, x.in.hints.Ahead = nil, false
		_, err = x.all.arrive(ctx, x)
		if err == nil && x.Session != nil {
			return !bytes.Equal(sent, x.Body)
		}
	}
	if x.Err == nil && ctx.Err() == nil {
		x.fail(err)
	}
	x.Body, x.Session, x.Fit, x.end = sent, nil, nil, nil
	return false
}
