package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/transact"
)

// A dry run plans, reports the plan, and sends the request unchanged. The messages,
// the reply and the usage are recorded; the plan's reductions are not.

// stageDry is the last step in the recorded exchange of a dry run.
const stageDry = "dry-run"

// planDryRun plans without recording reductions, and returns the view that is sent.
func (s *Session) planDryRun(ctx context.Context, in transact.Prompt) (*Fit, error) {
	b, v, counted := s.budgetFor(in)
	plan, err := s.runPolicy(ctx, in, b)
	if err != nil {
		return nil, err
	}
	// The plan's view is invalid once the reply changes the state.
	told := *plan
	told.View = nil
	fit := s.newFit(in, b, &told, counted)
	fit.Dry, fit.Unbound = true, in.Unbound
	if event.Hides(s.log.State()) {
		st, err := s.unreduced()
		if err != nil {
			return nil, err
		}
		fit.View = st.View(b.Model)
		fit.sent = b.After(v, fit.View).Size
		if b.Model.Thinking.Binds {
			fit.prefix, fit.thinking = fit.View.Prefix(), fit.View.LastThinking
		}
	}
	if in.Unbound {
		fit.prefix, fit.thinking = furl.Digest{}, furl.Pos{}
	}
	return fit, nil
}

// unreduced returns the state of the head with all reductions undone except those
// of the client.
func (s *Session) unreduced() (*furl.State, error) {
	st, err := furl.Fold(s.log, s.log.Head())
	if err != nil {
		return nil, err
	}
	return st, s.undoAll(st)
}

// undoAll undoes all reductions of a state except those of the client.
func (s *Session) undoAll(st *furl.State) error {
	next := furl.Seq(s.log.Len())
	for _, red := range slices.Collect(st.Reductions()) {
		if red.Undone || red.External() {
			continue
		}
		next++
		undo := furl.Record{Seq: next, Parent: st.Head(), By: furl.Furl, Body: &furl.Restoration{Of: red.Seq}}
		if err := st.Apply(undo); err != nil {
			return err
		}
	}
	return nil
}

// PlanSteps returns the plan steps that an exchange records, with the warnings of the
// plan first. Those of a dry run say what it would have hidden.
func (f *Fit) PlanSteps() []furl.PlanStep {
	if f.Plan == nil {
		return nil
	}
	var warnings []furl.PlanStep
	for _, w := range f.Plan.Warnings {
		warnings = append(warnings, furl.PlanStep{Stage: event.StageWarning + w.Code, Skipped: w.Text, Before: f.Plan.Before, After: f.Plan.Before})
	}
	return append(warnings, f.stageSteps()...)
}

func (f *Fit) stageSteps() []furl.PlanStep {
	if !f.Dry {
		if f.HourCache {
			return append(slices.Clip(f.Plan.Steps), hourStep(f.Plan.After))
		}
		return f.Plan.Steps
	}
	steps := make([]furl.PlanStep, 0, len(f.Plan.Steps)+1)
	for _, st := range f.Plan.Steps {
		if st.Skipped == "" {
			st.Skipped = fmt.Sprintf("dry run: it would have hidden %d, from %d to %d tokens", st.Hidden, st.Before, st.After)
			st.After, st.Hidden = st.Before, 0
		}
		steps = append(steps, st)
	}
	return append(steps, furl.PlanStep{Stage: stageDry, Skipped: "the request was sent unchanged", Before: f.Plan.Before, After: f.Plan.Before})
}

// size returns the estimated size of the request in tokens.
func (f *Fit) size() int {
	switch {
	case f.Plan == nil:
		return f.Budget.Size
	case f.Dry && f.sent > 0:
		return f.sent
	case f.Dry:
		return f.Plan.Before
	}
	return f.Plan.After
}

// showedUnreduced reports whether an exchange was a dry run that showed hidden
// blocks, so that its usage says nothing about the view.
func showedUnreduced(ex *furl.Exchange, st *furl.State) bool {
	return wasDry(ex.Plan) && event.Hides(st)
}

// wasDry reports whether the steps are those of a dry run.
func wasDry(steps []furl.PlanStep) bool {
	return len(steps) > 0 && steps[len(steps)-1].Stage == stageDry
}
