package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/transact"
	"github.com/furlhq/furl/storage"
)

// A ready summary is only in memory, and has cost money. So it is recorded even if
// no further request arrives: as soon as the provider's cache has expired, and at
// the latest before the process ends.

// readyTTL is how long a session with a ready summary stays in memory after its last
// use. It is the longest cache lifetime of providers.
const readyTTL = time.Hour

// setReady sets the ready summary, nil for none. The session is locked.
func (s *Session) setReady(r *readySummary) {
	s.ready = r
	s.hasReady.Store(r != nil)
}

// RecordSummaries records the ready summaries (PrepareSummary) of idle sessions of
// all tenants: those whose prompt cache has expired, or all of them if ending is set
// because the process is about to end. It skips summaries for another branch and
// sessions with an exchange in flight. It returns how many it recorded.
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
	err = s.update(ctx, onDisk, func() error {
		placed = false
		if s.holders.Load() > 0 || !s.readyApplies() || s.policySettings().Off {
			return nil
		}
		if s.asksFirst() {
			return s.holdReady()
		}
		in := transact.Prompt{Model: s.ready.model}
		b, _, _ := s.budgetFor(in)
		if !ending && !cold(&b) {
			return nil
		}
		var red *furl.Reduction
		var err error
		if over := s.overtakenBy(s.ready); len(over) > 0 {
			red, err = s.recordLate(in, b, over)
		} else {
			red, err = s.recordReady(b)
		}
		placed = red != nil
		return err
	})
	return placed && err == nil, err
}
