package policy

import "github.com/furlhq/furl"

// Compaction are the options of the preset compaction, also called safeguard:
// it summarizes, extracts if that fails, and truncates if that is not enough
// (C).
type Compaction struct {
	// Threshold is the share of the window at which it acts. If zero, 0.85 (C).
	Threshold float64 `json:"context_threshold,omitempty"`
	// SummaryOptions are those of its summaries, which are on by default (C).
	SummaryOptions
	// ExtractChars and ExtractTokens limit an extract; if both are set, both
	// apply. If both are zero, 1400 characters (M; tokens: furl).
	ExtractChars  int `json:"summary_max_chars,omitempty"`
	ExtractTokens int `json:"summary_max_tokens,omitempty"`
	// Fraction is the share of the messages after the first that a truncation
	// hides. If zero, 0.5 (T).
	Fraction float64 `json:"fraction,omitempty"`
}

func (o Compaction) validate() error {
	if err := validate(
		shareOption("context_threshold", o.Threshold),
		number("summary_max_chars", o.ExtractChars),
		number("summary_max_tokens", o.ExtractTokens),
		shareOption("fraction", o.Fraction),
	); err != nil {
		return err
	}
	return o.SummaryOptions.validate()
}

func (o Compaction) build(name string, in *building) furl.Policy {
	p := &Pipeline{
		Label:     name,
		Threshold: in.threshold(o.Threshold, defaultThreshold),
		Stages: []Stage{
			&Extract{MaxChars: o.ExtractChars, MaxTokens: o.ExtractTokens},
			&Truncate{Fraction: o.Fraction},
		},
	}
	if isOn(o.Summary, true) {
		return p.withSummaries(o.SummaryOptions, in)
	}
	return p
}
