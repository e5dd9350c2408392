package exchange

import (
	"context"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/wire"
)

// RecallMode says which sessions have recall tools in their requests.
type RecallMode uint8

const (
	// NoRecall is for callers that do not answer calls of recall tools.
	NoRecall RecallMode = iota
	// KeepRecall keeps recall tools in sessions that have them. The caller
	// answers calls with Exchange.Answer.
	KeepRecall
	// OfferRecall is KeepRecall and adds recall tools to new sessions whose
	// first request has tools.
	OfferRecall
)

// BeginOptions are the options of Sessions.Begin.
type BeginOptions struct {
	Hints  protocol.Hints
	Recall RecallMode
	// Commands are those that CutCommands found in the request.
	Commands Commands
	// HourCache says when requests ask for cache entries of one hour.
	HourCache protocol.HourCache
	// HoldBilling sends all requests of a session with the billing line of its first
	// one, except dry runs and requests that continue a thread.
	HoldBilling bool
	// DryRun plans and sends the request unchanged: Fit.Plan holds the plan, and
	// none of it is recorded. Blocks that the session already hides are shown too;
	// thinking that is bound to a prompt without them is removed. No model is asked
	// for a summary.
	DryRun bool
	// Compact is set for a request for a compaction: the client's next request continues
	// from its reply, and waits until that is recorded.
	Compact bool
	// Fitting is set for a program that sends the request itself, so that furl sees no
	// reply to it.
	Fitting *Fitting
	// Peek records nothing. It is for requests that count the tokens of a prompt.
	// Body has the session's existing reductions, and no new plan is made except
	// for a dry run. Done and Drop do nothing.
	Peek bool
}

// Begin matches a request to its session, plans, and returns an exchange with the
// body to send. It does not change the session before Commit.
//
// Begin fails open: if recording or planning fails, Body is the request's body and
// Why is the reason. If the session has reductions, Body is then rendered from the
// session in memory without a new plan; if that fails too, it is the request's body
// without thinking that its model has bound to another prompt. Begin returns an
// error only if Options.Refuse is set, ctx has ended, or o.Peek is set.
//
// The caller must end each exchange with Done or Drop.
func (a *Sessions) Begin(ctx context.Context, req *protocol.Request, o BeginOptions) (*Exchange, error) {
	x := &Exchange{Exchange: session.Exchange{Body: req.Body}, all: a, api: wire.For(req.Format), count: o.Peek, original: req, req: req}
	return a.begin(ctx, x, &o)
}

// begin is Begin for an exchange whose request is decoded.
func (a *Sessions) begin(ctx context.Context, x *Exchange, o *BeginOptions) (*Exchange, error) {
	x.Dry, x.hourCache, x.compacts, x.fitting = o.DryRun, o.HourCache, o.Compact, o.Fitting
	x.holdsBilling = o.HoldBilling && !o.DryRun
	if o.Peek {
		return a.peek(ctx, x, o)
	}
	return a.beginRecorded(ctx, x, o)
}

func (a *Sessions) beginRecorded(ctx context.Context, x *Exchange, o *BeginOptions) (*Exchange, error) {
	req := x.req
	if req.Ambiguous != "" {
		x.Why = whyAmbiguous(req)
		return x, nil
	}
	api := wire.For(req.Format)
	if api != nil {
		x.thread = api.Thread(req)
	}
	if api != nil && api.Stateful(req) {
		x.Why = "not reduced: the provider stores the history"
		if x.thread == nil || len(req.Messages) == 0 {
			return x, nil
		}
		return x, a.continueThread(ctx, x, o)
	}
	if len(req.Messages) == 0 {
		x.Why = "the request has no messages"
		return x, nil
	}
	x.incoming = &incoming{req: req, chains: chainsIn(req), hints: o.Hints, recall: o.Recall, answered: o.Commands.answered, policy: o.Fitting.policy(), began: time.Now()}
	return a.matchAndPrepare(ctx, x)
}

// whyAmbiguous returns the reason for not recording a request with an ambiguous
// field. The field name is one that furl knows, not content of the client.
func whyAmbiguous(req *protocol.Request) string {
	return fmt.Sprintf("request sent unchanged and not recorded: field %q occurs twice or in a different case, and the provider may read another one than furl", req.Ambiguous)
}

