package policy

import (
	"cmp"
	"context"
	"slices"

	"github.com/furlhq/furl"
)

// backstop hides more than the policy would until the view fits the window and the
// provider's limits: first images, if there are too many of them, then whole old
// steps. If hiding everything that is not protected is not enough, the plan says
// that the request is impossible.
func (r *runner) backstop(ctx context.Context) {
	if Over(r.view, r.b) == "" {
		return
	}
	l := loadOf(r.view, r.b)
	if l.tokens = 0; l.over(r.b) != "" && r.run(ctx, hideMedia{}) {
		r.plan.Backstops++
	}
	l = loadOf(r.view, r.b)
	l.large = 0 // pinned: hiding steps would not help
	if l.over(r.b) != "" && r.run(ctx, backstop{}) {
		r.plan.Backstops++
	}
	if why := Over(r.view, r.b); why != "" {
		r.plan.Impossible = true
		r.plan.Reason = "what must be sent is too large: " + why
	}
}

// backstop is the stage that runs after those of a policy.
type backstop struct{}

func (backstop) Name() string { return "backstop" }

func (st backstop) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	units := st.order(v)
	left, n := newWithout(v, b), 0
	for n < len(units) && (n == 0 || left.add(units[:n]).over(b) != "") {
		n++
	}
	picked := units[:n]
	if len(picked) == 0 {
		return nil, Skip("all that is left is protected")
	}
	slices.SortStableFunc(picked, func(a, b furl.Unit) int { return cmp.Compare(a.First, b.First) })
	messages, _ := originals(picked)
	return &furl.Reduction{
		Stage:  st.Name(),
		Reason: "required by the window: " + Over(v, b),
		Items:  []furl.Item{Marker(v, b, picked, truncationText(messages))},
	}, nil
}

// order lists what the backstop may hide: first steps and earlier markers, then
// messages, then summaries, which are worth more than the messages they replace,
// then what was restored; the oldest first within each group. Protected units are
// not among them.
func (backstop) order(v *furl.View) []furl.Unit {
	isStep := func(u *furl.Unit) bool {
		return u.Kind == furl.UnitStep || u.Kind == furl.UnitMark && !isSummary(v, u)
	}
	return slices.Concat(
		hideable(v, isStep),
		hideable(v, func(u *furl.Unit) bool { return !isStep(u) && !isSummary(v, u) }),
		hideable(v, func(u *furl.Unit) bool { return isSummary(v, u) }),
		kept(v),
	)
}
