package session

import (
	"cmp"
	"context"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/transact"
	"github.com/furlhq/furl/policy"
)

// ReduceOptions are the options of Reduce.
type ReduceOptions struct {
	// Stage is the stage to run, one of package policy or another.
	Stage policy.Stage
	// Policy is the name of the policy to plan by if Stage is nil. If empty,
	// defaults to the session's policy. It acts even below its trigger. If it is
	// unknown, the error wraps ErrInvalid.
	Policy string
	// Model is the model of the view. If empty, defaults to the session's.
	Model string
	// Preamble counts as in Session.Fit.
	Preamble []furl.Block
	// DryRun changes nothing: the result is what Reduce would hide, free and cost.
	DryRun bool
}

// Reduction is the result of Reduce.
type Reduction struct {
	policy.Outcome
	// Steps are the results of the stages in order.
	Steps []furl.PlanStep `json:"-"`
	// Price is what all of that together does to the price of later requests.
	Price policy.Price `json:"-"`
}

// Reduce plans by a stage or policy now, and records the reductions.
func (s *Session) Reduce(ctx context.Context, o ReduceOptions) (*Reduction, error) {
	if o.DryRun {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.reduction(ctx, o)
	}
	var out *Reduction
	err := s.update(ctx, onDisk, func() (err error) {
		out, err = s.reduction(ctx, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Session) reduction(ctx context.Context, o ReduceOptions) (*Reduction, error) {
	p, err := s.planner(o)
	if err != nil {
		return nil, err
	}
	b, view, _ := s.budgetFor(transact.Prompt{Model: cmp.Or(o.Model, s.meta.Model), Preamble: o.Preamble, Digest: preambleDigest(o.Preamble), Force: o.Stage == nil})
	plan, err := p.Plan(ctx, s.log.State(), b)
	if err != nil {
		return nil, fmt.Errorf("plan by %s: %w", p.Name(), err)
	}
	state := s.log.State()
	outcome, err := policy.OutcomeOf(p, state, &b, plan)
	if err != nil {
		return nil, err
	}
	out := &Reduction{Outcome: outcome, Steps: plan.Steps}
	if o.Stage == nil && s.policySettings().Off {
		out.Reason = "context management is off (context_management_enabled is false)"
	}
	for i, red := range plan.Reductions {
		if !o.DryRun {
			r, err := s.appendRecord(furl.Person, red)
			if err != nil {
				return nil, err
			}
			out.Planned[i].Record, state = r.Seq, s.log.State()
		} else if state, err = state.With(red); err != nil {
			return nil, err
		}
	}
	out.Price = policy.PriceOf(view, state.View(b.Model), b)
	return out, nil
}

// planner returns the policy that the options ask for.
func (s *Session) planner(o ReduceOptions) (furl.Policy, error) {
	switch {
	case o.Stage != nil:
		return &policy.Pipeline{Label: o.Stage.Name(), Stages: []policy.Stage{o.Stage}, NoBackstop: true}, nil
	case o.Policy != "":
		p, err := s.all.live().Policies.Policy(o.Policy, s.policySettings())
		if err != nil {
			return nil, &invalid{err}
		}
		return p, nil
	}
	return s.sessionPolicy()
}
