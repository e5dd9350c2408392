package policy

import (
	"cmp"

	"github.com/furlhq/furl"
)

// Clear100k are the options of the preset clear-100k, which does what
// Anthropic's context editing does by default.
type Clear100k struct {
	// Trigger is the size in tokens above which it acts. If zero, 100,000
	// (Anthropic's context editing).
	Trigger int `json:"trigger,omitempty"`
	// KeepResults is how many of the newest results stay. If zero, 3
	// (Anthropic's context editing).
	KeepResults int `json:"keep_results,omitempty"`
	// Text is the template of the placeholders, see [Template]. If empty,
	// "[cleared]".
	Text string `json:"text,omitempty"`
}

func (o Clear100k) validate() error {
	return validate(number("trigger", o.Trigger), number("keep_results", o.KeepResults))
}

func (o Clear100k) build(name string, _ *building) furl.Policy {
	trigger := cmp.Or(o.Trigger, 100_000)
	return &Pipeline{
		Label:   name,
		Acts:    func(*furl.Budget) int { return trigger + 1 },
		Trigger: func(_ *furl.View, b furl.Budget) bool { return b.Size > trigger },
		Stages: []Stage{&Mask{
			KeepResults: cmp.Or(o.KeepResults, 3),
			Text:        Template(cmp.Or(o.Text, textCleared)),
		}},
	}
}
