package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// ReduceOptions say what to hide.
type ReduceOptions struct {
	// Stage is what hides: one of package policy, or one's own.
	Stage policy.Stage
	// Policy is the name of a policy to plan by, if Stage is nil; if that is
	// empty, the session's own. It acts whether or not its trigger is reached.
	// One that there is none of is an ErrPolicy.
	Policy string
	// Model is what the view is for. If empty, the session's.
	Model string
	// Preamble counts as in Session.Fit.
	Preamble []furl.Block
}

// Planned is what a reduction hides, frees and costs (X3, X4).
type Planned struct {
	// Record is the reduction's own; 0 if it was only planned.
	Record furl.Seq `json:"reduction_id,omitempty"`
	Stage  string   `json:"stage"`
	Reason string   `json:"reason"`
	// Messages are replaced by a marker, Blocks show something else in place.
	Messages []furl.Seq `json:"messages,omitempty"`
	Blocks   int        `json:"blocks,omitempty"`
	// Before and After are the sizes of the context, in the provider's tokens.
	Before int       `json:"context_size_before"`
	After  int       `json:"context_size_after"`
	Cost   furl.Cost `json:"cost"`
	// Summary is what would represent the messages, "" without one.
	Summary string `json:"summary,omitempty"`
}

// Reduction is a plan made by hand.
type Reduction struct {
	Planned []Planned `json:"planned"`
	// Steps tell what each stage did, in order, and why not.
	Steps []furl.PlanStep `json:"-"`
	// Before and After are the sizes of the context.
	Before int `json:"context_size_before"`
	After  int `json:"context_size_after"`
	// Reason says why nothing or not enough was hidden, "" if all is well.
	Reason string `json:"reason,omitempty"`
}

// Preview tells what Reduce would hide, free and cost, and changes nothing.
func (s *Session) Preview(ctx context.Context, o ReduceOptions) (*Reduction, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reduction(ctx, o, false)
}

// Reduce hides something now.
func (s *Session) Reduce(ctx context.Context, o ReduceOptions) (*Reduction, error) {
	var out *Reduction
	err := s.update(ctx, onDisk, func() (err error) {
		out, err = s.reduction(ctx, o, true)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Session) reduction(ctx context.Context, o ReduceOptions, record bool) (*Reduction, error) {
	p, err := s.planner(o)
	if err != nil {
		return nil, err
	}
	b, _, _ := s.budgetFor(Prompt{Model: cmp.Or(o.Model, s.meta.Model), Preamble: o.Preamble, Digest: digestOf(o.Preamble), force: o.Stage == nil})
	plan, err := p.Plan(ctx, s.log.State(), b)
	if err != nil {
		return nil, fmt.Errorf("plan by %s: %w", p.Name(), err)
	}
	out := &Reduction{Steps: plan.Steps, Before: plan.Before, After: plan.After, Reason: plan.Reason}
	state := s.log.State()
	for _, red := range plan.Reductions {
		e, err := state.Effect(red)
		if err != nil {
			return nil, err
		}
		pl := Planned{
			Stage: red.Stage, Reason: red.Reason, Messages: e.Messages, Blocks: e.Blocks,
			Before: red.Before, After: red.After, Cost: red.Cost,
		}
		if red.Summary != nil {
			pl.Summary = red.Summary.Text
		}
		if record {
			r, err := s.add(furl.Person, red)
			if err != nil {
				return nil, err
			}
			pl.Record, state = r.Seq, s.log.State()
		} else if state, err = state.With(red); err != nil {
			return nil, err
		}
		out.Planned = append(out.Planned, pl)
	}
	return out, nil
}

// planner is the policy that somebody asks for by hand.
func (s *Session) planner(o ReduceOptions) (furl.Policy, error) {
	switch {
	case o.Stage != nil:
		return &policy.Pipeline{Label: o.Stage.Name(), Stages: []policy.Stage{o.Stage}, NoBackstop: true}, nil
	case o.Policy != "":
		p, err := s.all.live().Policies.Policy(o.Policy, s.policySettings())
		if err != nil {
			return nil, &badPolicy{err}
		}
		return p, nil
	}
	return s.plans()
}

// ErrPolicy says that there is no policy of the name that was asked for, or that
// it does not take the session's options.
var ErrPolicy = errors.New("no such policy")

type badPolicy struct{ error }

func (*badPolicy) Is(target error) bool { return target == ErrPolicy }
func (e *badPolicy) Unwrap() error      { return e.error }
