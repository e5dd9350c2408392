// Package policy decides what to hide: stages that make one reduction each,
// pipelines that run stages in order, and the presets.
//
// A [Stage] looks at a view and picks what to hide: single results that are to
// show a placeholder ([Mask], [Clip], [Shorten]), or a run of the oldest messages
// that a marker replaces ([Truncate], [Evict], [Extract], [Compact]). A stage
// does not have to check its work. Units keep a call and its result together,
// and the [Pipeline] that runs the stage drops a reduction that is invalid or
// frees nothing, and says so in the plan. If the view still does not fit the
// window after the last stage, the backstop hides more than the policy would,
// and the plan counts that.
//
// A [Set] makes policies by name. Each preset has a type with its options, such
// as [Rolling], and each stage is a type whose fields are its options:
//
//	set := policy.NewSet(policy.Rolling{Target: 0.7})
//	p, err := set.Policy("rolling", policy.Settings{})
//
// A stage of your own is a type with two methods, Name and Reduce. Run it in a
// pipeline (the example stageOfYourOwn), or add it to a Set, so that
// configuration can name it (the example stageInConfiguration).
package policy

import (
	"context"

	"github.com/furlhq/furl"
)

// Stage makes at most one reduction of a view. Apart from stages that ask a
// model for a summary, stages are pure functions of their arguments.
type Stage interface {
	// Name is recorded as the Stage of its reductions.
	Name() string
	// Reduce returns what to hide. If there is nothing to do, it returns a
	// Skip; any other error means that the stage failed and changed nothing.
	Reduce(ctx context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error)
}

// Skip is the reason why a stage did nothing.
type Skip string

func (s Skip) Error() string { return string(s) }

// Nothing is the Skip of a stage that found nothing to hide. Plans of policies
// that act before every request do not mention it.
const Nothing = Skip("nothing to hide")

// FirstOf is a stage that tries several stages in order, until one reduces the
// view. The plan has a step for each stage that was tried.
type FirstOf []Stage

// Name is the name of the first stage.
func (f FirstOf) Name() string { return f[0].Name() }

// Reduce returns what the first stage that reduces returns; if none does, the
// last error.
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
