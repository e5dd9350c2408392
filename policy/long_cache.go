package policy

import "github.com/furlhq/furl"

// ExtendsCache reports whether a policy asks for cache entries of one hour for
// instructions and tools by itself, where what it hides pays for them. Only the Model of
// the budget counts.
func ExtendsCache(p furl.Policy, b *furl.Budget) bool {
	e, ok := p.(interface{ extendsCache(b *furl.Budget) bool })
	return ok && e.extendsCache(b)
}

func (p *Pipeline) extendsCache(*furl.Budget) bool { return p.longCache }

func (p *perModel) extendsCache(b *furl.Budget) bool { return ExtendsCache(p.of(b.Model.ID), b) }

func (c chain) extendsCache(b *furl.Budget) bool {
	return ExtendsCache(c.first, b) || ExtendsCache(c.then, b)
}
