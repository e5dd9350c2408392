package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/furlhq/furl"
)

// preset makes a policy of the options.
type preset struct {
	name string
	make func(name string, o Options) furl.Policy
}

var presets = []preset{
	{"none", none},
	{toolAge, toolAgePreset},
	{"sliding-window", slidingWindow},
	{"compaction", compaction},
	{"rolling", rolling},
	{"graduated", graduated},
	{"rolling-mask-10", rollingMask(10)},
	{"rolling-mask-5", rollingMask(5)},
	{"clear-100k", clear100k},
	{"auto", autoPreset(balanced)},
	{"auto:frugal", autoPreset(frugal)},
	{"auto:faithful", autoPreset(faithful)},
}

// aliases are other names of presets.
var aliases = map[string]string{"safeguard": "compaction"}

// Names lists the presets, without other names they go by. Those of auto also
// take a level, as in auto:calls or auto:frugal:results.
func Names() []string {
	names := make([]string, len(presets))
	for i := range presets {
		names[i] = presets[i].name
	}
	return names
}

// Settings lists all that a name can choose: the presets, and those of auto at
// each level.
func Settings() []string {
	var names []string
	for i := range presets {
		name := presets[i].name
		names = append(names, name)
		if strings.HasPrefix(name, "auto") {
			names = append(names, name+":calls", name+":results")
		}
	}
	return names
}

// Preset makes the policy with that name. An unknown name is an error that
// lists the known ones; so is an option that makes no sense.
func Preset(name string, o Options) (furl.Policy, error) {
	known := name
	if a, ok := aliases[name]; ok {
		known = a
	}
	known, _ = splitLevel(known)
	i := slices.IndexFunc(presets, func(p preset) bool { return p.name == known })
	if i < 0 {
		return nil, fmt.Errorf("no policy %q; there are %s", name, strings.Join(Names(), ", "))
	}
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}
	if o.Playback || !o.ContextManagement.is(true) {
		return none(name, o), nil
	}
	p := presets[i].make(name, o)
	if o.RollingContext.is(false) && known != toolAge {
		p = inFront(p, o)
	}
	return p, nil
}

// toolAge is the preset that goes in front of others.
const toolAge = "tool-age"

// inFront puts tool-age in front of a policy (A4). Its text is the
// origin's; the option is the other policy's.
func inFront(p furl.Policy, o Options) furl.Policy {
	o.Text = ""
	return Chain{First: withoutBackstop(toolAgePreset(toolAge, o)), Then: p}
}

// Mode makes the policy of a mode of the rolling window's origin: "default" or
// "safeguard", which compact, or "rolling". Nothing rolls unless it is chosen:
// no mode is the default one (R6).
func Mode(mode string, o Options) (furl.Policy, error) {
	switch mode {
	case "", "default":
		return Preset("compaction", o)
	case "safeguard", "rolling":
		return Preset(mode, o)
	}
	return nil, fmt.Errorf("no mode %q; there are default, safeguard, rolling", mode)
}

// none sends everything.
func none(name string, _ Options) furl.Policy {
	return &Pipeline{Label: name, Trigger: never, NoBackstop: true}
}

func never(*furl.View, furl.Budget) bool { return false }

// slidingWindow is the rewindable sliding window (T). Where a summary is asked
// for and fails, it slides at once.
func slidingWindow(name string, o Options) furl.Policy {
	share := cmp.Or(o.Threshold, 0.85)
	p := &Pipeline{
		Label:   name,
		Trigger: reached(share),
		Fits:    below(share),
		Stages:  []Stage{&Truncate{Fraction: o.Fraction}},
	}
	if o.Summarizer == nil || !o.Summary.is(false) {
		return p
	}
	p.Stages[0] = FirstOf{newCompact(o), p.Stages[0]}
	return asked(p, o)
}

// compaction summarises, else extracts; truncates if that is not enough (C).
func compaction(name string, o Options) furl.Policy {
	share := cmp.Or(o.Threshold, 0.85)
	p := &Pipeline{
		Label:   name,
		Trigger: reached(share),
		Fits:    below(share),
		Stages: []Stage{
			&Extract{MaxChars: o.ExtractChars, MaxTokens: o.ExtractTokens},
			&Truncate{Fraction: o.Fraction},
		},
	}
	if o.Summarizer == nil || !o.Summary.is(true) {
		return p
	}
	p.Stages[0] = FirstOf{newCompact(o), p.Stages[0]}
	return asked(p, o)
}

// newCompact is the stage with the options of the presets.
func newCompact(o Options) *Compact {
	return &Compact{
		Summarizer: o.Summarizer,
		Request:    o.SummaryRequest,
		Continue:   o.SummaryContinue,
		TailTokens: o.TailTokens,
		MaxTokens:  o.SummaryTokens,
		Levels:     o.SummaryLevels,
		Memory:     o.WorkingMemory,
	}
}

// rolling evicts the oldest; a model that cannot recall them gets the
// safeguard instead (R).
func rolling(name string, o Options) furl.Policy {
	share := cmp.Or(o.Threshold, 0.85)
	return &recallOr{
		Policy: &Pipeline{
			Label:   name,
			Trigger: reached(share),
			Stages:  []Stage{&Evict{Target: o.Target, KeepMessages: o.KeepMessages, NoNote: !o.EvictionNote.is(true)}},
		},
		without: compaction("safeguard", o),
	}
}

// rollingMask masks all but the newest n results before every request, the
// baseline of the papers on observation masking.
func rollingMask(n int) func(string, Options) furl.Policy {
	return func(name string, o Options) furl.Policy {
		return &Pipeline{
			Label: name,
			Stages: []Stage{&Mask{
				KeepResults: cmp.Or(o.KeepResults, n),
				Text:        Template(cmp.Or(o.Text, TextObservation)),
			}},
		}
	}
}

// clear100k does what a provider's own clearing of tool uses does by default.
func clear100k(name string, o Options) furl.Policy {
	trigger := cmp.Or(o.Trigger, 100_000)
	return &Pipeline{
		Label:   name,
		Trigger: func(_ *furl.View, b furl.Budget) bool { return b.Size > trigger },
		Stages: []Stage{&Mask{
			KeepResults: cmp.Or(o.KeepResults, 3),
			Text:        Template(cmp.Or(o.Text, TextCleared)),
		}},
	}
}
