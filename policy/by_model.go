package policy

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/furlhq/furl"
)

// ModelRule gives some models a policy of their own.
type ModelRule struct {
	// Model is a pattern as of path.Match for the model's name, such as
	// "claude-*".
	Model string
	// Policy is the name of the policy. If empty, the policy that the rule is
	// for.
	Policy string
	// Policies make it. If nil, the Set that the rule is in.
	Policies *Set
	// Window is the context window to stay within, in tokens. If zero, the
	// model's. It holds for all policies; see Set.Window.
	Window int
}

// matches reports whether the rule is for a model.
func (r *ModelRule) matches(model string) bool {
	ok, _ := path.Match(r.Model, model)
	return ok
}

// ByModel makes the policy with that name plan by the first rule that matches
// the model of a request. Other models keep the policy. Call it once for a name;
// later rules replace earlier ones.
func (s *Set) ByModel(name string, rules ...ModelRule) {
	own := map[string][]ModelRule{name: rules}
	for other, rules := range s.rules {
		if other != name {
			own[other] = rules
		}
	}
	s.rules = own
}

// Window returns the context window in tokens that the rules set for a model, 0 if
// they set none. Budgets must be made with it: plans do not read it.
func (s *Set) Window(model string) int {
	for _, name := range slices.Sorted(maps.Keys(s.rules)) {
		for i := range s.rules[name] {
			if r := &s.rules[name][i]; r.matches(model) {
				if r.Window > 0 {
					return r.Window
				}
				break
			}
		}
	}
	return 0
}

// perModel is a policy that plans by the policies of models.
type perModel struct {
	furl.Policy // of models without a rule
	rules       []ModelRule
	policies    []furl.Policy // of the rules
}

func (s *Set) byModel(name string, settings Settings, rules []ModelRule) (furl.Policy, error) {
	p := &perModel{rules: rules, policies: make([]furl.Policy, len(rules))}
	var err error
	if p.Policy, err = s.policy(name, settings); err != nil {
		return nil, err
	}
	for i, r := range rules {
		if r.Policy == "" {
			p.policies[i] = p.Policy
			continue
		}
		set := r.Policies
		if set == nil {
			set = s
		}
		if p.policies[i], err = set.policy(r.Policy, settings); err != nil {
			return nil, fmt.Errorf("model %s: %w", r.Model, err)
		}
	}
	return p, nil
}

// Plan plans by the policy of the budget's model.
func (p *perModel) Plan(ctx context.Context, s *furl.State, b furl.Budget) (*furl.Plan, error) {
	return p.of(b.Model.ID).Plan(ctx, s, b)
}

func (p *perModel) summaryStage(b *furl.Budget) (*Compact, float64) {
	return SummaryStage(p.of(b.Model.ID), b)
}

// of returns the policy of a model.
func (p *perModel) of(model string) furl.Policy {
	for i := range p.rules {
		if p.rules[i].matches(model) {
			return p.policies[i]
		}
	}
	return p.Policy
}
