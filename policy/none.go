package policy

import "github.com/furlhq/furl"

// none is the preset that hides nothing. It has no options.
type none struct{}

func (none) validate() error { return nil }

func (none) build(name string, _ *building) furl.Policy {
	return &Pipeline{Label: name, Trigger: never, NoBackstop: true}
}

func never(*furl.View, furl.Budget) bool { return false }

// HidesNothing reports whether a policy never hides anything for the budget's model, as
// none does, and as every policy does while context management is off.
func HidesNothing(p furl.Policy, b *furl.Budget) bool {
	e, ok := p.(interface{ hidesNothing(b *furl.Budget) bool })
	return ok && e.hidesNothing(b)
}

func (p *Pipeline) hidesNothing(*furl.Budget) bool { return len(p.Stages) == 0 && p.NoBackstop }

func (p *perModel) hidesNothing(b *furl.Budget) bool { return HidesNothing(p.of(b.Model.ID), b) }

func (c chain) hidesNothing(b *furl.Budget) bool {
	return HidesNothing(c.first, b) && HidesNothing(c.then, b)
}
