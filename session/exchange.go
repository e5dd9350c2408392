package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire"
)

// Exchange is one request of a client on its way to the model and back:
//
//	decode → match → plan → view → encode → (send) → append → append reply
//
// Sessions.Begin does all up to Body, which is to be sent. Commit stores what
// the request brought once the provider has accepted it. Then Done tells what
// came back, or Drop that nothing did. The gateway and furlhttp are this with a
// connection on each side.
type Exchange struct {
	// Body is what to send: the request's own bytes, with the view's changes.
	Body []byte
	// Session is where it is recorded, nil if it is not.
	Session *Session
	// Fit is what was planned, nil without a session.
	Fit *Fit
	// Why says why the request goes on as it came although that may not be
	// what was wanted, "" if all is well; clients may read it. Err is the
	// cause, if there was one.
	Why string
	Err error
	// Dry says that this is a dry run: what Fit.Plan holds is recorded nowhere
	// and hides nothing.
	Dry bool
	// Took is how long furl's part took.
	Took Took
	// Recovered tells of the prompt that the provider refused as too long,
	// nil if none was.
	Recovered *event.OverflowRecovered

	all   *Sessions
	asked *protocol.Request // as it came
	req   *protocol.Request // with the recall tools that it is offered, in its preamble
	in    *arrival
	held  *draft        // to be committed; nil: nothing is
	at    furl.Seq      // the record that the next request of the exchange follows
	first furl.Seq      // the Fit's Head of the first request; 0: nothing is committed
	end   chan struct{} // closed when the exchange is over
	// forced is what the provider said when it refused the prompt as too long.
	forced *protocol.Overflow
	limit  int // the window that this tells

	offered []string // recall tools
	rounds  int      // that had a call of theirs
	recalls int      // such calls
}

// Reduced reports whether the body to send differs from the one that came.
func (x *Exchange) Reduced() bool {
	return len(x.Body) != len(x.req.Body) || len(x.Body) > 0 && &x.Body[0] != &x.req.Body[0]
}

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
	Hints  Hints
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
	x := &Exchange{Body: req.Body, Dry: o.DryRun, all: a, asked: req, req: req}
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
		err = s.begin(ctx, x)
	}
	if err == nil {
		return x, nil
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		x.Drop()
		return nil, ctxErr
	}
	x.fail(err)
	if a.live().Refuse {
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
	x.all.log.Warn("an exchange could not be prepared", attrs...)
}

// open makes what is sent although furl's part failed.
func (x *Exchange) open(s *Session) {
	x.req, x.offered = x.asked, nil
	x.Body, x.Session, x.Fit = x.req.Body, nil, nil
	if s == nil {
		s = x.all.remembered(x.in)
	}
	if s != nil {
		if !s.hides() && !s.remembers() {
			return
		}
		if !x.Dry {
			if body, ok := s.render(x); ok {
				x.Body = body
				return
			}
		}
	}
	if body, ok := unbound(x.req, x.all.Model(x.req.Model, x.req.Format)); ok {
		x.Body = body
		x.Why += "; sent without the thinking that may be bound to another prompt"
	}
}

// hides reports whether something is hidden in the session that its client
// does not hide itself.
func (s *Session) hides() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hidesNow()
}

// hidesNow is hides for who holds the lock.
func (s *Session) hidesNow() bool { return hiding(s.log.State()) }

// remembered finds the session of a history among those in memory.
func (a *Sessions) remembered(in *arrival) *Session {
	var best *Session
	most := 0
	for _, s := range a.inMemory() {
		s.mu.Lock()
		s.places.follow(s.log)
		pl := s.places.find(s.log, in.chains, in.req.Messages)
		other := in.hints.Hint != "" && s.meta.Hint != "" && s.meta.Hint != in.hints.Hint
		if s.key.Session == in.hints.Session || in.hints.Hint != "" && s.meta.Hint == in.hints.Hint {
			pl.matched += len(in.chains)
		}
		s.mu.Unlock()
		if pl.matched > most && !other {
			best, most = s, pl.matched
		}
	}
	if best != nil && most <= len(in.chains) && len(usable(in.req.Messages[:most], in.chains)) == 0 {
		return nil // a beginning that others have too
	}
	return best
}

