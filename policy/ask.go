package policy

import (
	"context"

	"github.com/furlhq/furl"
)

// asking is a policy that asks a person before its stages run. The answer no
// leaves the view as it is while it fits the window; the backstop asks nobody.
type asking struct {
	*Pipeline
	ask func(ctx context.Context, size, window int) bool
}

// asked makes a pipeline ask, where somebody is there to answer.
func asked(p *Pipeline, o Options) furl.Policy {
	if o.Ask == nil {
		return p
	}
	return &asking{p, o.Ask}
}

func (a *asking) Plan(ctx context.Context, s *furl.State, b furl.Budget) (*furl.Plan, error) {
	if b.Force || !a.Trigger(s.View(b.Model), b) || a.ask(ctx, b.Size, b.Window) {
		return a.Pipeline.Plan(ctx, s, b)
	}
	waits := *a.Pipeline
	waits.Trigger, waits.Stages = never, nil
	plan, err := waits.Plan(ctx, s, b)
	if plan != nil && plan.Reason == "" && len(plan.Reductions) == 0 {
		plan.Reason = "declined"
	}
	return plan, err
}
