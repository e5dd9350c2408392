package policy

import (
	"cmp"
	"context"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lexer"
	"github.com/furlhq/furl/internal/namecount"
)

// ToolAge masks tool results by their age in steps, before every request and
// whatever the size (A). It keeps errors, short results, results
// that a later user message quotes, and results that brought a name which the
// calls of the newest steps still use. The age in its text is the one at which
// a result was hidden; it is not counted on, since that would change the
// prompt on every request.
type ToolAge struct {
	// MaxAge is how many steps old a result may be. If zero, 5.
	MaxAge int
	// MinTokens is the size, in the provider's tokens, under which a result
	// stays. If zero, 100.
	MinTokens int
	// Text writes what is shown instead. If nil, the text is TextAge.
	Text Writer
}

// Name is "mask".
func (a *ToolAge) Name() string { return "mask" }

// Reduce masks what is too old.
func (a *ToolAge) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	text := a.Text
	if text == nil {
		text = Template(TextAge)
	}
	use := &uses{view: v, steps: a.maxAge()}
	m := Mask{
		KeepSteps: a.maxAge() + 1,
		MinTokens: cmp.Or(a.MinTokens, 100),
		Keep:      func(r *Result) bool { return r.Block.Block.Error || use.brought(r) },
		Text:      text,
		Reason:    fmt.Sprintf("tool results more than %d steps old", a.maxAge()),
	}
	return m.hide(spareQuoted(m.pick(v, b)), b)
}

func (a *ToolAge) maxAge() int { return cmp.Or(a.MaxAge, 5) }

// ageClip clips what ToolAge does not mask: what is younger, and long.
type ageClip struct {
	age  *ToolAge
	clip Clip
}

func (c *ageClip) Name() string { return c.clip.Name() }

func (c *ageClip) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	use := &uses{view: v, steps: c.age.maxAge()}
	clip := c.clip
	clip.Keep = func(r *Result) bool {
		return r.Block.Block.Error || r.Age > c.age.maxAge() && use.brought(r)
	}
	return clip.hide(spareQuoted(clip.pick(v, b)), b)
}

// uses tells which names the calls of the newest steps use.
type uses struct {
	view  *furl.View
	steps int
	names map[string]bool // nil: not looked up yet
}

// brought reports whether the result brought a name that these calls use:
// first-hand, so not one that the assistant had used before (A5).
func (u *uses) brought(r *Result) bool {
	if u.names == nil {
		u.collect()
	}
	if len(u.names) == 0 {
		return false
	}
	s := u.view.State()
	at, ok := s.Find(r.Block.Pos.Msg)
	if !ok {
		return false
	}
	for name := range lexer.Names(r.Block.Block.Text) {
		if !u.names[name] {
			continue
		}
		if own, ok := namecount.FirstUse(s, name); ok && own > at {
			return true
		}
	}
	return false
}

func (u *uses) collect() {
	u.names = make(map[string]bool)
	newest := u.view.Units[firstNew(u.view, u.steps):]
	for i := range newest {
		for j := range newest[i].Blocks {
			b := newest[i].Blocks[j].Block
			if newest[i].Kind != furl.UnitStep || b.Kind != furl.KindCall {
				continue
			}
			for text := range b.Texts() {
				for name := range lexer.Names(text) {
					u.names[name] = true
				}
			}
		}
	}
}

// toolAgePreset masks by age and clips, before every request (A).
func toolAgePreset(name string, o Options) furl.Policy {
	if !o.RollingContext.is(true) {
		return none(name, o)
	}
	age := &ToolAge{MaxAge: o.MaxAge, MinTokens: o.MinTokens, Text: Template(cmp.Or(o.Text, TextAge))}
	return &Pipeline{
		Label:  name,
		Stages: []Stage{age, &ageClip{age: age, clip: Clip{MaxTokens: o.MaxOutputTokens}}},
	}
}
