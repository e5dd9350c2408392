package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/furlhq/furl"
)

// do runs work on all sessions: see doFor.
func (s *Store) do(ctx context.Context, work func(ctx context.Context, again bool) error) error {
	return s.doFor(ctx, furl.SessionKey{}, work)
}

// doHere runs work that the server does alone, such as reading a table that is on every
// node. It does not wait for lost nodes.
func (s *Store) doHere(ctx context.Context, work func(ctx context.Context, again bool) error) error {
	return s.doFor(ctx, furl.SessionKey{Session: here}, work)
}

// doFor runs work on a session, and retries it while the server is unreachable, for
// Options.Retry. The work must be idempotent; again reports that it may have
// been done before. Each try has its own time limit, so that a silently lost
// connection is noticed.
//
// If the server has not come back in that time, it is marked as away: work is
// then tried once and briefly, until some of it succeeds. Otherwise each
// request during an outage would wait as long as the first.
//
// On Citus, work waits in the same way for the session's node alone: see
// nodes.go.
func (s *Store) doFor(ctx context.Context, key furl.SessionKey, work func(ctx context.Context, again bool) error) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.running.Done()
	deadline := time.Now().Add(s.opts.Retry)
	for wait, again := 10*time.Millisecond, false; ; wait, again = min(2*wait, time.Second), true {
		if err := s.awaitNode(ctx, key, deadline); err != nil {
			return s.clean(err)
		}
		err := s.try(ctx, key, work, again)
		if ctx.Err() == nil {
			s.noteAnswer(err)
		}
		if err == nil {
			return nil
		}
		onNode := s.citus.Load() && fromNode(err)
		if onNode && ctx.Err() == nil {
			s.survey(ctx)
		}
		if ctx.Err() != nil || !transient(err) && !onNode || s.opts.Retry < 0 {
			return s.clean(err)
		}
		if s.away.Load() {
			return fmt.Errorf("the server is still unreachable: %w", s.clean(err))
		}
		if onNode {
			s.log.Debug("postgres: a node was lost; retrying", "place", s.place, "session", key.Session, "err", s.clean(err))
			if s.lostFor(key) != nil {
				continue // wait for it, without a further try
			}
			// It is back. Connections to it that were open before fail once.
			wait = min(wait, surveyPause)
		}
		if time.Now().Add(wait).After(deadline) {
			s.noteAway(err)
			return fmt.Errorf("the server is still unreachable after %v: %w", s.opts.Retry, s.clean(err))
		}
		if !again && !onNode {
			s.log.Warn("postgres: server unreachable; retrying", "place", s.place, "err", s.clean(err))
		}
		if code(err) == codeReadOnly {
			// This server has become a standby. New connections find the
			// primary.
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

// noteAnswer updates, after a try, whether the server is away.
func (s *Store) noteAnswer(err error) {
	switch {
	case errors.Is(err, errSilent):
		s.noteAway(err)
	case err == nil || !lost(err) || s.citus.Load() && fromNode(err):
		if s.away.Swap(false) {
			s.log.Info("postgres: server reachable again", "place", s.place)
		}
	}
}

// noteAway marks the server as away.
func (s *Store) noteAway(err error) {
	if lost(err) && !(s.citus.Load() && fromNode(err)) && !s.away.Swap(true) {
		s.log.Error("postgres: server still unreachable; operations are not retried until it responds", "place", s.place, "err", s.clean(err))
	}
}

// grace is added to a statement's time limit for the network; brief is the
// limit of one try while the server is away.
const (
	grace = 5 * time.Second
	brief = 2 * time.Second
)

// errSilent is wrapped by the error of a try without any response.
var errSilent = errors.New("server did not respond")

// try runs the work once, within the time limit of one statement. If its node is
// lost meanwhile, the work is canceled.
func (s *Store) try(ctx context.Context, key furl.SessionKey, work func(context.Context, bool) error, again bool) (err error) {
	limit := s.opts.Timeout + min(grace, s.opts.Timeout)
	if s.away.Load() {
		limit = min(limit, brief)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if s.citus.Load() {
		nodeLost := s.watchNode(limited, key, cancel)
		defer func() {
			if lost := nodeLost(); lost != nil && err != nil && ctx.Err() == nil {
				err = fmt.Errorf("%w: %s did not respond: %s", errNode, lost.address, s.clean(err))
			}
		}()
	}
	err = work(limited, again)
	if err != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		if errors.Is(err, errNode) {
			return err
		}
		// %s, not %w: it must not look like the caller's own deadline.
		return fmt.Errorf("%w within %v: %s", errSilent, limit, s.clean(err))
	}
	return err
}
