package session

import (
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/policy"
)

// Outcome describes the plan of a fit whose records were committed. It folds the path
// again: call it for people and programs that ask, not for each request.
func (s *Session) Outcome(f *policy.Fit) (out policy.Outcome, err error) {
	s.Internal().Read(func(c *open.Change) { out, err = outcomeOf(c, f) })
	return out, err
}

func outcomeOf(c *open.Change, f *policy.Fit) (policy.Outcome, error) {
	log := c.Log()
	head := f.Head
	if !f.Dry {
		for range f.Plan.Reductions { // they are the newest records of the path
			if head == 0 || head > furl.Seq(log.Len()) {
				return policy.Outcome{}, fmt.Errorf("outcome of the request at record %d: %w", f.Head, furl.ErrNotOnPath)
			}
			head = log.At(head).Parent
		}
	}
	st := log.State()
	if head != log.Head() {
		var err error
		if st, err = furl.Fold(log, head); err != nil {
			return policy.Outcome{}, err
		}
	}
	p, err := c.Policy()
	if err != nil {
		return policy.Outcome{}, err
	}
	return policy.OutcomeOf(p, st, &f.Budget, f.Plan)
}
