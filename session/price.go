package session

import (
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/transact"
	"github.com/furlhq/furl/policy"
)

// PriceOfRewind returns what Rewind would do, and what that does to the price of later
// requests. It changes nothing.
func (s *Session) PriceOfRewind(to furl.Seq) (out Rewound, price policy.Price, err error) {
	price, err = s.priceOf(func() error {
		from := s.log.Head()
		r, err := s.log.Rewind(to, s.all.o.Now(), furl.Person)
		out = Rewound{To: r.Parent, Branch: from, Messages: s.log.State().Len()}
		return err
	})
	return out, price, err
}

// PriceOfEdit returns what EditSummary does to the price of later requests. It changes
// nothing.
func (s *Session) PriceOfEdit(reduction furl.Seq, text string) (policy.Price, error) {
	return s.priceOf(func() error {
		b, _, _ := s.budgetFor(transact.Prompt{Model: s.meta.Model})
		red, err := policy.Edit(s.log.State(), b, reduction, text)
		if err == nil {
			_, err = s.appendRecord(furl.Person, red)
		}
		return err
	})
}

// PriceOfApproval returns what DecideSummary does to the price of later requests if it
// approves the summary that waits. It changes nothing.
func (s *Session) PriceOfApproval() (policy.Price, error) {
	return s.priceOf(func() error {
		if s.waiting == nil {
			return fmt.Errorf("session %s has no summary that waits for approval: %w", s.key.Session, furl.ErrNotOnPath)
		}
		_, err := s.recordApproved(s.waiting)
		return err
	})
}

// priceOf returns the price of a change, and discards the change.
func (s *Session) priceOf(change func() error) (price policy.Price, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, before, _ := s.budgetFor(transact.Prompt{Model: s.meta.Model})
	_, err = s.draft(func() error {
		if err := change(); err != nil {
			return err
		}
		price = policy.PriceOf(before, s.log.State().View(b.Model), b)
		return nil
	})
	return price, err
}
