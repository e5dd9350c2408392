package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
)

// Pipeline is a policy that runs stages in order, each on the view that the
// stage before it left.
type Pipeline struct {
	// Label is the policy's name.
	Label string `json:"-"`
	// Threshold is the share of the window at which the stages run; they stop
	// as soon as the view is below it. If zero, Trigger and Fits decide.
	Threshold float64 `json:"context_threshold,omitempty"`
	// Trigger reports whether the stages run at all. If nil, they run before
	// every request, unless there is a Threshold.
	Trigger func(v *furl.View, b furl.Budget) bool `json:"-"`
	// Fits reports after a stage whether the view fits, so that the other
	// stages need not run. If nil, all stages run, unless there is a Threshold.
	Fits func(v *furl.View, b furl.Budget) bool `json:"-"`
	// ToolOptions say which results stay.
	ToolOptions
	// EditOptions say what happens when an edit fails.
	EditOptions
	// MinGain is how much a reduction must free at least to be recorded, in the
	// provider's tokens. If zero, 1.
	MinGain int `json:"min_gain,omitempty"`
	// Stages run in order.
	Stages []Stage `json:"stages,omitempty"`
	// Check, if not nil, compares the views before and after a stage. An error
	// discards the stage's work, and the next stage runs.
	Check func(before, after *furl.View) error `json:"-"`
	// NoBackstop leaves a view above the window as it is.
	NoBackstop bool `json:"-"`

	// Acts returns the size of the prompt at which Trigger lets the stages run, for
	// Sizes; 0: never, or at no certain size. If nil, it follows from Threshold.
	Acts func(b *furl.Budget) int `json:"-"`

	prepare preparation
	// hourCache: see WantsHourCache.
	hourCache bool
	repairs   bool // EditOptions.RepairEdits by default
}

// Name is the policy's name.
func (p *Pipeline) Name() string { return p.Label }

func (p *Pipeline) validate() error {
	if err := p.ToolOptions.Validate(); err != nil {
		return err
	}
	return validate(shareOption("context_threshold", p.Threshold), number("min_gain", p.MinGain))
}

// trigger is Trigger, or the one of the Threshold. It may be nil.
func (p *Pipeline) trigger() func(*furl.View, furl.Budget) bool {
	if p.Trigger == nil && p.Threshold > 0 {
		return reached(p.Threshold)
	}
	return p.Trigger
}

// fits is Fits, or the one of the Threshold. It may be nil.
func (p *Pipeline) fits() func(*furl.View, furl.Budget) bool {
	if p.Fits == nil && p.Threshold > 0 {
		return below(p.Threshold)
	}
	return p.Fits
}

// with returns the pipeline with the settings applied. Stages that summarize get
// the Summarizer; without one they are left out, and a summary can be prepared
// outside of the plans.
func (p *Pipeline) with(s *Settings) furl.Policy {
	own, summarizes, asks := *p, false, false
	if own.Threshold > 0 {
		own.Threshold = s.threshold(own.Threshold, 0)
	}
	own.Stages = nil
	for _, st := range p.Stages {
		alternatives, ok := st.(FirstOf)
		if !ok {
			alternatives = FirstOf{st}
		}
		var used FirstOf
		for _, st := range alternatives {
			compact, ok := st.(*Compact)
			if !ok {
				used = append(used, st)
				continue
			}
			c := *compact
			summarizes = true
			if c.Memory == nil {
				c.Memory = s.WorkingMemory
			}
			if own.prepare.stage == nil {
				own.prepare = own.prepareBy(&c)
			}
			if c.Summarizer == nil {
				c.Summarizer = s.Summarizer
			}
			if c.Summarizer != nil {
				used, asks = append(used, &c), true
			}
		}
		switch len(used) {
		case 0:
		case 1:
			own.Stages = append(own.Stages, used[0])
		default:
			own.Stages = append(own.Stages, used)
		}
	}
	if summarizes {
		return withAsk(&own, s, asks)
	}
	return &own
}

// Plan runs the stages on the state's view.
func (p *Pipeline) Plan(ctx context.Context, s *furl.State, b furl.Budget) (*furl.Plan, error) {
	trigger, fits := p.trigger(), p.fits()
	asIs := s.View(b.Model)
	s = p.prefer(s, &b)
	r := &runner{
		plan:    &furl.Plan{Before: b.Size},
		state:   s,
		view:    s.View(b.Model),
		b:       b,
		minGain: max(1, p.MinGain),
		always:  trigger == nil,
		check:   p.Check,
	}
	r.plan.After, r.plan.View = b.Size, asIs
	if why := hopeless(b); why != "" {
		// Whatever is hidden, the request does not fit.
		if !p.NoBackstop {
			r.plan.Impossible, r.plan.Reason = true, why
		}
		return r.plan, ctx.Err()
	}
	if trigger == nil || trigger(r.view, r.b) || b.Force {
		for _, st := range p.Stages {
			r.run(ctx, st)
			if fits != nil && fits(r.view, r.b) {
				break
			}
		}
	}
	if !p.NoBackstop {
		r.backstop(ctx)
	}
	if trigger != nil && r.plan.Reason == "" && trigger(r.view, r.b) {
		r.plan.Reason = r.still()
	}
	if r.plan.After, r.plan.View = r.b.Size, r.view; len(r.plan.Reductions) == 0 {
		r.plan.View = asIs // without the holds of a plan
	}
	return r.plan, ctx.Err()
}