// begin is Begin for the session that the request belongs to.
func (s *Session) begin(ctx context.Context, x *Exchange) error {
	s.using.Add(1)
	defer s.using.Add(-1)
	s.await(ctx, x.in)
	if s.all.live().Settings.Summarizer != nil && !x.Dry {
		// A request that waits for a summary again and again is given a plan without.
		for range maxAsked {
			if err := s.prepareAsking(ctx, x); !errors.Is(err, errMoved) {
				return err
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	return s.prepare(ctx, x, time.Time{})
}

// note notes an exchange that is under way. The session is locked.
func (s *Session) note(x *Exchange) {
	if x.end != nil {
		return
	}
	x.Session, x.end = s, make(chan struct{})
	if s.pending == nil {
		s.pending = make(map[*Exchange]struct{})
	}
	s.pending[x] = struct{}{}
	s.setBusy()
}

// setBusy notes whether the session must stay in memory. It is locked.
func (s *Session) setBusy() {
	n := len(s.pending)
	if s.preparing {
		n++
	}
	s.busy.Store(int32(n))
}

// maxAsked is how often a request asks for a summary anew because another
// request of the session came in between.
const maxAsked = 2

// lead appends to a draft what is new in a request, or goes back to where an
// exchange that has begun goes on.
func (s *Session) lead(x *Exchange) error {
	began := time.Now()
	defer func() { x.Took.Match += time.Since(began) }()
	if x.first != 0 {
		if err := s.backTo(x.at); err != nil {
			return err
		}
		s.repair(x.in)
		return nil
	}
	m := s.model(x.req.Model)
	begins := s.log.Len() == 0
	if err := s.attach(x.in, s.all.counter(&m)); err != nil {
		return err
	}
	s.offer(x, begins)
	if begins {
		s.noteOpening(x)
	}
	return nil
}

// prepare plans and encodes what is sent next, and has the exchange hold what
// that appends. now is the time to plan by; zero: the clock's. The session is
// locked. After an error the exchange is what it was.
func (s *Session) prepare(ctx context.Context, x *Exchange, now time.Time) error {
	body, fit, why := x.Body, x.Fit, x.Why
	x.Why = ""
	h, err := s.draft(func() error {
		if err := s.lead(x); err != nil {
			return err
		}
		if x.Dry {
			return s.prepareDry(ctx, x)
		}
		in := x.asks(s)
		in.now = now
		return s.fitTo(x, func() (*Fit, error) { return s.fitNow(ctx, in) })
	})
	if err != nil {
		x.Body, x.Fit, x.Why = body, fit, why
		return err
	}
	x.held = h
	s.note(x)
	return nil
}

// prepareAsking is prepare for policies that may ask a model. The session is
// free meanwhile; errMoved says that it has changed.
func (s *Session) prepareAsking(ctx context.Context, x *Exchange) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	p, err := s.plans()
	if err != nil {
		return err
	}
	var state *furl.State
	var b furl.Budget
	var counted preambleSize
	h, err := s.draft(func() (err error) {
		if err := s.lead(x); err != nil {
			return err
		}
		b, _, counted = s.budgetFor(x.asks(s))
		state, err = furl.Fold(s.log, s.log.Head())
		return err
	})
	if err != nil {
		return err
	}
	began := time.Now()
	plan, err := s.planUnlocked(ctx, p, state, b)
	x.Took.Plan += time.Since(began)
	if err != nil {
		return fmt.Errorf("plan by %s: %w", p.Name(), err)
	}
	if !h.fits(s) {
		return errMoved
	}
	h, err = s.draft(func() error {
		if err := s.lead(x); err != nil {
			return err
		}
		return s.fitTo(x, func() (*Fit, error) {
			for _, red := range plan.Reductions {
				if _, err := s.add(furl.Furl, red); err != nil {
					return nil, fmt.Errorf("plan by %s: %w", p.Name(), err)
				}
			}
			return s.fitted(x.asks(s), b, plan, counted), nil
		})
	})
	if err != nil {
		return err
	}
	x.held = h
	s.note(x)
	return nil
}

// planUnlocked plans on a state of its own. The session is locked, but not
// meanwhile.
func (s *Session) planUnlocked(ctx context.Context, p furl.Policy, state *furl.State, b furl.Budget) (*furl.Plan, error) {
	s.mu.Unlock()
	defer s.mu.Lock()
	return p.Plan(ctx, state, b)
}

// fitTo encodes a fit for an exchange.
func (s *Session) fitTo(x *Exchange, fit func() (*Fit, error)) error {
	began := time.Now()
	var err error
	x.Fit, err = fit()
	planned := time.Now()
	x.Took.Plan += planned.Sub(began)
	if err != nil {
		return err
	}
	if o := x.forced; o != nil {
		x.Fit.Plan.Steps = slices.Insert(x.Fit.Plan.Steps, 0, furl.PlanStep{
			Stage: furl.StageOverflow, Skipped: "the provider refused the prompt as too long", Before: o.Tokens, After: o.Limit,
		})
	}
	x.Body, err = x.encode(x.Fit.View)
	x.Took.Encode += time.Since(planned)
	return err
}

// fitNow is fit by the session's policy, or by the same without a summarizer.
func (s *Session) fitNow(ctx context.Context, in fitIn) (*Fit, error) {
	if s.all.live().Settings.Summarizer == nil {
		return s.fit(ctx, in)
	}
	return s.fitQuietly(ctx, in)
}

// encode makes the body to send of a view.
func (x *Exchange) encode(v *furl.View) ([]byte, error) {
	body, err := encode(x.req, v, x.in.pairs)
	if err != nil {
		return nil, err
	}
	return withTools(x.req, body, x.offered), nil
}

// asks is what the request brings along beside the session's messages.
func (x *Exchange) asks(s *Session) fitIn {
	m := s.all.Model(x.req.Model, x.req.Format)
	in := fitIn{
		name: x.req.Model, preamble: x.req.Preamble, digest: x.req.PreambleDigest, maxOut: x.req.MaxTokens,
		extra: partOfTail(x.req.Messages[len(x.req.Messages)-x.in.tail:], s.all.counter(&m)),
	}
	if x.forced != nil {
		in.force, in.limit, in.size = true, x.limit, x.forced.Tokens
	}
	return in
}

// maxAwait bounds how long a request waits for the end of the exchange whose
// reply it holds: the reply was sent on before it was recorded.
const maxAwait = 5 * time.Second

// await waits for exchanges whose reply the history goes on from, so that the
// reply is recorded once, after its exchange.
func (s *Session) await(ctx context.Context, in *arrival) {
	timeout := time.NewTimer(maxAwait)
	defer timeout.Stop()
	for {
		end := s.waitFor(in)
		if end == nil {
			return
		}
		select {
		case <-end:
		case <-timeout.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (s *Session) waitFor(in *arrival) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 {
		return nil
	}
	s.places.follow(s.log)
	pl := s.place(in)
	if pl.matched == len(in.chains)-in.tail || in.req.Messages[pl.matched].Role != furl.RoleAssistant {
		return nil
	}
	for x := range s.pending {
		if x.first == 0 {
			continue // its client has no answer yet
		}
		if x.first == pl.at || x.held == nil && x.Fit.Head == pl.at {
			return x.end
		}
	}
	return nil
}

// render applies what is hidden in the session, as it is in memory, to a
// request that could not be stored. ok is false if that fails too.
func (s *Session) render(x *Exchange) (body []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.model(x.req.Model)
	_, err := s.draft(func() (err error) {
		if err := s.attach(x.in, s.all.counter(&m)); err != nil {
			return err
		}
		x.offer(s.recallTools(), false) // part of the prompt, whoever answers
		body, err = x.encode(s.log.State().View(m))
		return err
	})
	return body, err == nil
}

// Done records what came of the exchange, also if ctx has ended: the client may
// have gone, and what it was told is still true. A refusal, and a reply of
// which nothing came, are not recorded.
func (x *Exchange) Done(ctx context.Context, reply *protocol.Reply) error {
	defer x.Drop()
	return x.record(ctx, reply)
}

// record records a reply.
func (x *Exchange) record(ctx context.Context, reply *protocol.Reply) error {
	if x.Session == nil || x.end == nil || x.over() || reply == nil || reply.Refusal != nil && len(reply.Messages) == 0 ||
		len(reply.Messages) == 0 && reply.Usage.IsZero() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxRecord)
	defer cancel()
	sent := x.bodies() // Commit may prepare another
	if err := x.committed(ctx); err != nil {
		return err
	}
	x.Fit.bodies = sent
	if err := x.Session.Observe(ctx, x.Fit, reply); err != nil {
		return fmt.Errorf("record the reply: %w", err)
	}
	return nil
}

// committed has what the request brought committed, if it is not yet: whoever
// has its reply was not refused.
func (x *Exchange) committed(ctx context.Context) error {
	if _, err := x.Commit(ctx); err != nil {
		return fmt.Errorf("record the request: %w", err)
	}
	if x.Session == nil {
		return fmt.Errorf("record the request: %w", x.Err)
	}
	if x.first == 0 {
		return fmt.Errorf("record the request: %w", errOver)
	}
	return nil
}

// maxRecord bounds how long the recording of a reply may take.
const maxRecord = 30 * time.Second

// Drop ends an exchange of which nothing is recorded. It may be called more
// than once, and after Done.
func (x *Exchange) Drop() {
	if x.Session == nil || x.end == nil {
		return
	}
	if s := x.Session; s.drop(x) {
		x.all.forget(s)
	}
}

// drop ends an exchange. It reports whether the session has nothing in it.
func (s *Session) drop(x *Exchange) (empty bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.pending[x]; !ok {
		return false
	}
	delete(s.pending, x)
	s.setBusy()
	close(x.end)
	x.held = nil
	return len(s.pending) == 0 && s.log.Len() == 0 && !s.stale
}
