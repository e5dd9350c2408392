package exchange

import (
	"bytes"
	"context"

	"github.com/furlhq/furl/protocol"
)

// LeaveOutThinking handles the provider's refusal of thinking in the prompt. It reports
// whether Body is now a request without thinking to send instead. It does so once per
// exchange, and not in a dry run. What is left out stays recorded, and is left out of the
// session's later requests too.
//
// Whether furl has caused the refusal does not matter: a session whose client has edited
// its own history, or whose earlier part was recorded in another store, would be refused
// forever. Only sessions whose requests furl never changes get the refusal.
func (x *Exchange) LeaveOutThinking(ctx context.Context, refused *protocol.ThinkingRefused) bool {
	if !x.isRecorded() || x.thinking != nil || x.Dry || refused == nil {
		return false
	}
	was, held := x.Exchange, x.draft
	x.thinking = refused
	err := x.prepare(ctx, x.Session.Internal(), true)
	if err == nil && bytes.Equal(x.Body, was.Body) {
		err = errNothing
	}
	log := x.all.Options().Logger.With("session", x.Session.ID(), "model", x.req.Model)
	if err != nil {
		x.restore(was)
		x.draft, x.thinking = held, nil
		log.Warn("the provider refused thinking in the prompt, and none can be left out", "error", err)
		return false
	}
	x.ThinkingLeftOut = true
	log.Warn("the provider refused thinking of earlier replies; it is left out of this session's requests")
	return true
}
