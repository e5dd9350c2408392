package exchange

import (
	"context"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/wire"
)

// RecallMode says whether the requests of a session have recall tools.
type RecallMode uint8

const (
	// NoRecall: the caller does not answer calls of recall tools.
	NoRecall RecallMode = iota
	// KeepRecall: it does (Exchange.Answer), so sessions that have recall tools
	// keep them.
	KeepRecall
	// OfferRecall: a session that begins with the request gets them too, if the
	// request has tools of its own.
	OfferRecall
)

// BeginOptions say how a request is handled.
type BeginOptions struct {
	Hints  protocol.Hints
	Recall RecallMode
	// DryRun plans, and sends the request as it came: Fit.Plan holds what would be
	// hidden, and none of it is recorded. If something is hidden in the session
	// already, Body shows that too, without thinking that its model has bound to
	// a prompt in which it was hidden. No model is asked for a summary.
	DryRun bool
	// Peek records nothing: it is for requests that ask for the size of a prompt.
	// What is hidden in the session that holds the history is hidden in Body, and
	// no new plan is made, except for a dry run. Done and Drop do nothing.
	Peek bool
}

// Begin matches a request to its session, plans, and gives what to send. Nothing
// of it is in the session before Commit. It fails open: where furl's part fails, the
// exchange has the request's own body and says why. Where something is hidden
// in the session, what is sent is made of what is in memory, without a new
// plan; without that, it is the original without the thinking that its model
// has bound to another prompt. The error is not nil only if Options.Refuse is
// set, ctx has ended, or o.Peek is set.
//
// Each exchange must be ended by Done or Drop.
func (a *Sessions) Begin(ctx context.Context, req *protocol.Request, o BeginOptions) (*Exchange, error) {
	x := &Exchange{Exchange: session.Exchange{Body: req.Body, Dry: o.DryRun}, all: a, asked: req, req: req}
	if o.Peek {
		return a.peek(ctx, x, &o)
	}
	return a.start(ctx, x, &o)
}

func (a *Sessions) start(ctx context.Context, x *Exchange, o *BeginOptions) (*Exchange, error) {
	req := x.req
	if req.Ambiguous != "" {
		x.Why = whyAmbiguous(req)
		return x, nil
	}
	api := wire.For(req.Format)
	if api != nil && api.Stateful(req) {
		x.Why = "the provider keeps the history, so it cannot be reduced here"
		return x, nil
	}
	if len(req.Messages) == 0 {
		x.Why = "the request has no messages"
		return x, nil
	}
	x.in = &arrival{req: req, chains: chainsIn(req), hints: o.Hints, recall: o.Recall}
	return a.arrive(ctx, x)
}

// whyAmbiguous says why a request with an ambiguous field is not dealt with.
// The name is one of those that furl knows, not the client's own words.
func whyAmbiguous(req *protocol.Request) string {
	return fmt.Sprintf("the field %q occurs twice or in a different case, and the provider may read another one than furl: the request was passed on unchanged and not recorded", req.Ambiguous)
}

// arrive finds the session of an exchange and prepares it there.
func (a *Sessions) arrive(ctx context.Context, x *Exchange) (*Exchange, error) {
	began := time.Now()
	s, err := a.match(ctx, x.in)
	x.Took.Match += time.Since(began)
	if err == nil {
		err = x.begin(ctx, s)
	}
	if err == nil {
		return x, nil
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		x.Drop()
		return nil, ctxErr
	}
	x.fail(err)
	if a.Options().Refuse {
		x.Drop()
		return nil, err
	}
	x.open(s)
	return x, nil
}

// fail notes and logs that furl's part failed.
func (x *Exchange) fail(err error) {
	x.Err, x.Why = err, "furl could not record or plan for the request; its log says why"
	x.all.failures.Add(1)
	attrs := []any{"error", err}
	if x.Session != nil {
		attrs = append(attrs, "session", x.Session.ID())
	}
	x.all.Options().Logger.Warn("an exchange could not be prepared", attrs...)
}

// open makes what is sent although furl's part failed.
func (x *Exchange) open(s *session.Session) {
	x.req, x.offered = x.asked, nil
	x.Session, x.Fit = nil, nil
	x.send(x.asked.Body)
	if s == nil {
		s = x.all.remembered(x.in)
	}
	if s != nil {
		shown := true // as recorded, and without recall tools
		x.all.read(s, func(t *tx) { shown = !event.Hides(t.Log().State()) && t.recallTools() == "" })
		if shown {
			return
		}
		if !x.Dry {
			if body, err := x.render(s); err == nil {
				x.send(body)
				return
			}
		}
	}
	if body, ok := unbound(x.req, x.all.Model(x.req.Model, x.req.Format)); ok {
		x.send(body)
		x.Why += "; sent without the thinking that may be bound to another prompt"
	}
}

// remembered finds the session of a history among those in memory.
func (a *Sessions) remembered(in *arrival) *session.Session {
	var best *session.Session
	most := 0
	for _, s := range a.InMemory() {
		var matched int
		var other bool
		a.read(s, func(t *tx) {
			t.places.follow(t.Log())
			matched = t.places.find(t.Log(), in.chains, in.req.Messages).matched
			hint := t.Meta().Hint
			other = in.hints.Hint != "" && hint != "" && hint != in.hints.Hint
			if s.ID() == in.hints.Session || in.hints.Hint != "" && hint == in.hints.Hint {
				matched += len(in.chains)
			}
		})
		if matched > most && !other {
			best, most = s, matched
		}
	}
	if best != nil && most <= len(in.chains) && len(usable(in.req.Messages[:most], in.chains)) == 0 {
		return nil // a beginning that others have too
	}
	return best
}

