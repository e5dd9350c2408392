package open

import (
	"context"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/policy"
)

// A dry run plans, reports the plan, and sends the request unchanged. The messages,
// the reply and the usage are recorded; the plan's reductions are not.

// planDryRun plans without recording reductions, and returns the view that is sent.
func (c *Change) planDryRun(ctx context.Context, in Prompt) (*policy.Fit, error) {
	b, v, counted := c.BudgetFor(in)
	plan, err := c.runPolicy(ctx, in, b)
	if err != nil {
		return nil, err
	}
	// The plan's view is invalid once the reply changes the state.
	told := *plan
	told.View = nil
	fit := c.newFit(in, b, &told, counted)
	fit.Dry, fit.Unbound = true, in.Unbound
	if event.Hides(c.log.State()) {
		st, err := c.Unreduced()
		if err != nil {
			return nil, err
		}
		fit.View = st.View(b.Model)
		fit.DrySize = b.After(v, fit.View).Size
		if b.Model.Thinking.Binds {
			fit.Prefix, fit.Thinking = fit.View.Prefix(), fit.View.LastThinking
		}
	}
	if in.Unbound {
		fit.Prefix, fit.Thinking = furl.Digest{}, furl.Pos{}
	}
	return fit, nil
}

// Unreduced returns the state of the head with all reductions undone except those
// of the client.
func (c *Change) Unreduced() (*furl.State, error) {
	st, err := furl.Fold(c.log, c.log.Head())
	if err != nil {
		return nil, err
	}
	return st, c.UndoAll(st)
}

// UndoAll undoes all reductions of a state except those of the client.
func (c *Change) UndoAll(st *furl.State) error {
	next := furl.Seq(c.log.Len())
	for _, red := range slices.Collect(st.Reductions()) {
		if red.Undone || red.External() {
			continue
		}
		next++
		undo := furl.Record{Seq: next, Parent: st.Head(), By: furl.Furl, Body: &furl.Restoration{Of: red.Seq}}
		if err := st.Apply(undo); err != nil {
			return err
		}
	}
	return nil
}
