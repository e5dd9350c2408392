package policy

import (
	"cmp"
	"context"
	"strings"

	"github.com/furlhq/furl"
)

// Auto are the options of the presets auto, auto:frugal and auto:faithful. How
// much they keep, and whether they hide only results, is in the name, as in
// auto:frugal:results.
type Auto struct {
	// SummaryOptions are those of its summaries, which are off by default. With
	// them, old messages are replaced by a summary where the window demands it.
	SummaryOptions
	// ShortenInputs replaces long texts in the inputs of old calls by a description.
	// By default inputs stay as the model wrote them: a model that sees shortened
	// inputs among its own calls may write such calls.
	ShortenInputs bool `json:"shorten_inputs,omitempty"`
}

func (o Auto) validate() error { return o.SummaryOptions.validate() }

// autoTail is how many of the newest tokens a summary of auto leaves verbatim.
const autoTail = 20_000

// build makes auto with the dial in its name. If hiding is not
// enough for the window, half of the messages are truncated, or old messages are
// replaced by a summary.
func (o Auto) build(name string, in *building) furl.Policy {
	base, only := splitResults(name)
	d := dials[base]
	p := &Pipeline{Label: name, Acts: demandedFrom, hourCache: true, repairs: true}
	over := Stage(&Truncate{})
	if isOn(o.Summary, false) {
		o.TailTokens = cmp.Or(o.TailTokens, autoTail)
		compact := o.stage(&in.Settings)
		p.prepare = p.prepareBy(compact)
		p.prepare.acts = forcedFirst
		if in.Summarizer != nil {
			over = FirstOf{compact, over}
		}
	}
	p.Stages = []Stage{
		&Clip{MaxTokens: d.clip, WindowShare: clipShare, Newest: true, Keep: keepFromClip},
		&auto{dial: d, onlyResults: only, inputs: o.ShortenInputs && !only},
		whenOver{over},
	}
	return p
}

// dials are the positions of the dial, by the presets' names.
var dials = map[string]dial{"auto": balanced, "auto:frugal": frugal, "auto:faithful": faithful}

// onlyResults ends the name of a preset of auto that hides only results.
const onlyResults = ":results"

// splitResults splits onlyResults off the name of a preset of auto: auto:results is
// auto, and hides only results. Other names are returned unchanged.
func splitResults(name string) (base string, only bool) {
	base, only = strings.CutSuffix(name, onlyResults)
	if _, ok := dials[base]; !only || !ok {
		return name, false
	}
	return base, true
}

// beyondUse is how many tokens of a result the model can use at most, in the
// provider's tokens. A longer result is clipped before it is first sent, which
// costs nothing. The dial frugal clips earlier.
const beyondUse = 10_000

// clipShare is the most of the window that such a result may take. It holds below 200,000
// tokens (60,000 with the dial frugal): there, what one result takes is gone for many others.
const clipShare = 0.05

// keepFromClip keeps results that were sent before, and reads of files.
func keepFromClip(r *Result) bool {
	if !r.Unit.Newest {
		return true
	}
	c := r.Call()
	return c != nil && len(useOf(c).reads) > 0
}

// whenOver is a stage that acts only on a view that does not fit.
type whenOver struct{ Stage }

// Reduce runs the stage if the view does not fit.
func (w whenOver) Reduce(ctx context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	if Over(v, b) == "" {
		return nil, Nothing
	}
	return w.Stage.Reduce(ctx, v, b)
}
