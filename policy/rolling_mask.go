package policy

import (
	"cmp"

	"github.com/furlhq/furl"
)

// RollingMask are the options of the presets rolling-mask-10 and
// rolling-mask-5: before every request they mask all results but the newest,
// the baseline of the papers on observation masking.
type RollingMask struct {
	// KeepResults is how many of the newest results stay. If zero, the number
	// in the preset's name, 10 or 5.
	KeepResults int `json:"keep_results,omitempty"`
	// Text is the template of the placeholders, see [Template]. If empty,
	// "[observation masked — {chars} chars]".
	Text string `json:"text,omitempty"`
}

func (o RollingMask) validate() error { return validate(number("keep_results", o.KeepResults)) }

func (o RollingMask) build(name string, _ *building) furl.Policy {
	keep := 10
	if name == "rolling-mask-5" {
		keep = 5
	}
	return &Pipeline{
		Label: name,
		Stages: []Stage{&Mask{
			KeepResults: cmp.Or(o.KeepResults, keep),
			Text:        Template(cmp.Or(o.Text, textObservation)),
		}},
	}
}
