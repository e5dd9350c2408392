package session

import (
	"context"
	"fmt"

	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/storage"
)

// RecordPlan sets what the provider has said about the limits of the session's account.
// Nothing is added to the transcript.
func (s *Session) RecordPlan(ctx context.Context, p *storage.Plan) error {
	err := s.Internal().Update(ctx, open.Committed, func(c *open.Change) error {
		m := c.Meta().Clone()
		m.Plan = p
		c.SetMeta(m)
		return nil
	})
	if err != nil {
		return fmt.Errorf("record plan of session %s: %w", s.ID(), err)
	}
	return nil
}
