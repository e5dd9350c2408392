package policy

import "github.com/furlhq/furl"

// WantsHourCache reports whether a policy asks for cache entries of one hour for
// instructions and tools by itself, where what it hides pays for them. Only the Model of
// the budget counts.
func WantsHourCache(p furl.Policy, b *furl.Budget) bool {
	e, ok := p.(interface{ wantsHourCache(b *furl.Budget) bool })
	return ok && e.wantsHourCache(b)
}

func (p *Pipeline) wantsHourCache(*furl.Budget) bool { return p.hourCache }

func (p *perModel) wantsHourCache(b *furl.Budget) bool { return WantsHourCache(p.of(b.Model.ID), b) }

func (c chain) wantsHourCache(b *furl.Budget) bool {
	return WantsHourCache(c.first, b) || WantsHourCache(c.then, b)
}
