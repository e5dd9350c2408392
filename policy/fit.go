package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/token"
)

// Fit is the prompt of a request to a model: the view of a session after a plan was made and
// recorded. Package session makes it. Pass it to Session.Observe with the reply, so that
// the next plan knows its cost. wire.API.EncodeView encodes its View.
type Fit struct {
	// Model is the model's name in requests.
	Model string
	// View is what the model sees. It is read-only. Its spans and state are valid
	// only until the session changes.
	View *furl.View
	// Plan is the policy's plan, Budget the input of the plan.
	Plan   *furl.Plan
	Budget furl.Budget
	// Repair is what was shown again before the plan, nil for nothing; see RepairOf.
	Repair *Repair
	// Head is the record whose view this is.
	Head furl.Seq
	// At is when the plan was made.
	At time.Time
	// Dry reports whether this is a dry run: the plan is not recorded, and View
	// is the prompt without it. DrySize is the size of View in tokens if that shows more
	// than the session does without a dry run, else 0: it is then Plan.Before.
	Dry     bool
	DrySize int
	// Unbound reports that a dry run's prompt is not View, so no thinking is bound to
	// View.
	Unbound bool
	// UnknownTypes are types of blocks and items in the conversation that furl does
	// not know, at most 9 short names. Their steps are always sent unchanged.
	UnknownTypes []string
	// Assumed is a note for people if the rules of the model are assumed from its family
	// and the session has not said so before, else "".
	Assumed string
	// HourCache reports that the request should ask for cache entries of one hour for
	// the client's instructions and tools (wire.API.HourPreamble). Clear it before
	// Session.Observe if the request does not.
	HourCache bool
	// Preamble identifies what is sent besides the messages, zero if unknown. Counted is
	// its counted size, and ToolShare the share of tools in it, from 0 to 1.
	Preamble  furl.Digest
	Counted   token.Part
	ToolShare float64
	// Prefix and Thinking identify View for a model that binds thinking to its prompt
	// (furl.Exchange.View and Thinking), else they are zero.
	Prefix   furl.Digest
	Thinking furl.Pos
	// Account is the cost of the request, nil until its reply is observed.
	Account *price.Account
}

// PlanSteps returns the plan steps that an exchange records, with the warnings of the
// plan first. Those of a dry run say what it would have hidden.
func (f *Fit) PlanSteps() []furl.PlanStep {
	if f.Plan == nil {
		return nil
	}
	var warnings []furl.PlanStep
	for _, w := range f.Plan.Warnings {
		warnings = append(warnings, furl.PlanStep{Stage: event.StageWarning + w.Code, Skipped: w.Text, Before: f.Plan.Before, After: f.Plan.Before})
	}
	if f.Repair != nil {
		warnings = append(warnings, f.Repair.Step())
	}
	return append(warnings, f.stageSteps()...)
}

func (f *Fit) stageSteps() []furl.PlanStep {
	if !f.Dry {
		if f.HourCache {
			return append(slices.Clip(f.Plan.Steps), hourStep(f.Plan.After))
		}
		return f.Plan.Steps
	}
	steps := make([]furl.PlanStep, 0, len(f.Plan.Steps)+1)
	for _, st := range f.Plan.Steps {
		if st.Skipped == "" {
			st.Skipped = fmt.Sprintf("dry run: it would have hidden %d, from %d to %d tokens", st.Hidden, st.Before, st.After)
			st.After, st.Hidden = st.Before, 0
		}
		steps = append(steps, st)
	}
	return append(steps, furl.PlanStep{Stage: event.StageDryRun, Skipped: "the request was sent unchanged", Before: f.Plan.Before, After: f.Plan.Before})
}

// hourStep is the last step of a request of that size whose instructions and tools got
// cache entries of one hour.
func hourStep(size int) furl.PlanStep {
	return furl.PlanStep{Stage: event.StageHourCache, Skipped: "cache entries of one hour for instructions and tools, since the session has paused", Before: size, After: size}
}

// Size returns the estimated size of the request in tokens.
func (f *Fit) Size() int {
	switch {
	case f.Plan == nil:
		return f.Budget.Size
	case f.Dry && f.DrySize > 0:
		return f.DrySize
	case f.Dry:
		return f.Plan.Before
	}
	return f.Plan.After
}
