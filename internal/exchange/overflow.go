package exchange

import (
	"context"
	"errors"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/protocol"
)

// Overflow learns from a provider that has refused the prompt as too long: it
// hides more, without asking any model, and reports whether Body is now to be
// sent instead. It helps once per exchange, and not in a dry run. What it hides
// is committed with the rest.
func (x *Exchange) Overflow(ctx context.Context, o *protocol.Overflow) bool {
	if x.Session == nil || x.end == nil || x.Recovered != nil || x.Dry || o == nil {
		return false
	}
	x.limit = x.all.Refused(x.req.Model, o, x.Fit.Plan.After)
	before := len(x.Body)
	if err := x.shorten(ctx, o); err != nil {
		x.all.Options().Logger.Warn("a prompt that is too long cannot be made shorter", "session", x.Session.ID(), "tokens", o.Tokens, "limit", o.Limit, "bytes", before, "error", err)
		return false
	}
	x.Recovered = &event.OverflowRecovered{Reported: o.Tokens, Limit: o.Limit}
	return true
}

// shorten prepares an exchange whose prompt was too long again. After an error
// it is what it was.
func (x *Exchange) shorten(ctx context.Context, o *protocol.Overflow) error {
	was, held := x.Exchange, x.held
	x.forced = o
	err := x.prepare(ctx, x.Session, true)
	if err == nil && (len(x.Fit.Plan.Reductions) == 0 || len(x.Body) >= len(was.Body)) {
		err = errNothing
	}
	if err != nil {
		x.restore(was)
		x.held, x.forced = held, nil
	}
	return err
}

// backTo makes a record the head again, if the session has gone on elsewhere.
func (t *tx) backTo(head furl.Seq) error {
	if t.Log().Head() == head {
		return nil
	}
	r, err := t.Rewind(head, furl.Furl)
	if err != nil || r.Parent != head {
		return errors.Join(err, furl.ErrNotOnPath)
	}
	return nil
}

var errNothing = errors.New("there is nothing to hide")
