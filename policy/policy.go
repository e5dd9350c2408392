// Package policy decides what to hide: stages that make one reduction each,
// pipelines that chain them, and the presets.
//
// A [Stage] looks at a view and picks: single results that are to show a short
// text in their place ([Mask]), or a run of the oldest units that is to stand
// behind a mark ([Truncate], [Evict], [Extract]). It does not check itself:
// units cannot part a call from its result, and a reduction that is not valid
// or frees nothing is dropped by the [Pipeline] that runs it, which says so in
// the plan. When the stages are done and the view still does not fit the
// window, the backstop goes beyond what the policy would keep, and counts it.
//
// [Preset] makes the policies that have names, with [Options]. A stage of
// one's own is a type with two methods; the example shows one in a file.
package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
)

// Stage makes at most one reduction of a view. Apart from those that ask a
// model for a summary, stages are pure functions of their arguments.
type Stage interface {
	// Name is the Stage of the reductions it makes.
	Name() string
	// Reduce returns what to hide. Having nothing to do is a Skip; any
	// other error means that the stage failed and changed nothing.
	Reduce(ctx context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error)
}

// Skip is why a stage did nothing.
type Skip string

func (s Skip) Error() string { return string(s) }

// Nothing is the Skip of a stage that found nothing to hide. Policies that act
// before every request don't tell of it each time.
const Nothing = Skip("nothing to hide")

// Pipeline is a policy of stages in order, each on what the one before left.
type Pipeline struct {
	Label string
	// Trigger tells whether the stages run at all. If nil, they run before
	// every request.
	Trigger func(v *furl.View, b furl.Budget) bool
	// Fits tells after a stage whether the rest may rest. If nil, all
	// stages run.
	Fits func(v *furl.View, b furl.Budget) bool
	// MinGain is the least a reduction must free, in the provider's tokens,
	// to be recorded. If zero, 1.
	MinGain int
	Stages  []Stage
	// Check, if not nil, looks at what a stage leaves. An error discards the
	// stage's work and moves on to the next.
	Check func(before, after *furl.View) error
	// NoBackstop leaves a view above the window as it is.
	NoBackstop bool
}

// Name is the policy's name.
func (p *Pipeline) Name() string { return p.Label }

// Plan runs the stages on the state's view.
func (p *Pipeline) Plan(ctx context.Context, s *furl.State, b furl.Budget) (*furl.Plan, error) {
	r := &runner{
		plan:    &furl.Plan{Before: b.Size},
		state:   s,
		view:    s.View(b.Model),
		b:       b,
		minGain: max(1, p.MinGain),
		always:  p.Trigger == nil,
		check:   p.Check,
	}
	r.plan.After, r.plan.View = b.Size, r.view
	if why := hopeless(b); why != "" {
		// Whatever is hidden, the request does not fit.
		if !p.NoBackstop {
			r.plan.Impossible, r.plan.Reason = true, why
		}
		return r.plan, ctx.Err()
	}
	if p.Trigger == nil || p.Trigger(r.view, r.b) || b.Force {
		for _, st := range p.Stages {
			r.run(ctx, st)
			if p.Fits != nil && p.Fits(r.view, r.b) {
				break
			}
		}
	}
	if !p.NoBackstop {
		r.backstop(ctx)
	}
	if p.Trigger != nil && r.plan.Reason == "" && p.Trigger(r.view, r.b) {
		r.plan.Reason = r.still()
	}
	r.plan.After, r.plan.View = r.b.Size, r.view
	return r.plan, ctx.Err()
}

// hopeless says why no request fits, however few messages it has.
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

// still says why a view is above its trigger after a plan.
func (r *runner) still() string {
	why := "no stage is left"
	if n := len(r.plan.Steps); n > 0 && r.plan.Steps[n-1].Skipped != "" {
		why = r.plan.Steps[n-1].Stage + ": " + r.plan.Steps[n-1].Skipped
	}
	return fmt.Sprintf("still %d tokens; %s", r.b.Size, why)
}

// FirstOf is a stage that stands for the first of several that reduces: each
// is tried only where those before it failed or had nothing to do, and the
// plan tells of each.
type FirstOf []Stage

// Name is the name of the first.
func (f FirstOf) Name() string { return f[0].Name() }

// Reduce is what the first stage that reduces returns; else the last error.
func (f FirstOf) Reduce(ctx context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	var red *furl.Reduction
	err := error(Nothing)
	for _, st := range f {
		if red, err = st.Reduce(ctx, v, b); err == nil && red != nil {
			return red, nil
		}
	}
	return nil, err
}

// runner holds what the stages of one plan have done so far.
type runner struct {
	plan    *furl.Plan
	state   *furl.State
	view    *furl.View
	b       furl.Budget
	minGain int
	always  bool // the policy acts before every request
	check   func(before, after *furl.View) error
}

// run lets one stage act and takes its reduction over if it helps.
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

// take applies the reduction and keeps it if the result is valid and smaller.
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
		return Skip(fmt.Sprintf("would free %d tokens, less than %d", gain, r.minGain))
	}
	red.Before, red.After, red.Scale = r.b.Size, after.Size, r.b.Scale
	expected := red.Cost.Remaining
	red.Cost = costOf(r.view, view, r.b, after, red)
	red.Cost.Remaining = expected
	step.After = after.Size
	step.Hidden = hidden(r.view, view, red)
	r.state, r.view, r.b = state, view, after
	r.plan.Reductions = append(r.plan.Reductions, red)
	return nil
}

// hidden counts the messages that are no longer shown, and the blocks that the
// reduction shows in place.
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

// smaller reports whether a view helps with a limit other than tokens.
func smaller(after, before *furl.View, b furl.Budget) bool {
	return b.MaxBytes > 0 && before.Bytes > b.MaxBytes && after.Bytes < before.Bytes ||
		b.MaxImages > 0 && before.Images > b.MaxImages && after.Images < before.Images ||
		b.MaxMessages > 0 && len(before.Messages) > b.MaxMessages && len(after.Messages) < len(before.Messages)
}
