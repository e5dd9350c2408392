package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/furlhq/furl"
)

// Options are the numbers and texts of all presets; each preset reads those it
// has. The zero value means the defaults, each that of the system a preset
// comes from: T rewindable truncation, A tool output by age, C compaction with
// archive, R rolling eviction, M observation masking.
type Options struct {
	// Disabled makes every preset do nothing at all (C1:
	// context_management_enabled false).
	Disabled bool `json:"context_management_disabled,omitempty"`
	// Threshold is the share of the window at which sliding-window,
	// compaction and rolling act. If zero, 0.85 (T, C, R).
	Threshold float64 `json:"context_threshold,omitempty"`
	// Fraction of the messages after the first that a truncation hides. If
	// zero, 0.5 (T).
	Fraction float64 `json:"fraction,omitempty"`
	// Target is the share of the window rolling evicts down to. If zero, 0.8
	// (R).
	Target float64 `json:"target_utilization,omitempty"`
	// KeepMessages is how many of the newest messages rolling keeps. If
	// zero, 10 (R).
	KeepMessages int `json:"min_keep_messages,omitempty"`
	// NoEvictionNote makes rolling's note say only that it rolled (R).
	NoEvictionNote bool `json:"no_eviction_note,omitempty"`
	// KeepResults is how many of the newest results the rolling masks and
	// clear-100k keep. If zero, 10, 5 and 3: the papers on observation
	// masking, and Anthropic's context editing.
	KeepResults int `json:"keep_results,omitempty"`
	// Trigger is the size in tokens above which clear-100k acts. If zero,
	// 100,000 (Anthropic's context editing).
	Trigger int `json:"trigger,omitempty"`
	// Off makes graduated do nothing (M: enabled false).
	Off bool `json:"graduated_disabled,omitempty"`
	// MaxInputChars and MaxInputTokens are graduated's budget; characters
	// win. If both are zero, the window less the reserve (M; tokens: furl).
	MaxInputChars  int `json:"max_input_chars,omitempty"`
	MaxInputTokens int `json:"max_input_tokens,omitempty"`
	// KeepSteps is how many of the newest steps graduated leaves alone. If
	// zero, 4 (M, which calls them raw turns).
	KeepSteps int `json:"preserve_recent_raw_turns,omitempty"`
	// NoMasking makes graduated begin with the extract (M:
	// observation_masking false).
	NoMasking bool `json:"no_observation_masking,omitempty"`
	// MaxObservationChars is what may remain of a masked result; one that is
	// not longer stays. If zero, 80 (M).
	MaxObservationChars int `json:"max_observation_chars,omitempty"`
	// ExtractChars and ExtractTokens limit an extract; both hold if both are
	// set. If both are zero, 1400 characters (M: summary_max_chars).
	ExtractChars  int `json:"summary_max_chars,omitempty"`
	ExtractTokens int `json:"summary_max_tokens,omitempty"`
	// DispatchBegin and DispatchEnd enclose what graduated keeps of dispatch
	// results. If empty, BEGIN_DISPATCH_RESULT and END_DISPATCH_RESULT (M).
	DispatchBegin string `json:"dispatch_begin,omitempty"`
	DispatchEnd   string `json:"dispatch_end,omitempty"`
	// Text is the template of what masked results show, see Template. If
	// empty, the preset's own.
	Text string `json:"text,omitempty"`
}

// preset makes a policy of the options.
type preset struct {
	name string
	make func(name string, o Options) furl.Policy
}

var presets = []preset{
	{"none", none},
	{"sliding-window", slidingWindow},
	{"compaction", compaction},
	{"rolling", rolling},
	{"graduated", graduated},
	{"rolling-mask-10", rollingMask(10)},
	{"rolling-mask-5", rollingMask(5)},
	{"clear-100k", clear100k},
}

// aliases are other names of presets.
var aliases = map[string]string{"safeguard": "compaction"}

// Names lists the presets, without other names they go by.
func Names() []string {
	names := make([]string, len(presets))
	for i := range presets {
		names[i] = presets[i].name
	}
	return names
}

// Preset makes the policy with that name. An unknown name is an error that
// lists the known ones.
func Preset(name string, o Options) (furl.Policy, error) {
	known := name
	if a, ok := aliases[name]; ok {
		known = a
	}
	i := slices.IndexFunc(presets, func(p preset) bool { return p.name == known })
	if i < 0 {
		return nil, fmt.Errorf("no policy %q; there are %s", name, strings.Join(Names(), ", "))
	}
	if o.Disabled {
		return none(name, o), nil
	}
	return presets[i].make(name, o), nil
}

// none sends everything.
func none(name string, _ Options) furl.Policy {
	return &Pipeline{Label: name, Trigger: never, NoBackstop: true}
}

func never(*furl.View, furl.Budget) bool { return false }

// slidingWindow is the rewindable sliding window (T).
func slidingWindow(name string, o Options) furl.Policy {
	share := cmp.Or(o.Threshold, 0.85)
	return &Pipeline{
		Label:   name,
		Trigger: reached(share),
		Fits:    below(share),
		Stages:  []Stage{&Truncate{Fraction: o.Fraction}},
	}
}

// compaction summarises, else extracts, else truncates (C).
func compaction(name string, o Options) furl.Policy {
	share := cmp.Or(o.Threshold, 0.85)
	return &Pipeline{
		Label:   name,
		Trigger: reached(share),
		Fits:    below(share),
		Stages: []Stage{
			&Extract{MaxChars: o.ExtractChars, MaxTokens: o.ExtractTokens},
			&Truncate{Fraction: o.Fraction},
		},
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
			Stages:  []Stage{&Evict{Target: o.Target, KeepMessages: o.KeepMessages, NoNote: o.NoEvictionNote}},
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
