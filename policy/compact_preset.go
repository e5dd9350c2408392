package policy

import (
	"cmp"
	"strings"
)

// autoTail is how much of the newest messages a summary leaves verbatim where
// auto shows one.
const autoTail = 20_000

// Summaries gives the stage by which the preset of that name shows summaries
// of a model, with the preset's options, and the share of the window at which
// the preset acts: a summary can be prepared with it beside the requests of a
// session whose own plans ask nobody (Compact.Prepare). The Summarizer is left
// to the caller. The stage is nil if the preset shows none: compaction and
// safeguard do, and rolling where the model cannot call recall, unless
// Options.Summary is off; sliding-window and auto if it is on.
func Summaries(name string, o Options, recall bool) (c *Compact, acts float64) {
	if o.Playback || !o.ContextManagement.is(true) {
		return nil, 0
	}
	if a, ok := aliases[name]; ok {
		name = a
	}
	acts = cmp.Or(o.Threshold, 0.85)
	name, _ = splitLevel(name)
	switch {
	case name == "compaction", name == "rolling" && !recall:
		if !o.Summary.is(true) {
			return nil, 0
		}
	case name == "sliding-window":
		if !o.Summary.is(false) {
			return nil, 0
		}
	case name == "auto", strings.HasPrefix(name, "auto:"):
		if !o.Summary.is(false) {
			return nil, 0
		}
		o.TailTokens = cmp.Or(o.TailTokens, autoTail)
		acts = forcedFirst
	default:
		return nil, 0
	}
	o.Summarizer = nil
	return newCompact(o), acts
}
