package policy

import (
	"context"

	"github.com/furlhq/furl"
)

// chain is a policy that plans by one policy, then by another on the result. Its
// name is that of the second.
type chain struct{ first, then furl.Policy }

// Name is the name of the second policy.
func (c chain) Name() string { return c.then.Name() }

// Plan joins both plans. If the first fails, it is the second's plan.
func (c chain) Plan(ctx context.Context, s *furl.State, b furl.Budget) (*furl.Plan, error) {
	first, err := c.first.Plan(ctx, s, b)
	if err != nil || first == nil {
		return c.then.Plan(ctx, s, b)
	}
	b.Size = first.After
	plan, err := c.then.Plan(ctx, first.View.State, b)
	if plan == nil {
		return first, err
	}
	plan.Before = first.Before
	plan.Reductions = append(first.Reductions, plan.Reductions...)
	plan.Steps = append(first.Steps, plan.Steps...)
	plan.Warnings = append(first.Warnings, plan.Warnings...)
	plan.Backstops += first.Backstops
	plan.Own = plan.Own.Add(first.Own)
	return plan, err
}

// withoutBackstop returns a policy without its backstop.
func withoutBackstop(p furl.Policy) furl.Policy {
	if pipeline, ok := p.(*Pipeline); ok {
		front := *pipeline
		front.NoBackstop = true
		return &front
	}
	return p
}
