package session

import (
	"cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/token"
)

// Scale converts the parts of a view into the provider's tokens so that they add up
// to the size of the prompt: the sum of PerToken for each counted token, PerItem for
// each tool call and result, and Fixed, up to rounding. Thinking that the provider
// drops does not count; in a view, it has 0 tokens.
type Scale struct {
	PerToken, PerItem float64
	// Fixed is the size of what is not in the view, such as instructions and tools.
	Fixed int
}

// Of returns the size of a part of a view.
func (s Scale) Of(counted, items int) int {
	b := furl.Budget{Scale: s.PerToken, PerItem: s.PerItem}
	return b.Of(counted, items)
}

// scaleOf returns the scale of a prompt of this size.
func scaleOf(cal token.Calibration, view token.Part, size int) Scale {
	return fitScale(Scale{PerToken: cal.Scale(), PerItem: cal.PerItem()}, cal.Added(view), size)
}

// fitScale returns a scale with which a view whose parts are added adds up to a size.
func fitScale(s Scale, added, size int) Scale {
	if s.Fixed = size - added; s.Fixed < 0 {
		shrink := float64(size) / float64(added)
		s.PerToken, s.PerItem, s.Fixed = s.PerToken*shrink, s.PerItem*shrink, 0
	}
	return s
}

// Composition are the parts of the next request that are not in its view, and the
// Scale of its view. System and Tools add up to Scale.Fixed.
type Composition struct {
	Size          int
	Scale         Scale
	System, Tools int
}

// Composition returns how the next request to a model is composed. model is its name
// in requests; "" is the session's model. The size of instructions and tools is that
// of the latest request.
func (s *Session) Composition(model string) (out Composition) {
	s.Internal().Read(func(c *open.Change) { out = compositionOf(c, model) })
	return out
}

func compositionOf(now *open.Change, model string) Composition {
	b, v, _ := now.BudgetFor(open.Prompt{Model: cmp.Or(model, now.Meta().Model)})
	c := Composition{Size: b.Size, Scale: fitScale(Scale{PerToken: b.Scale, PerItem: b.PerItem}, b.Of(v.Tokens, v.Items), b.Size)}
	c.Tools = int(float64(c.Scale.Fixed) * now.Meta().ToolShare)
	c.System = c.Scale.Fixed - c.Tools
	return c
}
