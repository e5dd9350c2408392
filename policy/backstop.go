package policy

import (
	"context"
	"slices"

	"github.com/furlhq/furl"
)

// backstop truncates whole old steps beyond a policy's own keeps until the
// view fits the window: first what nobody asked to keep, then what was
// restored, oldest first. What is protected stays; if that alone is too
// large, the plan says that the request is impossible.
func (r *runner) backstop(ctx context.Context) {
	why := over(r.view, r.b)
	if why == "" {
		return
	}
	for _, pick := range []func(*furl.View) []furl.Unit{oldSteps, oldWords, everything, keptToo} {
		if r.run(ctx, backstop{pick}) {
			r.plan.Backstops++
		}
		if over(r.view, r.b) == "" {
			return
		}
	}
	r.plan.Impossible = true
	r.plan.Reason = "what must be sent is too large: " + over(r.view, r.b)
}

// What the backstop takes, in this order. Summaries are worth more than what
// they stand for, and so go after the words of the user.
func oldSteps(v *furl.View) []furl.Unit {
	return hideable(v, func(u *furl.Unit) bool {
		return u.Kind == furl.UnitStep || u.Kind == furl.UnitMark && !isSummary(v, u)
	})
}
func oldWords(v *furl.View) []furl.Unit {
	return hideable(v, func(u *furl.Unit) bool { return !isSummary(v, u) })
}
func everything(v *furl.View) []furl.Unit { return hideable(v, nil) }
func keptToo(v *furl.View) []furl.Unit {
	return slices.Concat(hideable(v, nil), kept(v))
}

// backstop is the stage behind all policies.
type backstop struct {
	pick func(*furl.View) []furl.Unit
}

func (backstop) Name() string { return "backstop" }

func (st backstop) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	left := newWithout(v, b)
	picked := oldestRun(st.pick(v), func(hidden []furl.Unit) bool { return left.add(hidden).over(b) == "" })
	if len(picked) == 0 {
		return nil, Skip("all that is left is protected")
	}
	n, _ := behind(picked)
	red := &furl.Reduction{
		Stage:  st.Name(),
		Reason: "the window demands it: " + over(v, b),
		Items:  []furl.Item{mark(v, b, picked, truncationText(n))},
	}
	return red, nil
}
