package policy

import (
	"context"
	"path"
	"strings"

	"github.com/furlhq/furl"
)

// Settings hold for every policy, whatever its own options. The zero value
// changes nothing. A session's own settings come before those of all sessions.
type Settings struct {
	// Off makes every policy do nothing: as a setting (C1), or because the
	// replies come from a recording (C9).
	Off bool
	// RollingContext, if true, runs tool-age before the chosen policy; if
	// false, tool-age does nothing even where it is the chosen policy (A4). If
	// nil, tool-age runs only where it is the chosen policy.
	RollingContext *bool
	// Threshold, if not zero, replaces the threshold of policies that have one:
	// sliding-window, compaction, rolling, and pipelines with a Threshold.
	Threshold float64
	// InputChars, if not zero, replaces the budget of the preset graduated (M): the
	// largest input in characters.
	InputChars int
	// ToolOptions are added to the policy's own.
	ToolOptions
	// EditOptions, where they are set, replace the policy's own.
	EditOptions
	// ProjectTools are further ToolOptions of sessions in some folders; see In.
	ProjectTools []ProjectTools
	// Summarizer writes the summaries of policies that show them. If nil,
	// plans contain no new summaries (C, T).
	Summarizer Summarizer
	// WorkingMemory returns texts that the program keeps for the model, such as
	// its plan or a list of files. They follow each summary (C6). It may be nil.
	WorkingMemory func() []string
	// Ask, if not nil, is called before a policy that has a Summarizer acts. If
	// it returns false, nothing is hidden while the request fits the window.
	Ask func(ctx context.Context, size, window int) bool
	// AskFirst says that a person decides about each summary before it is used. Until
	// then, policies that show summaries hide nothing while the request fits the
	// window, also without a Summarizer. What they hide at any size, such as old
	// results, is not affected (auto).
	AskFirst bool
}

func (s *Settings) validate() error {
	if err := s.ToolOptions.Validate(); err != nil {
		return err
	}
	return validate(shareOption("context_threshold", s.Threshold))
}

// ProjectTools are ToolOptions of the sessions in some folders.
type ProjectTools struct {
	// Project is an absolute path, or a pattern as of path.Match for one: the sessions in
	// that folder and below it.
	Project string
	ToolOptions
}

// In returns the settings for sessions in a folder, an absolute path: with the ToolOptions
// of all ProjectTools that match it.
func (s Settings) In(project string) Settings {
	for i := range s.ProjectTools {
		if p := &s.ProjectTools[i]; p.has(project) {
			s.ToolOptions = s.Plus(p.ToolOptions)
		}
	}
	return s
}

func (p *ProjectTools) has(folder string) bool {
	slashes := strings.NewReplacer(`\`, "/") // as on Windows
	for folder = slashes.Replace(folder); folder != "" && folder != "." && folder != "/"; folder = path.Dir(folder) {
		if ok, _ := path.Match(slashes.Replace(p.Project), folder); ok {
			return true
		}
	}
	return false
}

// runsFirst reports whether tool-age runs before another policy.
func (s *Settings) runsFirst() bool { return s.RollingContext != nil && *s.RollingContext }

// threshold is the share of the window at which a policy acts.
func (s *Settings) threshold(own, byDefault float64) float64 {
	switch {
	case s.Threshold > 0:
		return s.Threshold
	case own > 0:
		return own
	}
	return byDefault
}

// asking is a policy that asks a person before its stages run. If the answer is
// no, the view stays as it is while it fits the window. The backstop does not
// ask.
type asking struct {
	*Pipeline
	ask func(ctx context.Context, size, window int) bool
	why string // the reason of a plan if the answer is no
}

// withAsk makes a pipeline that shows summaries ask first, if the settings say so. asks
// reports that the pipeline asks a model for them.
func withAsk(p *Pipeline, s *Settings, asks bool) furl.Policy {
	switch {
	case s.AskFirst: // the person has not answered yet
		return &asking{p, func(context.Context, int, int) bool { return false }, "nothing is hidden before a summary is approved"}
	case s.Ask == nil || !asks:
		return p
	}
	return &asking{p, s.Ask, "declined"}
}

func (a *asking) Plan(ctx context.Context, s *furl.State, b furl.Budget) (*furl.Plan, error) {
	due := a.trigger()
	if b.Force || due != nil && !due(s.View(b.Model), b) || a.ask(ctx, b.Size, b.Window) {
		return a.Pipeline.Plan(ctx, s, b)
	}
	waits := *a.Pipeline
	waits.Trigger, waits.Stages = never, nil
	plan, err := waits.Plan(ctx, s, b)
	if plan != nil && plan.Reason == "" && len(plan.Reductions) == 0 {
		plan.Reason = a.why
	}
	return plan, err
}
