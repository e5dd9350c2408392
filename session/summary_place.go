package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// A summary that waits is in memory alone, and was paid for. So it does not
// wait for ever: where its session rests it is recorded as the next request
// would do it, as soon as the provider's cache has nothing left that this would
// spoil, and at the latest before the process ends.

// keptReady is how long a session stays in memory because a summary waits in
// it, after it was used: as long as providers keep a prompt at most.
const keptReady = time.Hour

// setReady sets the summary that waits, nil for none. The session is locked.
func (s *Session) setReady(r *readySummary) {
	s.ready = r
	s.waits.Store(r != nil)
}

// PlaceSummaries gives the summaries that wait (PrepareSummary) their places in
// sessions of all tenants that rest: those that show nothing which the
// provider's cache still holds, or all of them if the process is about to end.
// Those stay that belong to another branch of their session, and those with an
// exchange under way. It gives how many were recorded.
func (a *shared) PlaceSummaries(ctx context.Context, ending bool) (n int, err error) {
	for _, s := range a.waiting() {
		placed, e := s.placeSummary(ctx, ending)
		if e != nil && !errors.Is(e, storage.ErrNoSession) { // deleted meanwhile
			err = errors.Join(err, fmt.Errorf("session %s: record the summary that waits: %w", s.key.Session, e))
		}
		if placed {
			n++
		}
	}
	return n, err
}

// waiting gives the open sessions in which a summary waits.
func (a *shared) waiting() []*Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []*Session
	for _, c := range a.open {
		if c.s.waits.Load() {
			list = append(list, c.s)
		}
	}
	slices.SortFunc(list, func(x, y *Session) int {
		return strings.Compare(string(x.key.Tenant)+"/"+string(x.key.Session), string(y.key.Tenant)+"/"+string(y.key.Session))
	})
	return list
}

// placeSummary records the summary that waits, if now is the time.
func (s *Session) placeSummary(ctx context.Context, ending bool) (placed bool, err error) {
	err = s.update(ctx, onDisk, func() error {
		placed = false
		if s.busy.Load() > 0 || !s.readyHere() {
			return nil
		}
		in := Prompt{Model: s.ready.model}
		b, _, _ := s.budgetFor(in)
		if !ending && !cold(&b) {
			return nil
		}
		var red *furl.Reduction
		var err error
		if over := s.overtaken(); len(over) > 0 {
			red, err = s.settleLate(in, b, over)
		} else {
			red, err = s.settleNow(b)
		}
		placed = red != nil
		return err
	})
	return placed && err == nil, err
}
