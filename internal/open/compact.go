package open

import (
	"context"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// Compact has the stage write a summary that a person has asked for, and records it at
// once. b is the budget of the next request. The session can be used meanwhile. If the
// summary was paid for and cannot be recorded, nothing is hidden.
func (s *Session) Compact(ctx context.Context, stage *policy.Compact, b furl.Budget) (rec furl.Seq, err error) {
	defer s.Acquire()()
	var state *furl.State
	s.Read(func(c *Change) { state, err = furl.Fold(c.Log(), c.Log().Head()) })
	if err != nil {
		return 0, err
	}
	red, err := stage.Prepare(ctx, state, b)
	if err != nil {
		return 0, err
	}
	err = s.Update(ctx, Committed, func(c *Change) error {
		now, err := policy.Commit(c.Log().State(), b, red)
		if err != nil {
			return err
		}
		r, err := c.Append(furl.Person, now)
		rec = r.Seq
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("record the summary: %w", err)
	}
	return rec, nil
}

// NextBudget returns the budget of the session's next request, as far as it is known.
func (s *Session) NextBudget(ctx context.Context) (b furl.Budget, err error) {
	_, err = s.Prepare(ctx, Preparation{
		Prompt:  func(c *Change) Prompt { return Prompt{Model: c.Meta().Model, DryRun: true} },
		Encode:  func(_ *Change, fit *policy.Fit) error { b = fit.Budget; return nil },
		NoModel: true,
	})
	return b, err
}
