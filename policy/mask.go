package policy

import (
	"context"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
)

// Mask shows placeholders in place of old tool results, oldest first. Calls,
// reasoning and all other text stay, and so do the ids, names and error flags of
// the results. It never masks results of the newest step, of a step with an open
// call, or results that are kept, pinned or already replaced, except by Clip.
// Whether a result is replaced follows from records only, not from its text.
type Mask struct {
	// Label is the stage's name in records. If empty, "mask".
	Label string `json:"label,omitempty"`
	// KeepSteps is how many of the newest steps keep their results.
	KeepSteps int `json:"keep_steps,omitempty"`
	// KeepResults is how many of the newest results stay.
	KeepResults int `json:"keep_results,omitempty"`
	// LongerThan is the length in characters up to which a result stays,
	// unless it has images or documents.
	LongerThan int `json:"longer_than,omitempty"`
	// MinTokens is the size, in the provider's tokens, under which a result
	// stays.
	MinTokens int `json:"min_tokens,omitempty"`
	// Keep, if not nil, reports which other results stay.
	Keep func(r *Result) bool `json:"-"`
	// Choose, if not nil, chooses among the results that may be masked, oldest
	// first. The others stay.
	Choose func(b furl.Budget, may []Result) []Result `json:"-"`
	// Text writes the placeholders. A result stays if its placeholder is empty
	// or not smaller. If nil, "[observation masked — {chars} chars]".
	Text Writer `json:"text,omitempty"`
	// Reason is recorded with the reduction. If empty, it follows from the
	// fields above.
	Reason string `json:"reason,omitempty"`
}

func (m *Mask) validate() error {
	return validate(number("keep_steps", m.KeepSteps), number("keep_results", m.KeepResults), number("longer_than", m.LongerThan), number("min_tokens", m.MinTokens))
}

// Name is the stage's name.
func (m *Mask) Name() string {
	if m.Label == "" {
		return "mask"
	}
	return m.Label
}

// Reduce masks all results it does not keep, in one reduction.
func (m *Mask) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	return m.hide(m.pick(v, b), b)
}

// hide masks the picked results.
func (m *Mask) hide(picked []Result, b furl.Budget) (*furl.Reduction, error) {
	text := m.Text
	if text == nil {
		text = Template(textObservation)
	}
	red := &furl.Reduction{Stage: m.Name(), Reason: m.reason()}
	if len(picked) == 0 {
		return nil, Nothing
	}
	blocks := make([]*furl.ShownBlock, len(picked))
	for i := range picked {
		blocks[i] = picked[i].Block
	}
	shown := newShownNames(picked[0].View, blocks)
	for i := range picked {
		r := &picked[i]
		r.shown = shown
		if words := text(r); words != "" {
			red.Items = r.replace(red.Items, words+mediaNote(r.Block.Block.Media), b)
		}
	}
	if len(red.Items) == 0 {
		return nil, Nothing
	}
	return red, nil
}

// pick returns the results to mask, oldest first.
func (m *Mask) pick(v *furl.View, b furl.Budget) []Result {
	var picked []Result
	eachResult(v, b, func(r *Result) bool {
		if r.Age < m.KeepSteps || r.Newer < m.KeepResults {
			return false // all that follow are newer still
		}
		if m.may(r, b) {
			picked = append(picked, *r)
		}
		return true
	})
	if m.Choose != nil && len(picked) > 0 {
		return m.Choose(b, picked)
	}
	return picked
}

// may reports whether one result outside the newest may be masked.
func (m *Mask) may(r *Result, b furl.Budget) bool {
	sb := r.Block
	switch {
	case r.Unit.Newest || r.Unit.Open || sb.Hold >= furl.Keep || sb.By != 0 && !isClip(r.View, sb):
		return false
	case len(sb.Block.Media) == 0 && r.Chars() <= m.LongerThan:
		return false
	case b.Of(sb.Tokens, 0) < m.MinTokens:
		return false
	}
	return m.Keep == nil || !m.Keep(r)
}

func (m *Mask) reason() string {
	var keeps []string
	if m.Reason != "" {
		return m.Reason
	}
	if m.KeepSteps > 0 {
		keeps = append(keeps, newest(m.KeepSteps, "step"))
	}
	if m.KeepResults > 0 {
		keeps = append(keeps, newest(m.KeepResults, "result"))
	}
	if len(keeps) == 0 {
		return "tool results outside the newest step"
	}
	return "tool results outside " + strings.Join(keeps, " and ")
}

// newest is "the newest step" or "the newest 3 steps".
func newest(n int, what string) string {
	if n == 1 {
		return "the newest " + what
	}
	return fmt.Sprintf("the newest %d %ss", n, what)
}

// note describes in a record what was replaced.
func (r *Result) note() string {
	tool := r.Tool()
	if tool == "" {
		tool = "tool"
	}
	return fmt.Sprintf("%s, %d chars, %d steps old", tool, r.Chars(), r.Age)
}
