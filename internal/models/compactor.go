package models

import (
	"context"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/session"
)

// keyedCompactor has the summaries of compact written by a model whose key furl has.
type keyedCompactor struct {
	operation.AtOnce
	model agent.Model
}

// CompactorOf returns the Compactor for a session: the model of the summaries, that of the
// session, or that of furl chat, whichever has a key. If none has, it returns nil.
func CompactorOf(c *config.Config, s *session.Session) operation.Compactor {
	for _, name := range []string{c.Summaries.Model, s.Meta().Model, ""} {
		if m, found, err := Keyed(c, name); found && err == nil {
			return keyedCompactor{model: AgentModel(m)}
		}
	}
	return nil
}

// WritesNow implements operation.Compactor.
func (k keyedCompactor) WritesNow(*session.Session) (model string, ok bool) { return k.model.ID, true }

// Compact implements operation.Compactor.
func (k keyedCompactor) Compact(ctx context.Context, s *session.Session, what operation.Compaction) (furl.Seq, error) {
	return agent.Compact(ctx, s, k.model, what.Focus, what.Spans...)
}
