package policy

import (
	"cmp"
	"context"
	"strings"

	"github.com/furlhq/furl"
)

// Auto are the options of the presets auto, auto:frugal and auto:faithful. How
// much they keep, and what they may touch, is in the name, as in
// auto:frugal:calls.
type Auto struct {
	// SummaryOptions are those of its summaries, which are off by default. With
	// them, old messages are replaced by a summary where the window demands it.
	SummaryOptions
	// ShortenInputs replaces long texts in the inputs of old calls by a description.
	// By default inputs stay as the model wrote them: a model that sees shortened
	// inputs among its own calls may write such calls. The level calls includes it.
	ShortenInputs bool `json:"shorten_inputs,omitempty"`
}

func (o Auto) validate() error { return o.SummaryOptions.validate() }

// autoTail is how many of the newest tokens a summary of auto leaves verbatim.
const autoTail = 20_000

// build makes auto with the dial and the level in its name. If hiding is not
// enough for the window, half of the messages are truncated, or old messages are
// replaced by a summary.
func (o Auto) build(name string, in *building) furl.Policy {
	base, l := splitLevel(name)
	d := dials[base]
	p := &Pipeline{Label: name, acts: demandedFrom}
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
		&Clip{MaxTokens: d.clip, Newest: true, Keep: keepFromClip},
		&auto{level: l, dial: d, inputs: o.ShortenInputs && l == levelFull || l == levelCalls},
		whenOver{over},
	}
	return p
}

// dials are the positions of the dial, by the presets' names.
var dials = map[string]dial{"auto": balanced, "auto:frugal": frugal, "auto:faithful": faithful}

// levels are the names of auto's levels.
var levels = map[string]level{"results": levelResults, "calls": levelCalls, "full": levelFull}

// splitLevel splits the level off the name of one of auto's presets: auto:calls
// is auto at the level calls. Other names are returned unchanged.
func splitLevel(name string) (string, level) {
	if i := strings.LastIndexByte(name, ':'); i > 0 && strings.HasPrefix(name, "auto:") {
		if l, ok := levels[name[i+1:]]; ok {
			return name[:i], l
		}
	}
	return name, levelFull
}

// beyondUse is how many tokens of a result the model can use at most, in the
// provider's tokens. A longer result is clipped before it is first sent, which
// costs nothing. The dial frugal clips earlier.
const beyondUse = 10_000

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
	if over(v, b) == "" {
		return nil, Nothing
	}
	return w.Stage.Reduce(ctx, v, b)
}
