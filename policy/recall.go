package policy

import (
	"context"

	"github.com/furlhq/furl"
)

// WarnNoRecall is the code of the warning that a policy which needs recall
// works without it.
const WarnNoRecall = "no_recall"

// recallOr plans by another policy where the model cannot call recall: to
// evict what nobody can find again is amnesia (R5).
type recallOr struct {
	furl.Policy
	without furl.Policy
}

func (p *recallOr) Plan(ctx context.Context, s *furl.State, b furl.Budget) (*furl.Plan, error) {
	if b.Recall {
		return p.Policy.Plan(ctx, s, b)
	}
	plan, err := p.without.Plan(ctx, s, b)
	if plan != nil {
		plan.Warnings = append(plan.Warnings, furl.Warning{
			Code: WarnNoRecall,
			Text: p.Name() + " needs a model that can call memory_search; " + p.without.Name() + " takes its place",
		})
	}
	return plan, err
}
