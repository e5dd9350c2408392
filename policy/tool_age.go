package policy

import (
	"cmp"
	"context"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lexer"
	"github.com/furlhq/furl/internal/namecount"
	"github.com/furlhq/furl/internal/toolscript"
)

// ToolAge are the options of the preset tool-age: before every request, whatever
// its size, it masks tool results by their age in steps, and clips long ones
// (A). It keeps errors, short results, results that a later user message quotes,
// and results that introduced a name which the calls of the newest steps still
// use. The age in the placeholder is the age at which the result was hidden; it
// does not grow, since that would change the prompt on every request.
type ToolAge struct {
	// MaxAge is how many steps old a result may be. If zero, 5 (A).
	MaxAge int `json:"max_age,omitempty"`
	// MaxOutputTokens is how long a result may be, in the provider's tokens,
	// before it is clipped to head and tail. If zero, 2000 (A).
	MaxOutputTokens int `json:"max_tokens_per_output,omitempty"`
	// MinTokens is the size, in the provider's tokens, under which a result
	// stays. If zero, 100 (A).
	MinTokens int `json:"min_tokens,omitempty"`
	// Text is the template of the placeholders, see [Template]. If empty,
	// "[content truncated - {age} steps ago]".
	Text string `json:"text,omitempty"`
}

// toolAge is the name of the preset that can run before others.
const toolAge = "tool-age"

func (o ToolAge) validate() error {
	return validate(
		number("max_age", o.MaxAge),
		number("max_tokens_per_output", o.MaxOutputTokens),
		number("min_tokens", o.MinTokens),
	)
}

func (o ToolAge) build(name string, in *building) furl.Policy {
	if !isOn(in.RollingContext, true) {
		return none{}.build(name, in)
	}
	age := &ageMask{maxAge: cmp.Or(o.MaxAge, 5), minTokens: cmp.Or(o.MinTokens, 100), text: Template(cmp.Or(o.Text, textAge))}
	return &Pipeline{
		Label:  name,
		Stages: []Stage{age, &ageClip{maxAge: age.maxAge, clip: Clip{MaxTokens: o.MaxOutputTokens}}},
	}
}

// ageMask masks results of more than maxAge steps.
type ageMask struct {
	maxAge    int
	minTokens int
	text      Writer
}

func (*ageMask) Name() string { return "mask" }

func (a *ageMask) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	use, failed := &uses{view: v, steps: a.maxAge}, newFailures(v, b)
	m := Mask{
		KeepSteps: a.maxAge + 1,
		MinTokens: a.minTokens,
		Keep:      func(r *Result) bool { return failed.stay(r.Block) || use.brought(r) },
		Text:      a.text,
		Reason:    fmt.Sprintf("tool results more than %d steps old", a.maxAge),
	}
	return m.hide(spareQuoted(m.pick(v, b)), b)
}

// ageClip clips the long results that ageMask does not mask.
type ageClip struct {
	maxAge int
	clip   Clip
}

func (c *ageClip) Name() string { return c.clip.Name() }

func (c *ageClip) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	use, failed := &uses{view: v, steps: c.maxAge}, newFailures(v, b)
	clip := c.clip
	clip.Keep = func(r *Result) bool {
		return failed.stay(r.Block) || r.Age > c.maxAge && use.brought(r)
	}
	return clip.hide(spareQuoted(clip.pick(v, b)), b)
}

// uses looks up which names the calls of the newest steps use.
type uses struct {
	view  *furl.View
	steps int
	names map[string]bool // nil: not collected yet
}

// brought reports whether the result introduced a name that these calls use: one
// that the assistant had not used before the result (A5).
func (u *uses) brought(r *Result) bool {
	if u.names == nil {
		u.collect()
	}
	if len(u.names) == 0 {
		return false
	}
	s := u.view.State
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
		written := isWritten(&newest[i])
		for j := range newest[i].Blocks {
			b := newest[i].Blocks[j].Block
			call := b.Kind == furl.KindCall || written && b.Kind == furl.KindText && !b.Observation
			if newest[i].Kind != furl.UnitStep || !call {
				continue
			}
			for text := range toolscript.Texts(b) {
				for name := range lexer.Names(text) {
					u.names[name] = true
				}
			}
		}
	}
}