// begin prepares an exchange in the session that it belongs to.
func (x *Exchange) begin(ctx context.Context, s *session.Session) error {
	defer s.Hold()()
	x.all.await(ctx, s, x.in)
	return x.prepare(ctx, s, false)
}

// prepare plans and encodes what is sent next, and holds what that appends. After
// an error the exchange is what it was.
func (x *Exchange) prepare(ctx context.Context, s *session.Session, noModel bool) error {
	was := x.Exchange
	d, err := s.Prepare(ctx, x.preparation(s, noModel, true))
	if err != nil {
		x.restore(was)
		return err
	}
	x.held = d
	return nil
}

// restore has the exchange send what it did before.
func (x *Exchange) restore(was session.Exchange) {
	x.Body, x.Reduced, x.Fit, x.Why = was.Body, was.Reduced, was.Fit, was.Why
}

// preparation is what the session does with the exchange's next request. recorded
// says that it will be: other requests of the session can wait for its end.
func (x *Exchange) preparation(s *session.Session, noModel, recorded bool) session.Preparation {
	var planning time.Time
	return session.Preparation{
		NoModel: noModel,
		Lead: func(st *session.Tx) error {
			x.Why = ""
			return x.lead(x.all.tx(s, st))
		},
		Prompt: func(st *session.Tx) session.Prompt {
			if planning.IsZero() {
				planning = time.Now()
			}
			return x.prompt(x.all.tx(s, st))
		},
		Encode: func(st *session.Tx, fit *session.Fit) error {
			planned := time.Now()
			x.Took.Plan += planned.Sub(planning)
			planning = time.Time{}
			x.Fit = fit
			err := x.encodeFit(fit)
			x.Took.Encode += time.Since(planned)
			if err == nil && recorded {
				x.all.tx(s, st).note(x)
			}
			return err
		},
	}
}

// lead appends what is new in a request, or goes back to where an exchange that
// has begun goes on.
func (x *Exchange) lead(t *tx) error {
	began := time.Now()
	defer func() { x.Took.Match += time.Since(began) }()
	if x.first != 0 {
		if err := t.backTo(x.at); err != nil {
			return err
		}
		t.repair(x.in)
		return nil
	}
	x.begins = t.Log().Len() == 0
	if err := t.attach(x.in); err != nil {
		return err
	}
	t.offer(x, x.begins)
	if x.begins {
		t.noteOpening(x)
	}
	return nil
}

// prompt is what the request brings along beside the session's messages.
func (x *Exchange) prompt(t *tx) session.Prompt {
	return session.Prompt{
		Model: x.req.Model, Preamble: x.req.Preamble, Digest: x.req.PreambleDigest, MaxTokens: x.req.MaxTokens,
		Tail: x.req.Messages[len(x.req.Messages)-x.in.tail:], Refused: x.forced, Window: x.limit,
		DryRun: x.Dry, Unbound: x.Dry && x.unlike(t),
	}
}

// unlike reports whether the prompts of the session before had recall tools that
// this one lacks, and its model has bound thinking to them.
func (x *Exchange) unlike(t *tx) bool {
	return len(x.offered) == 0 && t.recallTools() != "" && t.Model(x.req.Model).Thinking.Binds
}

// encodeFit makes the body to send of a fit.
func (x *Exchange) encodeFit(fit *session.Fit) error {
	if x.Dry {
		return x.encodeDry(fit)
	}
	body, err := x.encode(fit.View)
	if err == nil {
		x.send(body)
	}
	return err
}

// encodeDry makes the body of a dry run: the request's own, where nothing is
// hidden in the session, and recall tools are what they were.
func (x *Exchange) encodeDry(fit *session.Fit) error {
	x.send(x.asked.Body)
	switch {
	case fit.Unbound:
		if body, ok := unbound(x.req, fit.Budget.Model); ok {
			x.send(body)
			x.Why = "sent without the thinking that may be bound to another prompt"
		}
	case fit.View.Dropped > 0 || x.in.pairs.own || len(x.offered) > 0:
		// Recall is part of the session's prompts, and hides nothing.
		body, err := x.encode(fit.View)
		if err != nil {
			return err
		}
		x.send(body)
	}
	return nil
}

// encode makes the body to send of a view.
func (x *Exchange) encode(v *furl.View) ([]byte, error) {
	body, err := encode(x.req, v, x.in.pairs)
	if err != nil {
		return nil, err
	}
	return withTools(x.req, body, x.offered), nil
}

// render applies what is hidden in a session, as it is in memory, to a request
// that could not be stored.
func (x *Exchange) render(s *session.Session) (body []byte, err error) {
	err = s.Try(func(st *session.Tx) error {
		t := x.all.tx(s, st)
		if err := t.attach(x.in); err != nil {
			return err
		}
		x.offer(t.recallTools(), false) // part of the prompt, whoever answers
		body, err = x.encode(t.Log().State().View(t.Model(x.req.Model)))
		return err
	})
	return body, err
}
