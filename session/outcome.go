package session

import (
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// Outcome describes the plan of a fit whose records were committed. It folds the path
// again: call it for people and programs that ask, not for each request.
func (s *Session) Outcome(f *Fit) (policy.Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	head := f.Head
	if !f.Dry {
		for range f.Plan.Reductions { // they are the newest records of the path
			if head == 0 || head > furl.Seq(s.log.Len()) {
				return policy.Outcome{}, fmt.Errorf("outcome of the request at record %d: %w", f.Head, furl.ErrNotOnPath)
			}
			head = s.log.At(head).Parent
		}
	}
	st := s.log.State()
	if head != s.log.Head() {
		var err error
		if st, err = furl.Fold(s.log, head); err != nil {
			return policy.Outcome{}, err
		}
	}
	p, err := s.sessionPolicy()
	if err != nil {
		return policy.Outcome{}, err
	}
	return policy.OutcomeOf(p, st, &f.Budget, f.Plan)
}
