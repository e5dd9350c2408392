package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/wire/openai"
)

// Exchange is one request of a client on its way to the model and back:
//
//	decode → match → append → plan → view → encode → (send) → append reply
//
// Sessions.Begin does all up to Body, which is to be sent. Then Done tells what
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
	// failure behind it, if it was one.
	Why string
	Err error
	// Dry says that this is a dry run: what Fit.Plan holds is recorded nowhere
	// and hidden from nobody.
	Dry bool
	// Took is how long furl's own part took.
	Took Took
	// Recovered tells of the prompt that the provider refused as too long,
	// nil if none was.
	Recovered *furl.OverflowRecovered

	all   *Sessions
	asked *furl.Request // as it came
	req   *furl.Request // with the recall tools that it is offered, in its preamble
	in    *arrival
	first furl.Seq      // the Fit's Head of the first request, if there are several
	end   chan struct{} // closed when the exchange is over
	// storing gives what came of storing what the request brought; nil: it is
	// stored.
	storing <-chan error

	offered []string // recall tools
	rounds  int      // that had a call of theirs
	recalls int      // such calls
}

// Reduced reports whether the body to send differs from the one that came.
func (x *Exchange) Reduced() bool {
	return len(x.Body) != len(x.req.Body) || len(x.Body) > 0 && &x.Body[0] != &x.req.Body[0]
}

// Begin matches a request to its session, appends what is new in it, plans,
// and gives what to send. It fails open: where furl's own part fails, the
// exchange has the request's own body and says why. Where something is hidden
// in the session, what is sent is made of what is in memory, without a new
// plan; without that, it is the original without the thinking that its model
// has bound to another prompt. The error is not nil only if Options.Refuse is
// set or ctx has ended.
//
// Each exchange must be ended by Done or Drop.
func (a *Sessions) Begin(ctx context.Context, req *furl.Request, h Hints) (*Exchange, error) {
	return a.start(ctx, &Exchange{Body: req.Body, all: a, asked: req, req: req}, h)
}

func (a *Sessions) start(ctx context.Context, x *Exchange, h Hints) (*Exchange, error) {
	req := x.req
	if req.Ambiguous != "" {
		x.Why = whyAmbiguous(req)
		return x, nil
	}
	if openai.Stateful(req) {
		x.Why = "the provider keeps the history, so it cannot be reduced here"
		return x, nil
	}
	if len(req.Messages) == 0 {
		x.Why = "the request has no messages"
		return x, nil
	}
	x.in = &arrival{req: req, chains: chainsIn(req), hints: h}
	return a.arrive(ctx, x)
}

