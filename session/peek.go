package session

import (
	"context"
	"fmt"

	"github.com/furlhq/furl"
)

// Peek gives what a request would be if it were sent now, without recording
// anything: for requests that ask for a prompt's size. What is hidden in the
// session that holds its history is hidden in Body; no new plan is made. A
// request that belongs to no session has its own body, with the recall tools that
// it would begin one with. Done and Drop do nothing.
func (a *Sessions) Peek(ctx context.Context, req *furl.Request, h Hints) (*Exchange, error) {
	return a.peek(ctx, &Exchange{Body: req.Body, all: a, asked: req, req: req}, h)
}

func (a *Sessions) peek(ctx context.Context, x *Exchange, h Hints) (*Exchange, error) {
	req := x.req
	if req.Ambiguous != "" {
		x.Why = whyAmbiguous(req)
		return x, nil
	}
	if len(req.Messages) == 0 {
		return x, nil
	}
	x.in = &arrival{req: req, chains: chainsIn(req), hints: h}
	s := a.remembered(x.in)
	if s == nil {
		var err error
		if s, err = a.byHistory(ctx, x.in); err != nil {
			return nil, fmt.Errorf("find the session of a request: %w", err)
		}
	}
	if s == nil {
		x.offer("", true)
		x.Body = withTools(x.req, x.Body, x.offered)
		return x, nil
	}
	if err := s.Refresh(ctx); err != nil {
		return nil, err
	}
	x.Session = s
	if x.Dry {
		if err := s.peekDry(ctx, x); err != nil {
			return nil, fmt.Errorf("plan for a request: %w", err)
		}
	} else if body, ok := s.render(x); ok {
		x.Body = body
	}
	return x, nil
}
