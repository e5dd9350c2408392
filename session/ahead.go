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

// commitSoon is commit that does not wait for the disk where the store can tell
// that a batch is committed before that: what requests and answers bring
// outlives the process then, and what is lost with the power the client's next
// request brings again.
func (s *Session) commitSoon(ctx context.Context, had int) error {
	b := s.batch(had)
	if b == nil {
		return nil
	}
	committed := make(chan error, 1)
	go func() {
		told := false
		err := s.appendEarly(ctx, b, func() { told = true; committed <- nil })
		switch {
		case !told:
			committed <- err
		case err != nil:
			s.all.storeErrors.Add(1)
			s.all.refusing.refused()
			s.all.log.Error("what was recorded may be lost with the power", "session", s.key.Session, "error", err)
		}
	}()
	if err := <-committed; err != nil {
		return s.refused(ctx, err)
	}
	s.stored(b)
	return nil
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
