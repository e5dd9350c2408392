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
	for _, pick := range []func(*furl.View) []furl.Unit{oldSteps, everything, keptToo} {
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

// What the backstop takes, in this order.
func oldSteps(v *furl.View) []furl.Unit {
	return hideable(v, func(u *furl.Unit) bool { return u.Kind == furl.UnitStep || u.Kind == furl.UnitMark })
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
	picked := oldestRun(st.pick(v), func(hidden []furl.Unit) bool {
		after := b
		left := *v
		for i := range hidden {
			after.Size -= b.Scaled(hidden[i].Tokens)
			left.Bytes -= unitBytes(&hidden[i])
			left.Images -= unitImages(&hidden[i])
			left.Messages = left.Messages[:len(left.Messages)-(hidden[i].Last-hidden[i].First)]
		}
		// The mark that takes their place needs room too.
		after.Size += b.Scaled(markReserve)
		left.Bytes += 4 * markReserve
		return over(&left, after) == ""
	})
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

// markReserve is the room left for a mark's text, in counted tokens.
const markReserve = 64

func unitBytes(u *furl.Unit) int {
	n := 0
	for i := range u.Blocks {
		n += len(u.Blocks[i].Words())
	}
	return n
}

func unitImages(u *furl.Unit) int {
	n := 0
	for i := range u.Blocks {
		if u.Blocks[i].By != 0 {
			continue
		}
		for _, m := range u.Blocks[i].Block.Media {
			if m.Kind == furl.KindImage {
				n++
			}
		}
	}
	return n
}