// matchAndPrepare finds the session of an exchange and prepares the exchange in it.
func (a *Sessions) matchAndPrepare(ctx context.Context, x *Exchange) (*Exchange, error) {
	began := time.Now()
	s, err := a.match(ctx, x.incoming)
	x.Took.Match += time.Since(began)
	if err == nil {
		err = x.prepareFirst(ctx, s)
	}
	if err == nil {
		return x, nil
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		x.Drop()
		return nil, ctxErr
	}
	x.recordFailure(err)
	if a.sessions.Options().Refuse {
		x.Drop()
		return nil, err
	}
	x.failOpen(s)
	return x, nil
}

// recordFailure logs and counts an error of recording or planning.
func (x *Exchange) recordFailure(err error) {
	x.Err, x.Why = err, "recording or planning failed; see furl's log"
	x.all.CountFailure()
	attrs := []any{"error", err}
	if x.Session != nil {
		attrs = append(attrs, "session", x.Session.ID())
	}
	x.all.Options().Logger.Warn("request could not be recorded or planned", attrs...)
}

// failOpen sets the body to send after recording or planning has failed.
func (x *Exchange) failOpen(s *open.Session) {
	x.req, x.offered = x.original, nil
	x.Session, x.Fit = nil, nil
	x.setBody(x.original.Body)
	if s == nil {
		s = x.all.findInMemory(x.incoming)
	}
	if s != nil {
		shown := true // the session has no reductions and no recall tools
		x.all.read(s, func(t *tx) { shown = !event.Hides(t.Log().State()) && t.recallTools() == "" })
		if shown {
			return
		}
		if !x.Dry {
			if body, err := x.render(s); err == nil {
				x.setBody(body)
				return
			}
		}
	}
	if body, ok := withoutThinking(x.req, x.all.Model(x.req.Model, x.req.Format)); ok {
		x.setBody(body)
		x.Why += "; thinking removed because it may be bound to another prompt"
	}
}