// whyAmbiguous says why a request with an ambiguous field is not dealt with.
// The name is one of those that furl knows, not the client's own words.
func whyAmbiguous(req *furl.Request) string {
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
	if s != nil && errors.Is(err, furl.ErrNoSession) { // deleted elsewhere
		a.forget(s)
		if s, err = a.match(ctx, x.in); err == nil {
			err = s.begin(ctx, x)
		}
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

// fail notes and logs that furl's own part failed.
func (x *Exchange) fail(err error) {
	x.Err, x.Why = err, "furl could not record or plan for the request; its log says why"
	x.all.failures.Add(1)
	attrs := []any{"error", err}
	if x.Session != nil {
		attrs = append(attrs, "session", x.Session.ID())
	}
	x.all.log.Warn("an exchange could not be prepared", attrs...)
}

// Failures counts the exchanges that could not be prepared.
func (a *shared) Failures() int64 { return a.failures.Load() }

// open makes what is sent although furl's own part failed.
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
	s.await(ctx, x.in)
	var err error
	for try := 1; ; try++ {
		// Whoever waits for a summary again and again is given a plan without.
		asking := s.all.live().PolicyOptions.Summarizer != nil && !x.Dry && try <= maxAsked
		if err = s.arrive(ctx, x, asking); !errors.Is(err, errMoved) {
			break
		}
	}
	if err != nil {
		return err
	}
	if x.storing == nil { // else it is noted already
		s.mu.Lock()
		defer s.mu.Unlock()
		s.note(x)
	}
	return nil
}

// note notes an exchange that is under way. The session is locked.
func (s *Session) note(x *Exchange) {
	x.Session, x.end, x.first = s, make(chan struct{}), x.Fit.Head
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

// arrive attaches a request, plans and encodes. If the plan may ask a model,
// the session is free meanwhile; errMoved says that it was used elsewhere.
func (s *Session) arrive(ctx context.Context, x *Exchange, asking bool) error {
	var head furl.Seq
	var inside time.Duration
	began := time.Now()
	stored, err := s.changeAhead(ctx, func() error {
		at := time.Now()
		defer func() { inside += time.Since(at) }()
		x.Body, x.Session, x.Fit, x.Why = x.req.Body, nil, nil, ""
		m := s.model(x.req.Model)
		begins := s.log.Len() == 0
		err := s.attach(x.in, s.all.counter(&m))
		x.Took.Match += time.Since(at)
		if err != nil {
			return err
		}
		s.offer(x, begins)
		if head = s.log.Head(); asking {
			return nil
		}
		if x.Dry {
			return s.prepareDry(ctx, x)
		}
		return s.prepare(ctx, x, s.fitNow, 0)
	}, func() bool {
		if !x.mayGoAhead(asking) {
			return false
		}
		s.note(x)
		return true
	})
	x.storing = stored
	x.Took.Store += time.Since(began) - inside
	if err == nil && asking {
		err = s.prepare(ctx, x, s.fitAsking, head)
	}
	return err
}

// fitNow is fit by the session's policy, or by the same without a summarizer.
func (s *Session) fitNow(ctx context.Context, in fitIn) (*Fit, error) {
	if s.all.live().PolicyOptions.Summarizer == nil {
		return s.fit(ctx, in)
	}
	return s.fitQuietly(ctx, in)
}

// prepare plans and encodes.
func (s *Session) prepare(ctx context.Context, x *Exchange, fit func(context.Context, fitIn) (*Fit, error), base furl.Seq) error {
	in := x.asks(s)
	in.base = base
	began := time.Now()
	var err error
	x.Fit, err = fit(ctx, in)
	planned := time.Now()
	x.Took.Plan += planned.Sub(began)
	if err != nil {
		return err
	}
	x.Body, err = x.encode(x.Fit.View)
	x.Took.Encode += time.Since(planned)
	return err
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
	return fitIn{
		name: x.req.Model, preamble: x.req.Preamble, digest: x.req.PreambleDigest, maxOut: x.req.MaxTokens,
		extra: partOfTail(x.req.Messages[len(x.req.Messages)-x.in.tail:], s.all.counter(&m)),
	}
}

// maxAwait bounds how long a request waits for the end of the exchange whose
// reply it holds: the reply was sent on before it was recorded.
const maxAwait = 5 * time.Second

// await waits for exchanges whose reply the history goes on from, so that the
// reply is recorded once, behind its exchange.
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
		if x.Fit.Head == pl.at || x.first == pl.at {
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
	had := s.log.Len()
	defer s.undo(had)
	m := s.model(x.req.Model)
	if err := s.attach(x.in, s.all.counter(&m)); err != nil {
		return nil, false
	}
	x.offer(s.recallTools(), false) // part of the prompt, whoever answers
	body, err := x.encode(s.log.State().View(m))
	return body, err == nil
}

// Done records what came of the exchange, also if ctx has ended: the client may
// have gone, and what it was told is still true. A refusal, and a reply of
// which nothing came, are not recorded.
func (x *Exchange) Done(ctx context.Context, reply *furl.Reply) error {
	defer x.Drop()
	return x.record(ctx, reply)
}

// record records a reply.
func (x *Exchange) record(ctx context.Context, reply *furl.Reply) error {
	if x.Session == nil || x.end == nil || reply == nil || reply.Refusal != nil && len(reply.Messages) == 0 ||
		len(reply.Messages) == 0 && reply.Usage.IsZero() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxRecord)
	defer cancel()
	if err := x.Session.Observe(ctx, x.Fit, reply); err != nil {
		return fmt.Errorf("record the reply: %w", err)
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
	s := x.Session
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.pending[x]; ok {
		delete(s.pending, x)
		s.setBusy()
		close(x.end)
	}
}
