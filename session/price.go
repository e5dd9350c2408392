package session

import (
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/policy"
)

// PriceOfRewind returns what Rewind would do, and what that does to the price of later
// requests. It changes nothing.
func (s *Session) PriceOfRewind(to furl.Seq) (out Rewound, price policy.Price, err error) {
	price, err = s.priceOf(func(c *open.Change) error {
		from := c.Log().Head()
		r, err := c.Rewind(to, furl.Person)
		out = Rewound{To: r.Parent, Branch: from, Messages: c.Log().State().Len()}
		return err
	})
	return out, price, err
}

// PriceOfEdit returns what EditSummary does to the price of later requests. It changes
// nothing.
func (s *Session) PriceOfEdit(reduction furl.Seq, text string) (policy.Price, error) {
	return s.priceOf(func(c *open.Change) error {
		b, _, _ := c.BudgetFor(open.Prompt{Model: c.Meta().Model})
		red, err := policy.Edit(c.Log().State(), b, reduction, text)
		if err == nil {
			_, err = c.Append(furl.Person, red)
		}
		return err
	})
}

// PriceOfApproval returns what DecideSummary does to the price of later requests if it
// approves the summary that waits. It changes nothing.
func (s *Session) PriceOfApproval() (policy.Price, error) {
	return s.priceOf(func(c *open.Change) error {
		if c.Waiting() == nil {
			return fmt.Errorf("session %s has no summary that waits for approval: %w", s.ID(), furl.ErrNotOnPath)
		}
		_, err := c.RecordApproved(c.Waiting())
		return err
	})
}

// priceOf returns the price of a change, and discards the change.
func (s *Session) priceOf(f func(c *open.Change) error) (price policy.Price, err error) {
	err = s.Internal().Try(func(c *open.Change) error {
		b, before, _ := c.BudgetFor(open.Prompt{Model: c.Meta().Model})
		if err := f(c); err != nil {
			return err
		}
		price = policy.PriceOf(before, c.Log().State().View(b.Model), b)
		return nil
	})
	return price, err
}
