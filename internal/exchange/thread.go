package exchange

import (
	"context"
	"errors"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/clients"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/storage"
)

// A request that continues a thread of the provider has only the new messages. They are
// recorded after the reply that the request names, so that the session has the whole
// conversation. The request is sent as it is: the provider keeps the rest, and nothing of
// it can be hidden. Where a thread continues is only known in the process that recorded
// its newest reply.

// rememberThread keeps where the conversation of an exchange continues.
func (a *Sessions) rememberThread(x *Exchange, reply string) {
	var head furl.Seq
	a.read(x.Session.Internal(), func(t *tx) { head = t.Log().Head() })
	a.Clients().SetThread(a.Tenant(), reply, clients.Place{Session: x.Session.ID(), Head: head})
}

// continueThread prepares an exchange that continues a thread, or leaves it unrecorded if
// the thread is unknown.
func (a *Sessions) continueThread(ctx context.Context, x *Exchange, o *BeginOptions) error {
	at, ok := a.Clients().OfThread(a.Tenant(), x.thread.Previous)
	if !ok {
		return nil
	}
	s, err := a.OpenCached(ctx, at.Session)
	if errors.Is(err, storage.ErrNoSession) {
		return nil
	}
	if err == nil {
		var whole *protocol.Request
		a.read(s, func(t *tx) { whole, err = wholeRequest(t.Log(), at.Head, x.original) })
		if err == nil {
			x.req, x.stored, x.AskNothing = whole, true, true
			x.incoming = &incoming{req: whole, chains: whole.Chains, hints: o.Hints}
			err = x.prepareFirst(ctx, s)
		}
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		x.Drop()
		return ctx.Err()
	}
	x.recordFailure(err)
	if a.sessions.Options().Refuse {
		x.Drop()
		return err
	}
	x.req, x.stored, x.AskNothing, x.Session, x.Fit = x.original, false, false, nil, nil
	x.setBody(x.original.Body)
	return nil
}

// wholeRequest returns a request that continues a thread with the messages before it. Its
// body is still that of the request.
func wholeRequest(log *furl.Log, head furl.Seq, req *protocol.Request) (*protocol.Request, error) {
	st, err := furl.Fold(log, head)
	if err != nil {
		return nil, err
	}
	whole := *req
	whole.Offsets, whole.Messages, whole.Chains, whole.Sums = nil, make([]furl.Message, 0, st.Len()+len(req.Messages)), nil, nil
	for i := range st.Len() {
		_, m := st.Message(i)
		whole.Messages = append(whole.Messages, *m)
		whole.Chains = append(whole.Chains, st.Chain(i+1))
	}
	whole.Messages = slices.Concat(whole.Messages, req.Messages)
	chain := st.Chain(st.Len())
	for i := range req.Messages {
		chain = req.Messages[i].Extend(chain)
		whole.Chains = append(whole.Chains, chain)
	}
	return &whole, nil
}

// sendStored sets the body of a request that continues a thread. The fit has no plan: what
// a policy would hide cannot be hidden.
func (x *Exchange) sendStored(fit *policy.Fit) {
	plan := *fit.Plan
	plan.Reductions, plan.After = nil, plan.Before
	fit.Plan = &plan
	x.setBody(x.original.Body)
}
