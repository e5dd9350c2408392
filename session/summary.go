package session

import (
	"context"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/policy"
)

// SummaryStage returns the stage that should prepare a summary after a fit, nil if
// none is due. One is due if the prompt was close to the policy's trigger, and no
// summary is being prepared or ready for this path. The caller sets the stage's
// Summarizer.
func (s *Session) SummaryStage(f *policy.Fit) *policy.Compact { return s.Internal().SummaryStage(f) }

// PrepareSummary prepares a summary for the session's state after a fit. The session
// can be used meanwhile. It records nothing: the summary is kept in memory for the
// next plan with a reduction, or with the setting ask_first, it is stored and waits for
// DecideSummary. It returns false if there is nothing to summarize, or if a
// summary is already being prepared.
func (s *Session) PrepareSummary(ctx context.Context, f *policy.Fit, c *policy.Compact) (ready bool, err error) {
	return s.Internal().PrepareSummary(ctx, f, c)
}

// RecordSummaries records the ready summaries (PrepareSummary) of idle sessions of
// all tenants: those whose prompt cache has expired, or all of them if ending is set
// because the process is about to end. It skips summaries for another branch and
// sessions with an exchange in flight. It returns how many it recorded.
func (a *Sessions) RecordSummaries(ctx context.Context, ending bool) (n int, err error) {
	return a.open.RecordSummaries(ctx, ending)
}

// EditSummary replaces the text of a summary or an extract. The old text stays in the
// log; undoing the edit shows it again. Reductions lists all texts of a summary, with
// the same Number. See policy.Edit. Reduction 0 is the summary that waits for approval
// (WaitingSummary); no record is returned for it.
func (s *Session) EditSummary(ctx context.Context, reduction furl.Seq, text string) (furl.Record, error) {
	if reduction == 0 {
		return furl.Record{}, s.Internal().EditWaiting(ctx, text)
	}
	var rec furl.Record
	err := s.Internal().Update(ctx, open.OnDisk, func(c *open.Change) error {
		b, _, _ := c.BudgetFor(open.Prompt{Model: c.Meta().Model})
		red, err := policy.Edit(c.Log().State(), b, reduction, text)
		if err != nil {
			return err
		}
		rec, err = c.Append(furl.Person, red)
		return err
	})
	return rec, err
}

// States of Session.WaitingSummary.
const (
	waitingState = "waiting"
	offPathState = "off_path" // its messages are not on the current path
	unusedState  = "unusable" // it cannot be used, or would not make the prompt smaller
)

// WaitingSummary returns the summary that waits for a person's approval, nil if there is
// none. Its State is waiting, off_path if its messages are not on the current path, or
// unusable if it cannot be used, for example because its messages were pinned or because
// the prompt would not become smaller. If it is waiting, the sizes and the number of
// messages are those that DecideSummary would record now. CoveredBy are the reductions
// that replace its messages by a marker meanwhile.
func (s *Session) WaitingSummary() (out *Recorded) {
	s.Internal().Read(func(c *open.Change) {
		if w := c.Waiting(); w != nil {
			out = waitingSummary(c, w)
		}
	})
	return out
}

func waitingSummary(c *open.Change, w *open.PendingSummary) *Recorded {
	out := &Recorded{
		Reduced: policy.Reduced{
			Stage: w.Red.Stage, Time: w.Since, Before: w.Red.Before, After: w.Red.After, Reason: w.Red.Reason,
			Summary: w.Text(), Model: w.Red.Summary.Model, Archived: w.Red.Summary.Messages,
		},
		State: offPathState, Cost: w.Red.Cost, By: furl.Furl,
	}
	if w.Edited != "" {
		out.Reason += "; edited"
	}
	if _, err := c.Log().State().Effect(w.Red); err != nil {
		return out
	}
	out.State, out.CoveredBy = unusedState, c.OvertakenBy(w)
	if lifts, red, err := c.PlanApproved(w); err == nil {
		out.State, out.Before, out.After, out.Archived = waitingState, red.Before, red.After, red.Summary.Messages
		if len(lifts) > 0 { // red.Before is the size without what would be undone
			b, _, _ := c.BudgetFor(open.Prompt{Model: w.Model})
			out.Before = b.Size
		}
	}
	return out
}

// DecideSummary approves or refuses the summary that waits for approval. An approved
// summary is recorded at once, and DecideSummary returns its record. Reductions that have
// replaced its messages by a marker meanwhile are undone if the prompt stays small
// enough. If an edited summary is approved, the model's text is recorded before it.
//
// If no summary waits, or it is for another branch, the error wraps furl.ErrNotOnPath. If
// it cannot be used, for example because its messages were pinned or the prompt would not
// become smaller, the error wraps furl.ErrConflict. The summary waits on after an error.
func (s *Session) DecideSummary(ctx context.Context, approve bool) (rec furl.Seq, err error) {
	return s.Internal().DecideSummary(ctx, approve)
}
