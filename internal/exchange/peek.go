package exchange

import (
	"context"
	"fmt"
	"github.com/furlhq/furl/session"
)

// peek is Begin for a request that is not recorded. A request without a session
// keeps its body, plus the recall tools that a new session would get.
func (a *Sessions) peek(ctx context.Context, x *Exchange, o *BeginOptions) (*Exchange, error) {
	req := x.req
	if req.Ambiguous != "" {
		x.Why = whyAmbiguous(req)
		return x, nil
	}
	if len(req.Messages) == 0 {
		return x, nil
	}
	x.incoming = &incoming{req: req, chains: chainsIn(req), hints: o.Hints, recall: o.Recall}
	s := a.findInMemory(x.incoming)
	if s == nil {
		var err error
		if s, err = a.byHistory(ctx, x.incoming); err != nil {
			return nil, fmt.Errorf("find session of request: %w", err)
		}
	}
	if s == nil {
		x.addRecallTools("", true)
		x.setBody(withTools(x.req, x.Body, x.offered))
		return x, nil
	}
	if s, err := a.Open(ctx, s.ID()); err != nil {
		return nil, err
	} else {
		x.Session = session.FromInternal(s)
	}
	if !x.Dry {
		if body, err := x.render(x.Session.Internal()); err == nil {
			x.setBody(body)
		}
		return x, nil
	}
	if _, err := x.Session.Internal().Prepare(ctx, x.preparation(x.Session.Internal(), true, false)); err != nil {
		return nil, fmt.Errorf("plan for request: %w", err)
	}
	return x, nil
}
