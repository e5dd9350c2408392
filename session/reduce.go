package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
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
		var out *Reduction
		var err error
		s.Internal().Read(func(c *open.Change) { out, err = reduction(ctx, c, o) })
		return out, err
	}
	var out *Reduction
	err := s.Internal().Update(ctx, open.OnDisk, func(c *open.Change) (err error) {
		out, err = reduction(ctx, c, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func reduction(ctx context.Context, c *open.Change, o ReduceOptions) (*Reduction, error) {
	p, err := planner(c, o)
	if err != nil {
		return nil, err
	}
	b, view, _ := c.BudgetFor(open.Prompt{Model: cmp.Or(o.Model, c.Meta().Model), Preamble: o.Preamble, Digest: open.PreambleDigest(o.Preamble), Force: o.Stage == nil})
	state := c.Log().State()
	var plan *furl.Plan
	if o.Stage == nil && appliedBefore(ctx, c, o.Policy, view, b) {
		plan = &furl.Plan{Before: b.Size, After: b.Size, View: view, Reason: nothingMore}
	} else if plan, err = p.Plan(ctx, state, b); err != nil {
		return nil, fmt.Errorf("plan by %s: %w", p.Name(), err)
	}
	outcome, err := policy.OutcomeOf(p, state, &b, plan)
	if err != nil {
		return nil, err
	}
	out := &Reduction{Outcome: outcome, Steps: plan.Steps}
	if o.Stage == nil && c.PolicySettings().Off {
		out.Reason = "context management is off (context_management_enabled is false)"
	}
	for i, red := range plan.Reductions {
		if !o.DryRun {
			r, err := c.Append(furl.Person, red)
			if err != nil {
				return nil, err
			}
			out.Planned[i].Record, state = r.Seq, c.Log().State()
		} else if state, err = state.With(red); err != nil {
			return nil, err
		}
	}
	out.Price = policy.PriceOf(view, state.View(b.Model), b)
	return out, nil
}

// nothingMore is the reason why a policy that was just applied hides nothing.
const nothingMore = "there is nothing more to hide since it was last applied"

// maxApplied is the largest number of reductions of one plan that appliedBefore finds.
const maxApplied = 8

// appliedBefore reports whether the newest records are the reductions of a person that the
// policy plans without them. Some policies, such as sliding-window, would hide more of the
// same messages each time they are applied. No model is asked.
func appliedBefore(ctx context.Context, c *open.Change, name string, view *furl.View, b furl.Budget) bool {
	set := c.PolicySettings()
	set.Summarizer = nil
	p, err := c.Options().Policies.Policy(cmp.Or(name, c.PolicyName()), set)
	if err != nil {
		return false // the session has an unknown policy, and uses the default
	}
	path := c.Log().Path(c.Log().Head())
	for n := 1; n <= min(maxApplied, len(path)); n++ {
		done := path[len(path)-n:]
		if _, ok := done[0].Body.(*furl.Reduction); !ok || done[0].By != furl.Person {
			return false
		}
		st := new(furl.State)
		for _, r := range path[:len(path)-n] {
			if st.Apply(r) != nil {
				return false // cannot happen: the log has folded it
			}
		}
		plan, err := p.Plan(ctx, st, b.After(view, st.View(b.Model)))
		if err == nil && slices.EqualFunc(plan.Reductions, done, samePlan) {
			return true
		}
	}
	return false
}

// samePlan reports whether a planned reduction covers the same as a recorded one.
func samePlan(planned *furl.Reduction, r furl.Record) bool {
	red := r.Body.(*furl.Reduction)
	return planned.Stage == red.Stage && slices.EqualFunc(planned.Items, red.Items, func(a, b furl.Item) bool { return slices.Equal(a.Spans, b.Spans) })
}

// planner returns the policy that the options ask for.
func planner(c *open.Change, o ReduceOptions) (furl.Policy, error) {
	switch {
	case o.Stage != nil:
		return &policy.Pipeline{Label: o.Stage.Name(), Stages: []policy.Stage{o.Stage}, NoBackstop: true}, nil
	case o.Policy != "":
		p, err := c.Options().Policies.Policy(o.Policy, c.PolicySettings())
		if err != nil {
			return nil, &invalid{err}
		}
		return p, nil
	}
	return c.Policy()
}
