package session

import (
	"context"
	"fmt"
	"time"

	"github.com/furlhq/furl"
)

// A dry run plans, tells what it would do, and sends the request as it came.
// The exchange happens all the same, so its messages, its reply and its usage
// are recorded; what the plan would have hidden is not.

// stageDry ends the steps that the exchange of a dry run records.
const stageDry = "dry-run"

// prepareDry plans for what would be sent, and makes what is sent.
func (s *Session) prepareDry(ctx context.Context, x *Exchange) error {
	began := time.Now()
	in := x.asks(s)
	b, v, counted := s.budgetFor(in)
	var plan *furl.Plan
	err := s.withoutModel(func() error {
		p, err := s.plans()
		if err != nil {
			return err
		}
		if plan, err = p.Plan(ctx, s.log.State(), b); err != nil {
			return fmt.Errorf("plan by %s: %w", p.Name(), err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	planned := time.Now()
	x.Took.Plan += planned.Sub(began)
	defer func() { x.Took.Encode += time.Since(planned) }()
	// A plan's view is valid until the state changes, and the reply changes it.
	told := *plan
	told.View = nil
	x.Fit = s.fitted(in, b, &told, counted)
	x.Fit.Dry = true
	if s.hidesNow() {
		st, err := s.unreduced()
		if err != nil {
			return err
		}
		x.Fit.View = st.View(b.Model)
		x.Fit.sent = b.After(v, x.Fit.View).Size
		if b.Model.Thinking.Binds {
			x.Fit.prefix, x.Fit.thinking = x.Fit.View.Prefix(), x.Fit.View.LastThinking
		}
	}
	x.Body = x.req.Body
	if b.Model.Thinking.Binds && s.recallTools() != "" && len(x.offered) == 0 {
		// The prompts before had tools that this one lacks.
		x.Fit.prefix, x.Fit.thinking = furl.Digest{}, furl.Pos{}
		if body, ok := unbound(x.req, b.Model); ok {
			x.Body = body
			x.Why = "sent without the thinking that may be bound to another prompt"
		}
		return nil
	}
	// Recall is part of the session's prompts, and hides nothing.
	if x.Fit.View.Dropped > 0 || x.in.pairs.own || len(x.offered) > 0 {
		x.Body, err = x.encode(x.Fit.View)
	}
	return err
}

// peekDry is prepareDry on a draft.
func (s *Session) peekDry(ctx context.Context, x *Exchange) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.model(x.req.Model)
	_, err := s.draft(func() error {
		if err := s.attach(x.in, s.all.counter(&m)); err != nil {
			return err
		}
		x.offer(s.recallTools(), false)
		return s.prepareDry(ctx, x)
	})
	return err
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
		if red.Undone || red.Stage == stageClient {
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
	return wasDry(ex.Plan) && hiding(st)
}

// wasDry reports whether the steps are those of a dry run.
func wasDry(steps []furl.PlanStep) bool {
	return len(steps) > 0 && steps[len(steps)-1].Stage == stageDry
}

// hiding reports whether a state hides something that its client does not hide
// itself.
func hiding(st *furl.State) bool {
	for red := range st.Reductions() {
		if !red.Undone && red.Stage != stageClient {
			return true
		}
	}
	return false
}
