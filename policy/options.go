package policy

import (
	"context"
	"encoding/json"
	"fmt"
)

// Options are the numbers and texts of all presets; each preset reads those it
// has. The zero value means the defaults, which are those of the system that a
// preset comes from: T rewindable truncation, A tool output by age, C
// compaction with archive, R rolling eviction, M observation masking. In JSON
// they have the names that docs/configuration.md explains them by.
type Options struct {
	// ContextManagement off makes every preset do nothing at all (C1).
	ContextManagement Switch `json:"context_management_enabled,omitzero"`
	// RollingContext on puts tool-age in front of the preset; off makes
	// tool-age itself do nothing (A4). The default is what was asked for: on
	// for tool-age, off for the others.
	RollingContext Switch `json:"rolling_context,omitzero"`
	// MaxAge is how many steps old a result may be for tool-age. If zero, 5
	// (A).
	MaxAge int `json:"max_age,omitempty"`
	// MaxOutputTokens is how long a result may be for tool-age before it is
	// clipped to head and tail. If zero, 2000 (A).
	MaxOutputTokens int `json:"max_tokens_per_output,omitempty"`
	// MinTokens is the size under which tool-age leaves a result alone. If
	// zero, 100 (A).
	MinTokens int `json:"min_tokens,omitempty"`
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
	// EvictionNote off makes rolling's note say only that it rolled (R).
	EvictionNote Switch `json:"eviction_note,omitzero"`
	// Summarizer writes the summaries of compaction, and those of
	// sliding-window and auto where Summary is on. If nil, there are none (C,
	// T).
	Summarizer Summarizer `json:"-"`
	// Summary off makes compaction begin with the extract; on makes
	// sliding-window and auto summarize before they truncate. The default is
	// on for compaction, off for the others (C, T).
	Summary Switch `json:"summary,omitzero"`
	// SummaryRequest asks for a summary, and SummaryContinue tells the model
	// behind it to go on. If empty, DefaultSummaryRequest and
	// DefaultContinue (C).
	SummaryRequest  string `json:"summary_request,omitempty"`
	SummaryContinue string `json:"summary_continue,omitempty"`
	// TailTokens is how much of the newest messages a summary leaves verbatim.
	// If zero, only what is protected (C; the tail: furl), and for auto
	// 20,000.
	TailTokens int `json:"tail_tokens,omitempty"`
	// SummaryTokens is the longest summary of use. If zero, a quarter of
	// what it stands for, 500 at least and 16,000 at most (furl).
	SummaryTokens int `json:"summary_tokens,omitempty"`
	// SummaryLevels is how many summaries may stand one behind the other
	// before the next one merges them all. If zero, 1 (furl).
	SummaryLevels int `json:"summary_levels,omitempty"`
	// WorkingMemory gives what the host keeps for the model, such as its plan
	// or list of files; it is told again behind each summary (C6).
	WorkingMemory func() []string `json:"-"`
	// Ask, if not nil, is asked before a policy that summarizes acts. If it
	// says no, nothing is hidden while the request fits the window.
	Ask func(ctx context.Context, size, window int) bool `json:"-"`
	// Playback says that the replies come from a recording: no preset does
	// anything (C9).
	Playback bool `json:"-"`
	// KeepResults is how many of the newest results the rolling masks and
	// clear-100k keep. If zero, 10, 5 and 3: the papers on observation
	// masking, and Anthropic's context editing.
	KeepResults int `json:"keep_results,omitempty"`
	// Trigger is the size in tokens above which clear-100k acts. If zero,
	// 100,000 (Anthropic's context editing).
	Trigger int `json:"trigger,omitempty"`
	// Enabled off makes graduated do nothing (M).
	Enabled Switch `json:"enabled,omitzero"`
	// MaxInputChars and MaxInputTokens are graduated's budget; characters
	// win. If both are zero, the window less the reserve (M; tokens: furl).
	MaxInputChars  int `json:"max_input_chars,omitempty"`
	MaxInputTokens int `json:"max_input_tokens,omitempty"`
	// KeepSteps is how many of the newest steps graduated leaves alone. If
	// zero, 4 (M, which calls them raw turns).
	KeepSteps int `json:"preserve_recent_raw_turns,omitempty"`
	// ObservationMasking off makes graduated begin with the extract (M).
	ObservationMasking Switch `json:"observation_masking,omitzero"`
	// MaxObservationChars is what may remain of a masked result; one that is
	// not longer stays. If zero, 80 (M).
	MaxObservationChars int `json:"max_observation_chars,omitempty"`
	// ExtractChars and ExtractTokens limit an extract; both hold if both are
	// set. If both are zero, 1400 characters (M; tokens: furl).
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

// Switch is an option that is on or off, and if nobody said, as its default
// is. In JSON it is true or false.
type Switch uint8

// The positions of a Switch.
const (
	Default Switch = iota
	On
	Off
)

// is gives the position, or the default.
func (s Switch) is(byDefault bool) bool { return s == On || s == Default && byDefault }

// IsZero reports whether nobody said.
func (s Switch) IsZero() bool { return s == Default }

// MarshalJSON gives true, false or null.
func (s Switch) MarshalJSON() ([]byte, error) {
	switch s {
	case On:
		return []byte("true"), nil
	case Off:
		return []byte("false"), nil
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads what MarshalJSON gives.
func (s *Switch) UnmarshalJSON(data []byte) error {
	var on *bool
	if err := json.Unmarshal(data, &on); err != nil {
		return fmt.Errorf("a switch is true or false, not %s", data)
	}
	switch {
	case on == nil:
		*s = Default
	case *on:
		*s = On
	default:
		*s = Off
	}
	return nil
}

// Validate reports the first option that makes no sense.
func (o *Options) Validate() error {
	for _, f := range [...]struct {
		name  string
		value float64
		most  float64 // 0: no limit
	}{
		{"context_threshold", o.Threshold, 1},
		{"fraction", o.Fraction, 1},
		{"target_utilization", o.Target, 1},
		{"max_age", float64(o.MaxAge), 0},
		{"max_tokens_per_output", float64(o.MaxOutputTokens), 0},
		{"min_tokens", float64(o.MinTokens), 0},
		{"min_keep_messages", float64(o.KeepMessages), 0},
		{"tail_tokens", float64(o.TailTokens), 0},
		{"summary_tokens", float64(o.SummaryTokens), 0},
		{"summary_levels", float64(o.SummaryLevels), 0},
		{"keep_results", float64(o.KeepResults), 0},
		{"trigger", float64(o.Trigger), 0},
		{"max_input_chars", float64(o.MaxInputChars), 0},
		{"max_input_tokens", float64(o.MaxInputTokens), 0},
		{"preserve_recent_raw_turns", float64(o.KeepSteps), 0},
		{"max_observation_chars", float64(o.MaxObservationChars), 0},
		{"summary_max_chars", float64(o.ExtractChars), 0},
		{"summary_max_tokens", float64(o.ExtractTokens), 0},
	} {
		switch {
		case !(f.value >= 0): // catches NaN too
			return fmt.Errorf("option %s is %v, less than 0", f.name, f.value)
		case f.most > 0 && f.value > f.most:
			return fmt.Errorf("option %s is %v, more than %v", f.name, f.value, f.most)
		}
	}
	if o.Threshold > 0 && o.Target > o.Threshold {
		return fmt.Errorf("option target_utilization is %v, above the threshold %v", o.Target, o.Threshold)
	}
	return nil
}
