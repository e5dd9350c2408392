package exchange

import (
	"context"
	"errors"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/protocol"
)

// Overflow handles the provider's refusal of a prompt as too long. It hides more,
// without asking a model for a summary, and reports whether Body is now a shorter
// request to send instead. It does so once per exchange, or maxOverflows times if the
// request is composed, and not in a dry run. The new reductions are committed with the
// request.
func (x *Exchange) Overflow(ctx context.Context, o *protocol.Overflow) bool {
	if !x.isRecorded() || x.overflows >= x.maxOverflows() || x.Dry || o == nil {
		return false
	}
	x.window = x.all.RecordOverflow(x.req.Model, o, x.Fit.Plan.After)
	before := len(x.Body)
	if err := x.shorten(ctx, o); err != nil {
		x.all.Options().Logger.Warn("prompt exceeds the context window and cannot be shortened", "session", x.Session.ID(), "tokens", o.Tokens, "limit", o.Limit, "bytes", before, "error", err)
		return false
	}
	x.overflows++
	x.Recovered = &event.OverflowRecovered{Reported: o.Tokens, Limit: o.Limit}
	return true
}

// maxOverflows is how often a composed prompt that the provider refuses as too long is
// shortened. A client waits for its request, and sends it again itself.
const maxOverflows = 3

func (x *Exchange) maxOverflows() int {
	if x.composed != nil {
		return maxOverflows
	}
	return 1
}

// shorten prepares an exchange again with a shorter prompt. After an error the
// exchange is unchanged.
func (x *Exchange) shorten(ctx context.Context, o *protocol.Overflow) error {
	was, held := x.Exchange, x.draft
	x.overflow = o
	err := x.prepare(ctx, x.Session.Internal(), true)
	if err == nil && (x.composed == nil && len(x.Fit.Plan.Reductions) == 0 || len(x.Body) >= len(was.Body)) {
		err = errNothing
	}
	if err != nil {
		x.restore(was)
		x.draft, x.overflow = held, nil
	}
	return err
}

// resetHead rewinds to a record unless it is the head.
func (t *tx) resetHead(head furl.Seq) error {
	if t.Log().Head() == head {
		return nil
	}
	r, err := t.Rewind(head, furl.Furl)
	if err != nil || r.Parent != head {
		return errors.Join(err, furl.ErrNotOnPath)
	}
	return nil
}

var errNothing = errors.New("nothing left to hide")
