package policy

import (
	"cmp"
	"context"
	"fmt"

	"github.com/furlhq/furl"
)

// Rolling are the options of the preset rolling: it evicts the oldest messages,
// and the model finds them again by recall. Where the model cannot call recall,
// compaction acts in its place, with its own options (R).
type Rolling struct {
	// Threshold is the share of the window at which it acts. If zero, 0.85 (R).
	Threshold float64 `json:"context_threshold,omitempty"`
	// Target is the share of the window to evict down to. If zero, 0.8 (R).
	Target float64 `json:"target_utilization,omitempty"`
	// KeepMessages is how many of the newest messages stay. If zero, 10 (R).
	KeepMessages int `json:"min_keep_messages,omitempty"`
	// EvictionNote, if false, makes the note say only that messages were
	// evicted. If nil, true (R).
	EvictionNote *bool `json:"eviction_note,omitempty"`
}

func (o Rolling) validate() error {
	if err := validate(
		shareOption("context_threshold", o.Threshold),
		shareOption("target_utilization", o.Target),
		number("min_keep_messages", o.KeepMessages),
	); err != nil {
		return err
	}
	if o.Threshold > 0 && o.Target > o.Threshold {
		return fmt.Errorf("invalid target_utilization %v: expected at most the context_threshold, %v", o.Target, o.Threshold)
	}
	return nil
}

func (o Rolling) build(name string, in *building) furl.Policy {
	threshold := in.threshold(o.Threshold, defaultThreshold)
	if in.Threshold > 0 {
		o.Target = min(cmp.Or(o.Target, defaultTarget), in.Threshold)
	}
	return &recallOr{
		Policy: &Pipeline{
			Label:     name,
			Threshold: threshold,
			Stages:    []Stage{&Evict{Target: o.Target, KeepMessages: o.KeepMessages, NoNote: !isOn(o.EvictionNote, true)}},
		},
		without: in.set.compaction().build(safeguard, in),
	}
}

// recallOr plans by another policy where the model cannot call recall: what is
// evicted there would be lost to it (R5).
type recallOr struct {
	furl.Policy
	without furl.Policy
}

// warnNoRecall is the code of the warning that a policy which needs recall
// works without it.
const warnNoRecall = "no_recall"

func (p *recallOr) Plan(ctx context.Context, s *furl.State, b furl.Budget) (*furl.Plan, error) {
	if b.Recall {
		return p.Policy.Plan(ctx, s, b)
	}
	plan, err := p.without.Plan(ctx, s, b)
	if plan != nil {
		plan.Warnings = append(plan.Warnings, furl.Warning{
			Code: warnNoRecall,
			Text: p.Name() + " needs a model that can call memory_search; " + p.without.Name() + " takes its place",
		})
	}
	return plan, err
}

func (p *recallOr) summaryStage(b *furl.Budget) (*Compact, float64) {
	if b.Recall {
		return nil, 0
	}
	return SummaryStage(p.without, b)
}

// NeedsRecall reports whether a policy plans for a model that can call recall tools,
// so that another takes its place where the model cannot. Only the Model of the
// budget counts.
func NeedsRecall(p furl.Policy, b *furl.Budget) bool {
	n, ok := p.(interface{ needsRecall(b *furl.Budget) bool })
	return ok && n.needsRecall(b)
}

func (p *recallOr) needsRecall(*furl.Budget) bool { return true }

func (p *perModel) needsRecall(b *furl.Budget) bool { return NeedsRecall(p.of(b.Model.ID), b) }

func (c chain) needsRecall(b *furl.Budget) bool { return NeedsRecall(c.then, b) }
