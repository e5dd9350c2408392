package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// do runs one piece of work, again and again while the server is away, for
// as long as Options.Retry. The work must be such that doing it twice is the
// same as doing it once; again says that it may have been done. Each try has
// a limit of its own, so that a peer that has silently gone is noticed.
//
// Once the server has not come back in that time, it is known to be away: work
// is then tried once and briefly, until some of it succeeds. Otherwise each
// request of an outage would wait as long as the first.
func (s *Store) do(ctx context.Context, work func(ctx context.Context, again bool) error) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.running.Done()
	deadline := time.Now().Add(s.opts.Retry)
	for wait, again := 10*time.Millisecond, false; ; wait, again = min(2*wait, time.Second), true {
		err := s.try(ctx, work, again)
		if ctx.Err() == nil {
			s.noteAnswer(err)
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || !transient(err) || s.opts.Retry < 0 {
			return s.clean(err)
		}
		if s.away.Load() {
			return fmt.Errorf("the server is still away: %w", s.clean(err))
		}
		if time.Now().Add(wait).After(deadline) {
			s.noteAway(err)
			return fmt.Errorf("the server is still away after %v: %w", s.opts.Retry, s.clean(err))
		}
		if !again {
			s.log.Warn("postgres: the server is away; trying again", "place", s.place, "err", s.clean(err))
		}
		if code(err) == codeReadOnly {
			// This server has become a standby. New connections find
			// the one that takes writes.
			s.pool.Reset()
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return s.clean(errors.Join(ctx.Err(), err))
		case <-s.closing.Done():
			return s.clean(errors.Join(ErrClosed, err))
		}
	}
}

// noteAnswer takes from what came of a try whether there is a server.
func (s *Store) noteAnswer(err error) {
	switch {
	case errors.Is(err, errSilent):
		s.noteAway(err)
	case err == nil || !lost(err):
		if s.away.Swap(false) {
			s.log.Info("postgres: the server is back", "place", s.place)
		}
	}
}

// noteAway notes that the server does not come back soon.
func (s *Store) noteAway(err error) {
	if lost(err) && !s.away.Swap(true) {
		s.log.Error("postgres: the server does not come back; work is tried once from now on, until it does", "place", s.place, "err", s.clean(err))
	}
}

// grace is what the way to the server may take on top of a statement, brief
// how long one try may take when the server is known to be away.
const (
	grace = 5 * time.Second
	brief = 2 * time.Second
)

// errSilent is wrapped by the error of a try to which nothing came back.
var errSilent = errors.New("the server gives no answer")

// try runs the work once, within the time that one statement may take.
func (s *Store) try(ctx context.Context, work func(context.Context, bool) error, again bool) error {
	limit := s.opts.Timeout + min(grace, s.opts.Timeout)
	if s.away.Load() {
		limit = min(limit, brief)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := work(limited, again)
	if err != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		// Not the caller's deadline, so that it must not look like it.
		return fmt.Errorf("%w within %v: %s", errSilent, limit, s.clean(err))
	}
	return err
}