// findInMemory returns the session in memory that holds the longest part of a
// history, nil if there is none.
func (a *Sessions) findInMemory(in *incoming) *open.Session {
	var best *open.Session
	most := 0
	for _, s := range a.InMemory() {
		var matched int
		var other bool
		a.read(s, func(t *tx) {
			t.UpdateIndex()
			matched = find(t.Change, in.chains, in.req.Messages).matched
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
	if best != nil && most <= len(in.chains) && len(matchableChains(in.req.Messages[:most], in.chains)) == 0 {
		return nil // without a reply, other sessions may start alike
	}
	return best
}

// prepareFirst prepares an exchange in its session.
func (x *Exchange) prepareFirst(ctx context.Context, s *open.Session) error {
	defer s.Acquire()()
	x.incoming.redacted = nil
	var waits, starts bool
	x.all.read(s, func(t *tx) {
		starts = t.Log().Len() == 0
		if waits = t.pendingIn(x.incoming) != nil; !waits {
			waits, _ = t.lacksReply(x.incoming)
		}
	})
	if waits {
		x.all.await(ctx, s, x.incoming)
		x.all.awaitElsewhere(ctx, s, x.incoming)
	}
	if starts {
		if err := x.all.findRedacted(ctx, s, x.incoming); err != nil {
			return err
		}
	}
	if err := x.recordAwaited(ctx, s); err != nil {
		return err
	}
	return x.prepare(ctx, s, false)
}

// prepare plans and encodes the next request of an exchange, and keeps the draft of
// its records. After an error the exchange is unchanged.
func (x *Exchange) prepare(ctx context.Context, s *open.Session, noModel bool) error {
	if x.composed != nil {
		return x.prepareComposed(ctx, s, noModel)
	}
	was := x.Exchange
	d, err := s.Prepare(ctx, x.preparation(s, noModel, true))
	if err != nil {
		x.restore(was)
		return err
	}
	x.draft = d
	return nil
}

// restore resets the body and the plan to earlier ones.
func (x *Exchange) restore(was session.Exchange) {
	x.Body, x.Reduced, x.Fit, x.Why = was.Body, was.Reduced, was.Fit, was.Why
}

// preparation returns the functions by which the session prepares the next request
// of an exchange. recorded is set if the request will be recorded, so that other
// requests of the session can wait for its end.
func (x *Exchange) preparation(s *open.Session, noModel, recorded bool) open.Preparation {
	var planning time.Time
	return open.Preparation{
		NoModel: noModel,
		Now:     x.fitting.now(),
		Append: func(st *open.Change) error {
			if !x.stored {
				x.Why = ""
			}
			return x.appendRequest(x.all.tx(s, st))
		},
		Prompt: func(st *open.Change) open.Prompt {
			if planning.IsZero() {
				planning = time.Now()
			}
			return x.prompt(x.all.tx(s, st))
		},
		Encode: func(st *open.Change, fit *policy.Fit) error {
			planned := time.Now()
			x.Took.Plan += planned.Sub(planning)
			planning = time.Time{}
			x.Fit = fit
			err := x.encodeFit(fit)
			x.Took.Encode += time.Since(planned)
			if err == nil && recorded {
				x.all.tx(s, st).track(x)
			}
			if err == nil && x.fitting != nil {
				err = st.Await(fit)
			}
			return err
		},
		Committed: func(st *open.Change) { x.committed(x.all.tx(s, st)) },
	}
}

// appendRequest appends the new messages of a request. In an exchange that has
// committed a request, it rewinds to the record after which the exchange
// continues.
func (x *Exchange) appendRequest(t *tx) error {
	began := time.Now()
	defer func() { x.Took.Match += time.Since(began) }()
	if x.Committed {
		if err := t.resetHead(x.continueAt); err != nil {
			return err
		}
		t.pairMessages(x.incoming)
		return nil
	}
	x.startsSession = t.Log().Len() == 0 || t.onlyCommands()
	if err := t.attach(x.incoming); err != nil {
		return err
	}
	t.offerRecall(x, x.startsSession)
	if !x.stored {
		t.holdBilling(x)
	}
	if x.startsSession {
		t.storeFirstRequest(x)
	}
	return nil
}

// prompt returns the parts of the request other than the session's messages.
func (x *Exchange) prompt(t *tx) open.Prompt {
	return open.Prompt{
		Model: x.req.Model, Preamble: x.req.Preamble, Digest: x.req.PreambleDigest, MaxTokens: x.req.MaxTokens,
		Tail: x.req.Messages[len(x.req.Messages)-x.incoming.tailLen:], Refused: x.overflow, Window: x.window, ThinkingRefused: x.thinking,
		DryRun: x.Dry || x.stored, Unbound: x.Dry && x.lacksRecallTools(t), Cache: wire.For(x.req.Format).CacheRequest(x.req),
		HourCache: x.hourCache, Policy: x.fitting.policy(), Budget: x.fitting.budget(), Adjust: x.fitting.adjust(),
	}
}

// lacksRecallTools reports whether the session's earlier prompts had recall
// tools that this one lacks, and the model binds thinking to its prompt.
func (x *Exchange) lacksRecallTools(t *tx) bool {
	return len(x.offered) == 0 && t.recallTools() != "" && t.Model(x.req.Model).Thinking.Binds
}

// encodeFit sets the body to send for a fit.
func (x *Exchange) encodeFit(fit *policy.Fit) error {
	if x.stored {
		x.sendStored(fit)
		return nil
	}
	if x.Dry {
		return x.encodeDry(fit)
	}
	body, err := x.encode(fit.View)
	if err != nil {
		return err
	}
	x.setBody(body)
	x.askForHourCache(fit)
	return nil
}

// encodeDry sets the body of a dry run. It is the request's body unless thinking
// must be removed or recall tools and results inserted.
func (x *Exchange) encodeDry(fit *policy.Fit) error {
	x.setBody(x.original.Body)
	switch {
	case fit.Unbound:
		if body, ok := withoutThinking(x.req, fit.Budget.Model); ok {
			x.setBody(body)
			x.Why = "thinking removed because it may be bound to another prompt"
		}
	case fit.View.Dropped > 0 || x.incoming.pairs.hasOwn || len(x.offered) > 0:
		// Recall tools and results are part of the session's prompts.
		body, err := x.encode(fit.View)
		if err != nil {
			return err
		}
		x.setBody(body)
	}
	return nil
}

// encode returns the body to send for a view.
func (x *Exchange) encode(v *furl.View) ([]byte, error) {
	if x.composed != nil {
		return x.encodeComposed(v)
	}
	body, err := encode(x.req, v, x.incoming.pairs)
	if err != nil {
		return nil, err
	}
	return x.withBillingLine(withTools(x.req, body, x.offered)), nil
}

// render applies the reductions of a session in memory to a request that could not
// be recorded.
func (x *Exchange) render(s *open.Session) (body []byte, err error) {
	err = s.Try(func(st *open.Change) error {
		t := x.all.tx(s, st)
		if err := t.attach(x.incoming); err != nil {
			return err
		}
		x.addRecallTools(t.recallTools(), false) // they are part of the session's prompts
		t.holdBilling(x)
		body, err = x.encode(t.Log().State().View(t.Model(x.req.Model)))
		return err
	})
	return body, err
}
