package exchange

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/clients"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire"
)

// Received is a request of a client.
type Received struct {
	API wire.API
	// Endpoint is what its URL says; see wire.ForPath. A request that counts the tokens of a
	// prompt is reduced like other requests, but not recorded.
	Endpoint protocol.Endpoint
	// Path is the path of its URL, for the log.
	Path string
	Body []byte
	// Hints returns the session hints of the decoded request.
	Hints func(*protocol.Request) protocol.Hints
	// PassThreads is furlhttp.Options.PassThreads.
	PassThreads bool
	// Reserve, if not nil, reserves memory before the body is decoded. After
	// clients.ErrTooLarge the request is sent unchanged, after another error not at all.
	Reserve clients.Reserve
}

// Local is furl's own answer to a request that is not sent.
type Local struct {
	Status      int
	ContentType string
	Body        []byte
}

// Receive decodes a request of a client and begins its exchange, see Begin. If Passed is
// set, the request is sent unchanged, or answered by Local if that is not nil. Receive sets
// Hints, Commands, Peek and Compact of the options.
//
// An error means that the request must not be sent: ctx has ended, or Options.Refuse is
// set and the request cannot be recorded.
func (a *Sessions) Receive(ctx context.Context, r *Received, o BeginOptions) (x *Exchange, err error) {
	defer a.recovered(r, &x, &err)
	began := time.Now()
	x = a.received(r)
	req, err := a.decode(r.API, r.Body, r.Reserve)
	switch {
	case errors.Is(err, clients.ErrTooLarge):
		x.Passed = session.PassedTooLarge
		return x, nil
	case errors.Is(err, errNotReserved):
		return nil, err
	case err != nil:
		x.Passed, x.Err = session.PassedUndecoded, err // the provider's error message is better
		return x, nil
	}
	r.Endpoint.Complete(req)
	x.original = req
	req, o.Commands, err = a.CutCommands(req)
	if refused, ok := errors.AsType[*protocol.Refusal](err); ok {
		x.Passed = session.PassedCommand
		return x.refuse(refused), nil
	}
	r.Endpoint.Complete(req)
	x.original, x.req, x.Body = req, req, req.Body
	x.Took.Decode = time.Since(began)
	if req.Ambiguous != "" {
		a.Options().Logger.Warn("request sent unchanged and not recorded: a field is ambiguous", "path", upstream.Path(&url.URL{Path: r.Path}), "field", req.Ambiguous)
		o.Peek = r.Endpoint.Count
		return a.begin(ctx, x, &o)
	}
	if th := r.API.Thread(req); th != nil && !r.PassThreads && !o.DryRun && !a.sessions.HidesNothing(req.Model, req.Format) {
		x.Passed = session.PassedThread
		return x.refuse(th.Refusal), nil
	}
	o.Hints = r.Hints(req)
	if !r.Endpoint.Count && (isAuxiliary(req, o.Hints) || a.Quotes(req, o.Hints)) {
		x.Passed = session.PassedAuxiliary
		return x, nil
	}
	if o.Commands.Found() && !r.Endpoint.Count {
		if done, err := x.answerCommand(ctx, &o); done || err != nil {
			return x, err
		}
	}
	o.Peek, o.Compact = r.Endpoint.Count, r.compacts(req)
	switch _, err = a.begin(ctx, x, &o); {
	case err == nil:
		return x, nil
	case r.Endpoint.Count: // tokens can be counted without a session
		x = a.received(r)
		x.original, x.req, x.Body = req, req, req.Body
		return x, nil
	case ctx.Err() != nil:
		return nil, err
	}
	return nil, fmt.Errorf("%w: %w", ErrUnrecorded, err)
}

// received returns the exchange of a request that is sent unchanged.
func (a *Sessions) received(r *Received) *Exchange {
	return &Exchange{Exchange: session.Exchange{Body: r.Body}, all: a, api: r.API, count: r.Endpoint.Count}
}

// recovered is deferred in Receive. After a panic the request is sent unchanged, as after
// any other failure of furl. Sessions in memory may be inconsistent, so they are dropped
// and read again.
func (a *Sessions) recovered(r *Received, x **Exchange, err *error) {
	if p := recover(); p != nil {
		a.Sessions.Drop()
		*x, *err = a.received(r), nil
		(*x).Passed, (*x).Err = session.PassedPanic, panicked(p)
	}
}

// panicked returns the error for the value of a panic.
func panicked(value any) *session.PanicError {
	return &session.PanicError{Text: upstream.Panicked(value), Stack: debug.Stack()}
}

// refuse sets a refusal as furl's answer.
func (x *Exchange) refuse(r *protocol.Refusal) *Exchange {
	x.Local = &Local{r.Status, "application/json", x.api.ErrorBody(r, "")}
	return x
}

// answerCommand answers a request that ends with a command to furl, if its session asks
// for commands.
func (x *Exchange) answerCommand(ctx context.Context, o *BeginOptions) (done bool, err error) {
	text, s, ok, err := x.all.AnswerCommand(ctx, x.req, o.Commands, *o)
	switch {
	case err != nil && ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil:
		return false, fmt.Errorf("%w: %w", ErrUnrecorded, err)
	case !ok:
		return false, nil
	}
	contentType, body := x.api.TextReply(x.req, ReplyID(), text, time.Now())
	x.Passed, x.Local = session.PassedCommand, &Local{http.StatusOK, contentType, body}
	x.Session, x.Why = s, "answered by furl: the message is a command"
	return true, nil
}

// Request returns the client's request, nil if it could not be decoded.
func (x *Exchange) Request() *protocol.Request { return x.original }

// compacts reports whether a request asks the provider for a compaction.
func (r *Received) compacts(req *protocol.Request) bool {
	return r.Endpoint.Compact || r.API.AsksCompaction(req)
}

// clientGemini is Hints.Client of Gemini CLI.
const clientGemini = "Gemini CLI"

// isAuxiliary reports whether a request is auxiliary, such as one for a title: it has the
// id of a conversation and is not part of it. Such requests have no tools, neither in the
// list of tools nor defined in messages, and no assistant message. A chat without tools also
// starts like this; it is recorded from its second request on, which repeats the first. A
// client's own request for a summary is not auxiliary if it has the history: it is a branch
// of the session and needs the session's reductions to fit.
//
// Gemini CLI has no id of a conversation. Before each prompt it asks which model should
// answer, and later whether the model repeats itself: these requests have other messages,
// no tools, and demand a reply by a schema.
func isAuxiliary(req *protocol.Request, h protocol.Hints) bool {
	if api := wire.For(req.Format); h.Client == clientGemini && !definesTools(req) && !api.AllowsPlainText(req.Fields()) {
		return true
	}
	if h.Hint == "" || h.Session != "" || definesTools(req) {
		return false
	}
	for i := range req.Messages {
		m := &req.Messages[i]
		if m.Role == furl.RoleAssistant || m.HasCompaction() || slices.ContainsFunc(m.Blocks, func(b furl.Block) bool { return b.Fixed }) {
			return false
		}
	}
	return true
}
