package session

import (
	"context"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
)

// A dry run plans, tells what it would do, and sends the request as it came.
// The exchange happens all the same, so its messages, its reply and its usage
// are recorded; what the plan would have hidden is not.

// stageDry ends the steps that the exchange of a dry run records.
const stageDry = "dry-run"

// fitDry plans for what would be sent, and gives the view that is sent without the
// plan.
func (s *Session) fitDry(ctx context.Context, in Prompt) (*Fit, error) {
	b, v, counted := s.budgetFor(in)
	plan, err := s.planNow(ctx, b)
	if err != nil {
		return nil, err
	}
	// A plan's view is valid until the state changes, and the reply changes it.
	told := *plan
	told.View = nil
	fit := s.fitted(in, b, &told, counted)
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

// unreduced gives the state of the head with everything shown that policies
// and people have hidden. What the client hides itself stays as it sends it.
func (s *Session) unreduced() (*furl.State, error) {
	head := s.log.Head()
	st, err := furl.Fold(s.log, head)
	if err != nil {
		return nil, err
	}
	next := furl.Seq(s.log.Len())
	for red := range s.log.State().Reductions() {
		if red.Undone || red.Stage == event.StageClient {
			continue
		}
		next++
		lift := furl.Record{Seq: next, Parent: st.Head(), By: furl.Furl, Body: &furl.Restoration{Of: red.Seq}}
		if err := st.Apply(lift); err != nil {
			return nil, err
		}
	}
	return st, nil
}

// steps are what an exchange records of its plan. Those of a dry run say what
// would have been.
func (f *Fit) steps() []furl.PlanStep {
	if f.Plan == nil {
		return nil
	}
	if !f.Dry {
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
	return append(steps, furl.PlanStep{Stage: stageDry, Skipped: "the request was sent as it came", Before: f.Plan.Before, After: f.Plan.Before})
}

// size is the size that was expected of what is sent.
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

// elsewhere reports whether an exchange says nothing about the view of its
// place: it was a dry run, which showed what is hidden there.
func elsewhere(ex *furl.Exchange, st *furl.State) bool {
	return wasDry(ex.Plan) && event.Hides(st)
}

// wasDry reports whether the steps are those of a dry run.
func wasDry(steps []furl.PlanStep) bool {
	return len(steps) > 0 && steps[len(steps)-1].Stage == stageDry
}
