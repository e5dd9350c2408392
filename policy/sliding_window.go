package policy

import "github.com/furlhq/furl"

// SlidingWindow are the options of the preset sliding-window: the rewindable
// sliding window (T). Where it shows summaries, it truncates at once if a
// summary fails.
type SlidingWindow struct {
	// Threshold is the share of the window at which it acts. If zero, 0.85 (T).
	Threshold float64 `json:"context_threshold,omitempty"`
	// Fraction is the share of the messages after the first that a truncation
	// hides. If zero, 0.5 (T).
	Fraction float64 `json:"fraction,omitempty"`
	// SummaryOptions are those of its summaries, which are off by default (T).
	SummaryOptions
}

func (o SlidingWindow) validate() error {
	if err := validate(shareOption("context_threshold", o.Threshold), shareOption("fraction", o.Fraction)); err != nil {
		return err
	}
	return o.SummaryOptions.validate()
}

func (o SlidingWindow) build(name string, in *building) furl.Policy {
	p := &Pipeline{
		Label:     name,
		Threshold: in.threshold(o.Threshold, defaultThreshold),
		Stages:    []Stage{&Truncate{Fraction: o.Fraction}},
	}
	if isOn(o.Summary, false) {
		return p.withSummaries(o.SummaryOptions, in)
	}
	return p
}

// defaultThreshold is the share of the window at which presets with a threshold
// act by default (T, C, R).
const defaultThreshold = 0.85
