package exchange

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/wire"
)

// A program that has its own agent loop appends messages to a session and composes each
// request from the session's view. Such a request has no client: its body is not matched with
// a session, and its reply is not relayed. Otherwise the exchange is the same: it is planned, sent by Send, sent again after
// the refusals that furl handles, and recorded.
//
// The plan is stored before the request is sent, because the program shows it to a person,
// and because a summary that a model has written must not be lost with a refused request.
// Requests of clients are stored only when the provider has accepted them, because a client
// repeats what was refused.

// Composed says how the requests of a session are composed.
type Composed struct {
	API wire.API
	// Head returns a request without the session's messages, and what counts of it. The
	// list of messages is the last field of the body. Head is called for each prompt.
	Head func() ([]byte, open.Prompt, error)
	// Stored is called after the plan of a prompt is stored and before it is sent. If it
	// returns true, Head returns something else now, and the prompt is made again.
	Stored func(ctx context.Context) (changed bool, err error)
	// AskModel is open.Preparation.AskModel.
	AskModel bool
}

// Compose plans a request of a session, stores the plan, and returns an exchange with the
// body to send. End it with Ask and Done.
func Compose(ctx context.Context, s *session.Session, c Composed) (*Exchange, error) {
	x := &Exchange{Exchange: session.Exchange{Session: s}, all: &Sessions{Sessions: s.Internal().All()}, api: c.API, composed: &c}
	if err := x.prepare(ctx, s.Internal(), false); err != nil {
		return nil, err
	}
	return x, nil
}

// Plain returns the exchange of a request that is neither planned nor recorded, such as a
// request for a summary. model is the model's name in the request.
func Plain(api wire.API, model string, body []byte) *Exchange {
	return &Exchange{Exchange: session.Exchange{Body: body}, api: api, req: &protocol.Request{Format: api.Format(), Model: model, Body: body}}
}

// prepareComposed is prepare for a composed request.
func (x *Exchange) prepareComposed(ctx context.Context, s *open.Session, noModel bool) (err error) {
	if x.head, x.headPrompt, err = x.composed.Head(); err != nil {
		return err
	}
	was, refused := x.Exchange, x.overflow
	x.headPrompt.Refused, x.headPrompt.ThinkingRefused = x.overflow, x.thinking
	draft, err := s.Prepare(ctx, open.Preparation{
		NoModel: noModel, AskModel: x.composed.AskModel,
		Prompt: func(*open.Change) open.Prompt { return x.headPrompt },
		Encode: func(_ *open.Change, fit *policy.Fit) error {
			x.Fit = fit
			return x.encodeFit(fit)
		},
	})
	if err == nil {
		err = draft.Commit(ctx, open.Committed)
	}
	if err != nil {
		x.restore(was)
		return fmt.Errorf("prepare a request: %w", err)
	}
	x.Committed, x.overflow = true, nil
	changed, err := x.composed.Stored(ctx)
	if err != nil || !changed {
		return err
	}
	x.overflow = refused
	return x.prepareComposed(ctx, s, noModel)
}

// encodeComposed returns the body of a composed request. It becomes the request that is
// recorded as the one of a client.
func (x *Exchange) encodeComposed(v *furl.View) ([]byte, error) {
	req, err := ComposeView(x.api, x.head, v)
	if err != nil {
		return nil, err
	}
	req.Model = x.headPrompt.Model
	x.original, x.req = req, req
	return req.Body, nil
}

// ComposeView adds the messages of a view to a request whose list of messages is its last
// field. The request that it returns has only what a record of the exchange needs.
func ComposeView(api wire.API, head []byte, v *furl.View) (*protocol.Request, error) {
	list, err := api.EncodeView(v)
	if err != nil {
		return nil, err
	}
	return withList(api, head, list), nil
}

// withList adds messages to the list at the end of a request.
func withList(api wire.API, head []byte, list []json.RawMessage) *protocol.Request {
	size := len(head)
	for _, raw := range list {
		size += len(raw) + 1
	}
	body := append(make([]byte, 0, size), head[:len(head)-2]...) // without "]}"
	req := &protocol.Request{Format: api.Format()}
	if decoded, err := api.DecodeRequest(head); err == nil {
		for i, m := range decoded.Messages {
			req.Messages, req.Offsets = append(req.Messages, furl.Message{Raw: m.Raw}), append(req.Offsets, decoded.Offsets[i])
		}
	}
	for _, raw := range list {
		if body[len(body)-1] != '[' {
			body = append(body, ',')
		}
		req.Messages, req.Offsets = append(req.Messages, furl.Message{Raw: raw}), append(req.Offsets, len(body))
		body = append(body, raw...)
	}
	req.Body = append(body, "]}"...)
	return req
}
