package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// Summaries never make a client wait: one is prepared beside the requests from
// a soft trigger on (PrepareSummary), and takes its place with the next
// reduction, or when the provider's cache is cold anyway (Fit, Begin), if what
// it represents is still on the path. Until then the other stages hold the line;
// summary_settle.go has what becomes of one that they were faster than, and
// summary_place.go of one that no request comes for.

// A summary is worth preparing from that share of the room on, or from that
// share of the size at which the policy acts, if that is less: in time, and not
// for sessions that end before.
const (
	softTrigger = 0.7
	softShare   = softTrigger / 0.85
)

func (s *Session) summaries(f *Fit) (c *policy.Compact, acts float64) {
	p, err := s.plans()
	if err != nil {
		return nil, 0
	}
	return policy.SummaryStage(p, &f.Budget)
}

// SummaryDue returns the stage that should prepare a summary after a fit, nil if
// none should: the request had come near the size at which the policy acts, and no
// summary is being prepared, nor ready for this path. What the stage lacks is a
// Summarizer.
func (s *Session) SummaryDue(f *Fit) *policy.Compact {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &f.Budget
	if s.preparing || b.Window <= 0 || f.Plan == nil || f.Plan.Impossible {
		return nil
	}
	c, acts := s.summaries(f)
	if float64(f.Plan.After) < soft(b, acts) || s.readyHere() {
		return nil
	}
	return c
}

// soft is the size from which a summary is worth preparing, for a policy that
// acts at a share of the window; 0: it is not known.
func soft(b *furl.Budget, acts float64) float64 {
	soft := softTrigger * float64(b.Room())
	if acts > 0 {
		soft = min(soft, softShare*acts*float64(b.Window))
	}
	return soft
}

// readyHere reports whether a summary waits that can be shown on this path.
func (s *Session) readyHere() bool {
	if s.ready == nil {
		return false
	}
	_, err := s.log.State().Effect(s.ready.red)
	return err == nil
}

// PrepareSummary has a compaction prepared for a session as a fit left it. The
// session can be used while the model is asked. It records nothing: the
// summary is kept in memory for the next plan that hides something. A stage
// that has nothing to summarize is not an error. One preparation runs at a time; a
// second gives an error wrapping ErrPreparing.
func (s *Session) PrepareSummary(ctx context.Context, f *Fit, c *policy.Compact) error {
	s.mu.Lock()
	if s.preparing {
		s.mu.Unlock()
		return fmt.Errorf("session %s: %w", s.key.Session, ErrPreparing)
	}
	s.preparing = true
	release := s.Hold()
	state, err := furl.Fold(s.log, f.Head)
	s.mu.Unlock()

	var red *furl.Reduction
	if err == nil {
		b := f.Budget
		b.Size = cmp.Or(f.Plan.After, b.Size)
		red, err = c.Prepare(ctx, state, b)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.preparing = false
	release()
	if skip := policy.Skip(""); errors.As(err, &skip) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("prepare a summary of session %s: %w", s.key.Session, err)
	}
	if s.ready != nil { // of another branch
		s.waste("another one is ready")
	}
	s.setReady(&readySummary{red, f.Head, f.Model})
	return nil
}

// ErrPreparing is returned for a summary while another one is being prepared.
var ErrPreparing = errors.New("a summary is being prepared")

// SummaryReady reports whether a summary waits for its place.
func (s *Session) SummaryReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready != nil
}

// cold reports whether the provider's cache holds nothing of the last request.
func cold(b *furl.Budget) bool {
	life := b.Model.Caching.Lifetime
	return b.Cold || life == 0 || !b.LastUse.IsZero() && b.Now.Sub(b.LastUse) > life
}

// EditSummary shows another text in the place of a summary or an extract, as
// somebody wrote it who has reviewed it. What was there before stays in the
// log, and lifting the edit shows it again. See policy.Edit.
func (s *Session) EditSummary(ctx context.Context, reduction furl.Seq, text string) (furl.Record, error) {
	var rec furl.Record
	err := s.update(ctx, onDisk, func() error {
		b, _, _ := s.budgetFor(Prompt{Model: s.meta.Model})
		red, err := policy.Edit(s.log.State(), b, reduction, text)
		if err != nil {
			return err
		}
		rec, err = s.add(furl.Person, red)
		return err
	})
	return rec, err
}
