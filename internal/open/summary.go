package open

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// Clients never wait for a summary. It is prepared in the background from a soft
// trigger on (PrepareSummary), and recorded with the next reduction or when the
// provider's cache has expired, if the messages that it replaces are still on the
// path. Until then the other stages keep the prompt small enough. See
// summary_record.go for summaries that other stages have overtaken, and
// summary_idle.go for summaries of idle sessions.

// softTrigger is the share of the available window from which a summary is worth
// preparing, softShare the share of the policy's trigger. The lower size applies.
// It is early enough for the summary to be ready, and late enough to skip sessions
// that end before.
const (
	softTrigger = 0.7
	softShare   = softTrigger / 0.85
)

func (c *Change) summaryStage(f *policy.Fit) (stage *policy.Compact, acts float64) {
	p, err := c.Policy()
	if err != nil {
		return nil, 0
	}
	return policy.SummaryStage(p, &f.Budget)
}

// SummaryStage is session.Session.SummaryStage.
func (s *Session) SummaryStage(f *policy.Fit) *policy.Compact {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &f.Budget
	if s.preparing || b.Window <= 0 || f.Plan == nil || f.Plan.Impossible {
		return nil
	}
	now := s.current()
	c, acts := now.summaryStage(f)
	if float64(f.Plan.After) < dueSize(b, acts) {
		s.decided, s.nextSummary = false, 0
		return nil
	}
	if now.readyApplies() || now.waitingApplies() {
		return nil
	}
	// After a refusal the prompt is as large as before. The person is asked again when it
	// has grown, not with each request.
	if s.decided {
		s.decided, s.nextSummary = false, f.Plan.After+int(askAgain*float64(b.Window))
	}
	if f.Plan.After < s.nextSummary {
		return nil
	}
	s.nextSummary = 0
	return c
}

// askAgain is by how much of the window a prompt grows after a summary was refused before
// another one is due.
const askAgain = 0.1

// dueSize returns the size in tokens from which a summary is worth preparing. acts is
// the policy's trigger as a share of the window, 0 if unknown.
func dueSize(b *furl.Budget, acts float64) float64 {
	soft := softTrigger * float64(b.Room())
	if acts > 0 {
		soft = min(soft, softShare*acts*float64(b.Window))
	}
	return soft
}

// readyApplies reports whether a summary is ready that applies to the current path.
func (c *Change) readyApplies() bool {
	if c.s.ready == nil {
		return false
	}
	_, err := c.log.State().Effect(c.s.ready.Red)
	return err == nil
}

// PrepareSummary is session.Session.PrepareSummary.
func (s *Session) PrepareSummary(ctx context.Context, f *policy.Fit, c *policy.Compact) (ready bool, err error) {
	s.mu.Lock()
	if s.preparing {
		s.mu.Unlock()
		return false, nil
	}
	s.preparing = true
	release := s.Acquire()
	state, err := furl.Fold(s.log, f.Head)
	redactions := len(s.meta.Redactions)
	s.mu.Unlock()

	var red *furl.Reduction
	if err == nil {
		b := f.Budget
		b.Size = cmp.Or(f.Plan.After, b.Size)
		red, err = c.Prepare(ctx, state, b)
	}

	s.mu.Lock()
	s.preparing = false
	release()
	if made := (&PendingSummary{Red: red, At: f.Head, Model: f.Model, redactions: redactions}); err == nil && s.current().asksFirst() {
		s.mu.Unlock()
		err := s.storeWaiting(ctx, made)
		return err == nil, err
	}
	defer s.mu.Unlock()
	if skip := policy.Skip(""); errors.As(err, &skip) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("prepare a summary of session %s: %w", s.key.Session, err)
	}
	if redactions != len(s.meta.Redactions) {
		return false, nil // it may have what was redacted meanwhile
	}
	if s.ready != nil { // for another branch
		s.discardReady("another one is ready")
	}
	s.setReady(&PendingSummary{Red: red, At: f.Head, Model: f.Model})
	return true, nil
}

// cold reports whether the provider's cache of the last request has expired.
func cold(b *furl.Budget) bool {
	life := b.Model.Caching.Lifetime
	return b.Cold || life == 0 || !b.LastUse.IsZero() && b.Now.Sub(b.LastUse) > life
}