// hopeless is the reason why no request fits, however few messages it has, or "".
func hopeless(b furl.Budget) string {
	switch {
	case b.Window <= 0:
	case b.Room() <= 0:
		return fmt.Sprintf("the reply alone may take %d tokens of a window of %d", b.Reserve, b.Window)
	case b.Fixed >= b.Room():
		return fmt.Sprintf("instructions and tools alone take %d tokens, room for %d", b.Fixed, b.Room())
	}
	return ""
}

// still is the reason why a view is above its trigger after a plan.
func (r *runner) still() string {
	why := "no stage is left"
	if n := len(r.plan.Steps); n > 0 && r.plan.Steps[n-1].Skipped != "" {
		why = r.plan.Steps[n-1].Stage + ": " + r.plan.Steps[n-1].Skipped
	}
	return fmt.Sprintf("still %d tokens; %s", r.b.Size, why)
}

// runner is the state of one plan while its stages run.
type runner struct {
	plan    *furl.Plan
	state   *furl.State
	view    *furl.View
	b       furl.Budget
	minGain int
	always  bool // the policy acts before every request
	check   func(before, after *furl.View) error
}

// run runs one stage and applies its reduction if that helps.
func (r *runner) run(ctx context.Context, st Stage) bool {
	if alternatives, ok := st.(FirstOf); ok {
		return slices.ContainsFunc(alternatives, func(st Stage) bool { return r.run(ctx, st) })
	}
	step := furl.PlanStep{Stage: st.Name(), Before: r.b.Size, After: r.b.Size}
	red, err := st.Reduce(ctx, r.view, r.b)
	if err == nil && red == nil {
		err = Nothing
	}
	if err == nil {
		if red.Summary != nil {
			r.plan.Own = r.plan.Own.Add(red.Summary.Usage)
		}
		err = r.take(red, &step)
	}
	if paid := (*spent)(nil); errors.As(err, &paid) {
		r.plan.Own = r.plan.Own.Add(paid.usage)
	}
	if err != nil {
		step.Skipped = err.Error()
		if skip := Skip(""); !errors.As(err, &skip) {
			step.Failed = true
		}
	}
	if !r.always || !errors.Is(err, Nothing) {
		r.plan.Steps = append(r.plan.Steps, step)
	}
	return err == nil
}

// take applies the reduction if the result is valid and smaller.
func (r *runner) take(red *furl.Reduction, step *furl.PlanStep) error {
	state, err := r.state.With(red)
	if err != nil {
		return err
	}
	view := state.View(r.b.Model)
	if r.check != nil {
		if err := r.check(r.view, view); err != nil {
			return err
		}
	}
	after := r.b.After(r.view, view)
	if gain := r.b.Size - after.Size; gain < r.minGain && !smaller(view, r.view, r.b) {
		return Skip(tooLittle(gain, r.minGain))
	}
	red.Before, red.After, red.Scale = r.b.Size, after.Size, r.b.Scale
	expected := red.Cost.Remaining
	red.Cost = costOf(r.view, view, r.b, red)
	red.Cost.Remaining = expected
	step.After = after.Size
	step.Hidden = hidden(r.view, view, red)
	r.state, r.view, r.b = state, view, after
	r.plan.Reductions = append(r.plan.Reductions, red)
	return nil
}

// hidden counts the messages that are no longer shown, and the blocks that show
// placeholders of the reduction.
func hidden(before, after *furl.View, red *furl.Reduction) int {
	n := recorded(before) - recorded(after)
	for _, it := range red.Items {
		if _, ok := it.Show.(furl.In); !ok {
			continue
		}
		for _, sp := range it.Spans {
			if sp.First.Msg == sp.Last.Msg {
				n += sp.Last.Block - sp.First.Block + 1
			} else {
				n++ // no stage here makes one
			}
		}
	}
	return n
}

// recorded counts the recorded messages that a view shows.
func recorded(v *furl.View) int {
	n := 0
	for i := range v.Units {
		if u := &v.Units[i]; u.Kind != furl.UnitMark {
			n += u.Messages
		}
	}
	return n
}

// smaller reports whether a view is closer to a limit other than tokens.
func smaller(after, before *furl.View, b furl.Budget) bool {
	return b.MaxBytes > 0 && before.Bytes > b.MaxBytes && after.Bytes < before.Bytes ||
		b.MaxImages > 0 && before.Images > b.MaxImages && after.Images < before.Images ||
		b.MaxMessages > 0 && len(before.Messages) > b.MaxMessages && len(after.Messages) < len(before.Messages) ||
		largeImages(before, &b) > largeImages(after, &b)
}

// tooLittle says that a reduction does not free enough tokens.
func tooLittle(gain, least int) string {
	switch {
	case gain < 0:
		return fmt.Sprintf("would add %d %s to the prompt", -gain, plural(-gain, "token"))
	case gain == 0:
		return "would not make the prompt smaller"
	}
	return fmt.Sprintf("would free %d tokens, less than %d", gain, least)
}
