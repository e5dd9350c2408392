package policy

import (
	"cmp"
	"context"
	"strings"

	"github.com/furlhq/furl"
)

// levels are the names of auto's levels.
var levels = map[string]level{"results": levelResults, "calls": levelCalls, "full": levelFull}

// splitLevel parts a level from the name of one of auto's presets: auto:calls
// is auto at the level calls. Other names are given back whole.
func splitLevel(name string) (string, level) {
	if i := strings.LastIndexByte(name, ':'); i > 0 && strings.HasPrefix(name, "auto:") {
		if l, ok := levels[name[i+1:]]; ok {
			return name[:i], l
		}
	}
	return name, levelFull
}

// autoPreset makes auto at a position of the dial and the level in its name.
// Should hiding not be enough for the window, half of the messages go behind a
// mark, or what is old behind a summary where one is asked for.
func autoPreset(d dial) func(string, Options) furl.Policy {
	return func(name string, o Options) furl.Policy {
		_, l := splitLevel(name)
		over := Stage(&Truncate{})
		if o.Summarizer != nil && o.Summary.is(false) {
			o.TailTokens = cmp.Or(o.TailTokens, autoTail)
			over = FirstOf{newCompact(o), over}
		}
		return &Pipeline{Label: name, Stages: []Stage{
			&Clip{MaxTokens: d.clip, Newest: true, Keep: keepFromClip},
			&auto{level: l, dial: d},
			whenOver{over},
		}}
	}
}

// beyondUse is how many of the provider's tokens of a result are of use at
// most. What is longer is clipped before it is first sent, which costs nothing.
// Who is frugal draws the line earlier.
const beyondUse = 10_000

// keepFromClip keeps what was sent before, and reads of files.
func keepFromClip(r *Result) bool {
	if !r.Unit.Newest {
		return true
	}
	c := r.Call()
	return c != nil && len(useOf(c).reads) > 0
}

// whenOver is a stage that acts only on a view that does not fit.
type whenOver struct{ Stage }

// Reduce is the stage's, if the view does not fit.
func (w whenOver) Reduce(ctx context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	if over(v, b) == "" {
		return nil, Nothing
	}
	return w.Stage.Reduce(ctx, v, b)
}
