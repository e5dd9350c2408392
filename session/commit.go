package session

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/furlhq/furl"
)

// A request is prepared on a draft of its session's log. What it brings is held
// by its exchange and is in neither the log nor the store until the provider has
// accepted the request: see Exchange.Commit. Nothing has to be removed when the
// provider refuses it.

// uncommitted is what an exchange is to append to its session.
type uncommitted struct {
	had     int           // records of the log that it follows
	was     furl.Meta     // of the session then
	records []furl.Record // numbered from had+1
	meta    *furl.Meta    // nil: as it was
	sizes   sizer         // of the log with the records
	settled bool          // the records have the summary that was ready
}

// draft runs f on a draft of the log and returns what f appended. The session
// stays as it was. It must be locked.
func (s *Session) draft(f func() error) (*uncommitted, error) {
	log, sizes := s.log, s.sizes
	defer func() { s.log, s.sizes, s.newMeta, s.settled = log, sizes, nil, false }()
	s.log, s.newMeta, s.settled = log.Draft(), nil, false
	if err := f(); err != nil {
		return nil, err
	}
	return &uncommitted{
		had: log.Len(), was: cloneMeta(s.meta), records: slices.Clone(s.log.Records(furl.Seq(log.Len()))),
		meta: s.newMeta, sizes: s.sizes, settled: s.settled,
	}, nil
}

// fits reports whether u can be appended to the session as it is now.
func (u *uncommitted) fits(s *Session) bool {
	return u.had == s.log.Len() && (u.meta == nil || sameMeta(u.was, s.meta))
}

// Commit stores what the request brought and what was planned for it. Call it
// when the provider has accepted the request, before the client gets any of the
// answer: whatever a client has been told, its question is then in the log.
// Without it, Done and Answer commit.
//
// If the session has grown since Begin, the request is prepared again. If that
// gives another Body, the result is true: Body is stored, and must be sent in
// place of what was sent before; the answer to that must be discarded. If the
// request cannot be stored, the exchange is not recorded and Why says so; the
// error is then not nil only if Options.Refuse is set, or if an earlier request
// of the exchange was committed.
func (x *Exchange) Commit(ctx context.Context) (resend bool, err error) {
	if x.held == nil {
		return false, nil
	}
	began := time.Now()
	defer func() { x.Took.Store += time.Since(began) }()
	sent := x.Body
	if err = ctx.Err(); err == nil { // else the client has gone, without an answer
		err = x.Session.keep(ctx, x)
	}
	if errors.Is(err, furl.ErrNoSession) && x.first == 0 { // deleted since Begin
		err = x.moveOn(ctx)
	}
	if err == nil {
		return !bytes.Equal(sent, x.Body), nil
	}
	x.Drop()
	if x.first != 0 {
		return false, err
	}
	x.Body, x.Session, x.Fit, x.end = sent, nil, nil, nil
	if ctx.Err() != nil {
		return false, nil
	}
	x.fail(err)
	if x.all.live().Refuse {
		return false, err
	}
	return false, nil
}

// Committed reports whether a request of the exchange was committed.
func (x *Exchange) Committed() bool { return x.first != 0 }

// over reports whether the exchange has ended before anything was committed.
func (x *Exchange) over() bool { return x.held == nil && x.first == 0 }

// moveOn commits an exchange whose session was deleted to the one that it belongs
// to now.
func (x *Exchange) moveOn(ctx context.Context) error {
	x.Drop()
	x.all.forget(x.Session)
	x.end = nil
	s, err := x.all.match(ctx, x.in)
	if err == nil {
		err = s.begin(ctx, x)
	}
	if err == nil {
		err = s.keep(ctx, x)
	}
	return err
}

var errOver = errors.New("the exchange is over")

// keep appends what an exchange holds to the session and its store.
func (s *Session) keep(ctx context.Context, x *Exchange) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	if x.held == nil {
		return errOver
	}
	for try := 1; ; try++ {
		if !x.held.fits(s) {
			// By the same clock, since a plan for the same history is then the same.
			if err := s.prepare(ctx, x, x.Fit.At); err != nil {
				return err
			}
		}
		had := s.log.Len()
		err := s.storeHeld(ctx, x.held)
		if err == nil {
			x.held, x.forced = nil, nil
			if x.at = x.Fit.Head; x.first == 0 {
				x.first = x.at
			}
			return nil
		}
		if !errors.Is(err, furl.ErrConflict) || try == maxTries {
			return err
		}
		if loadErr := s.load(ctx); loadErr != nil {
			return errors.Join(err, loadErr)
		}
		if s.log.Len() == had {
			return err // another process has not appended anything
		}
	}
}

// storeHeld appends to the store and then to the log.
func (s *Session) storeHeld(ctx context.Context, u *uncommitted) error {
	b := s.batch(u.had, u.records, u.meta)
	if b == nil {
		return nil
	}
	had := s.size.Load()
	if err := s.reserveFor(u.records); err != nil {
		return err
	}
	if err := s.appendSoon(ctx, b); err != nil {
		s.size.Store(had)
		return s.refused(ctx, err)
	}
	if err := s.log.Load(u.records); err != nil {
		s.stale = true
		return err
	}
	s.sizes = u.sizes
	s.stored(b)
	if u.settled {
		s.setReady(nil)
	}
	return nil
}

// appendSoon appends a batch to the store. It does not wait for the disk where
// the store can tell that a batch is committed before that: the batch then
// outlives the process, and what is lost with the power is in the client's next
// request.
func (s *Session) appendSoon(ctx context.Context, b *furl.Batch) error {
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
	return <-committed
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
