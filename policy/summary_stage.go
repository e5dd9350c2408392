package policy

import "github.com/furlhq/furl"

// SummaryOptions are the options of the summaries that a preset shows. A
// Summarizer writes them, see [Settings].
type SummaryOptions struct {
	// Summary turns summaries on or off. If nil, the preset's default: on for
	// compaction, off for sliding-window and auto (C, T).
	Summary *bool `json:"summary,omitempty"`
	// SummaryRequest asks the model for a summary. If empty,
	// DefaultSummaryRequest (C).
	SummaryRequest string `json:"summary_request,omitempty"`
	// SummaryContinue follows the summary and tells the model to continue. If
	// empty, DefaultContinue (C).
	SummaryContinue string `json:"summary_continue,omitempty"`
	// SummaryTokens is the longest summary to accept, in the provider's tokens.
	// If zero, a quarter of what the summary replaces, at least 500 and at
	// most 16,000 (furl).
	SummaryTokens int `json:"summary_tokens,omitempty"`
	// SummaryLevels is how many summaries may follow one another before the
	// next one merges them all. If zero, 1 (furl).
	SummaryLevels int `json:"summary_levels,omitempty"`
	// TailTokens is how much of the newest messages stays verbatim, in the
	// provider's tokens. If zero, only what is protected, and for auto 20,000
	// (C; the tail: furl).
	TailTokens int `json:"tail_tokens,omitempty"`
}

func (o *SummaryOptions) validate() error {
	return validate(
		number("summary_tokens", o.SummaryTokens),
		number("summary_levels", o.SummaryLevels),
		number("tail_tokens", o.TailTokens),
	)
}

// stage returns the stage with these options.
func (o *SummaryOptions) stage(s *Settings) *Compact {
	return &Compact{
		Summarizer: s.Summarizer,
		Request:    o.SummaryRequest,
		Continue:   o.SummaryContinue,
		TailTokens: o.TailTokens,
		MaxTokens:  o.SummaryTokens,
		Levels:     o.SummaryLevels,
		Memory:     s.WorkingMemory,
	}
}

// withSummaries makes a pipeline show summaries in place of what its first
// stage does. Without a Summarizer its plans stay the same; a summary can be
// prepared outside of them (SummaryStage).
func (p *Pipeline) withSummaries(o SummaryOptions, in *building) furl.Policy {
	p.Stages[0] = FirstOf{o.stage(&in.Settings), p.Stages[0]}
	return p.with(&in.Settings)
}

// SummaryStage returns the stage by which a policy shows summaries, and the
// share of the window at which the policy acts. With that stage a session can
// prepare a summary outside of its plans (Compact.Prepare). The stage has no
// Summarizer; the caller sets it. The stage is nil if the policy shows no
// summaries within this budget.
func SummaryStage(p furl.Policy, b *furl.Budget) (c *Compact, acts float64) {
	if p, ok := p.(summarizing); ok {
		return p.summaryStage(b)
	}
	return nil, 0
}

// summarizing is a policy that may show summaries.
type summarizing interface {
	summaryStage(b *furl.Budget) (c *Compact, acts float64)
}

// preparation is how summaries are prepared outside of a policy's plans.
type preparation struct {
	stage *Compact // without a Summarizer; nil: not at all
	acts  float64  // the share of the window at which the policy acts
}

func (p *Pipeline) prepareBy(c *Compact) preparation {
	stage := *c
	stage.Summarizer = nil
	return preparation{&stage, p.Threshold}
}

func (p *Pipeline) summaryStage(b *furl.Budget) (*Compact, float64) {
	if p.prepare.stage == nil {
		return nil, 0
	}
	stage := *p.prepare.stage
	acts := p.prepare.acts
	if acts == 0 && p.Acts != nil && b.Window > 0 {
		acts = float64(p.Acts(b)) / float64(b.Window)
	}
	return &stage, acts
}

func (c chain) summaryStage(b *furl.Budget) (*Compact, float64) { return SummaryStage(c.then, b) }
