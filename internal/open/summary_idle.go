package open

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

// A ready summary is only in memory, and has cost money. So it is recorded even if
// no further request arrives: as soon as the provider's cache has expired, and at
// the latest before the process ends.

// readyTTL is how long a session with a ready summary stays in memory after its last
// use. It is the longest cache lifetime of providers.
const readyTTL = time.Hour

// setReady sets the ready summary, nil for none. The session is locked.
func (s *Session) setReady(r *PendingSummary) {
	s.ready = r
	s.hasReady.Store(r != nil)
}

// RecordSummaries is session.Sessions.RecordSummaries.
func (a *shared) RecordSummaries(ctx context.Context, ending bool) (n int, err error) {
	for _, s := range a.withReadySummary() {
		placed, e := s.recordIdleSummary(ctx, ending)
		if e != nil && !errors.Is(e, storage.ErrNoSession) { // deleted meanwhile
			err = errors.Join(err, fmt.Errorf("record summary of session %s: %w", s.key.Session, e))
		}
		if placed {
			n++
		}
	}
	return n, err
}

// withReadySummary returns the open sessions with a ready summary.
func (a *shared) withReadySummary() []*Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []*Session
	for _, c := range a.open {
		if c.s.hasReady.Load() {
			list = append(list, c.s)
		}
	}
	slices.SortFunc(list, func(x, y *Session) int {
		return strings.Compare(string(x.key.Tenant)+"/"+string(x.key.Session), string(y.key.Tenant)+"/"+string(y.key.Session))
	})
	return list
}

// recordIdleSummary records the ready summary if the session is idle; see
// RecordSummaries.
func (s *Session) recordIdleSummary(ctx context.Context, ending bool) (placed bool, err error) {
	err = s.Update(ctx, OnDisk, func(c *Change) error {
		placed = false
		if s.holders.Load() > 0 || !c.readyApplies() || c.PolicySettings().Off {
			return nil
		}
		if c.asksFirst() {
			return c.holdReady()
		}
		in := Prompt{Model: s.ready.Model}
		b, _, _ := c.BudgetFor(in)
		if !ending && !cold(&b) {
			return nil
		}
		var red *furl.Reduction
		var err error
		if over := c.OvertakenBy(s.ready); len(over) > 0 {
			red, err = c.recordLate(in, b, over)
		} else {
			red, err = c.recordReady(b)
		}
		placed = red != nil
		return err
	})
	return placed && err == nil, err
}
