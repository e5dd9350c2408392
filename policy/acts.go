package policy

import (
	"cmp"

	"github.com/furlhq/furl"
)

// Sizes returns the size of the prompt at which a policy reduces it at the latest,
// and the size that it reduces to, both in the provider's tokens and 0 if the policy
// has no such size. Only Window, Reserve, Model and Recall of the budget count.
func Sizes(p furl.Policy, b *furl.Budget) (trigger, target int) {
	if s, ok := p.(interface {
		sizes(b *furl.Budget) (trigger, target int)
	}); ok {
		return s.sizes(b)
	}
	return 0, 0
}

// sizes are the pipeline's own, or those that follow from its Threshold and stages.
func (p *Pipeline) sizes(b *furl.Budget) (trigger, target int) {
	switch {
	case p.Acts != nil:
		trigger = p.Acts(b)
	case p.Trigger == nil && p.Threshold > 0:
		trigger = part(b.Window, p.Threshold)
	}
	for _, st := range p.Stages {
		if e, ok := st.(*Evict); ok {
			target = part(b.Window, cmp.Or(e.Target, defaultTarget))
		}
	}
	return trigger, target
}

func (p *recallOr) sizes(b *furl.Budget) (trigger, target int) {
	if b.Recall {
		return Sizes(p.Policy, b)
	}
	return Sizes(p.without, b)
}

func (p *perModel) sizes(b *furl.Budget) (trigger, target int) {
	return Sizes(p.of(b.Model.ID), b)
}

func (c chain) sizes(b *furl.Budget) (trigger, target int) { return Sizes(c.then, b) }
