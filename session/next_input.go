package session

import (
	"context"
	"fmt"

	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/storage"
)

// NextInput returns what the input of the next message costs while the prompt cache lives, once
// it has expired, and with what the session's policy hides then, in US dollars at list prices.
// It is nil if no price or no prompt cache is known.
func (s *Session) NextInput(ctx context.Context) (next *storage.NextInput, err error) {
	s.Internal().Read(func(c *open.Change) { next, err = c.NextInput(ctx) })
	if err != nil {
		return nil, fmt.Errorf("price of the next message in session %s: %w", s.ID(), err)
	}
	return next, nil
}
