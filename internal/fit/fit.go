// Package fit makes a request body fit a model's context window for a program that sends
// its requests itself, in any language: furl fit and POST /furl/v1/fit. It is the part of
// the gateway's path before a request is sent (package internal/exchange); no provider is
// called.
package fit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire"
)

// Request is a request body to fit, and what triggers need to know.
type Request struct {
	// Body is the request as the program would send it.
	Body []byte
	// Format is the format of the body. If empty, it is detected; a conversation of plain
	// texts looks the same in Anthropic Messages and Chat Completions, and then it is an
	// error.
	Format furl.Format
	// Policy is the name of the policy. If empty, defaults to that of the session, else of
	// the configuration. It becomes that of the session.
	Policy string
	// Model is the model's name, for a body that has none.
	Model string
	// Budget is the largest prompt: a number of tokens, or of characters with the suffix
	// "chars", which only the policy graduated has. If empty, or more than the model's
	// window leaves, the window decides.
	Budget string
	// Usage is the provider's usage object of the reply to the session's previous request.
	Usage json.RawMessage
	// Time is the time of the request. If zero, now.
	Time time.Time
	// Session is the id of the session that keeps the reductions; it is created if it does
	// not exist. If empty, nothing is remembered.
	Session furl.SessionID
	// HourCache says when the body asks for cache entries of one hour.
	HourCache protocol.HourCache
	// Began, if not nil, is called with the prepared request before it is recorded. An
	// error ends it.
	Began func(*session.Exchange) error
}

// Error is an error of the request. Others are failures of furl.
type Error struct{ err error }

func (e *Error) Error() string { return e.err.Error() }
func (e *Error) Unwrap() error { return e.err }

func invalid(format string, args ...any) error { return &Error{fmt.Errorf(format, args...)} }

// Fit fits a request. all are the sessions of its tenant; a request without a session uses
// only their options.
func Fit(ctx context.Context, all *session.Sessions, r *Request) (*Result, error) {
	q, err := check(all, r)
	if err != nil {
		return nil, err
	}
	if r.Session == "" {
		if all, err = ephemeral(all); err != nil {
			return nil, err
		}
	}
	before, err := recordsOf(ctx, all, r.Session)
	if err != nil {
		return nil, err
	}
	exchanges := exchange.Of(all)
	req, err := exchanges.Decode(q.api, r.Body)
	if err != nil {
		return nil, invalid("the body is not a request in the format %s: %w", q.api.Format(), err)
	}
	req.Model = cmp.Or(req.Model, r.Model)
	x, err := exchanges.Begin(ctx, req, exchange.BeginOptions{Hints: protocol.Hints{Session: r.Session}, HourCache: r.HourCache, Fitting: &q.fitting})
	if err != nil {
		return nil, err
	}
	defer x.Drop()
	if x.Err != nil {
		return nil, x.Err
	}
	if r.Began != nil {
		if err := r.Began(&x.Exchange); err != nil {
			return nil, err
		}
	}
	out := &Result{Body: x.Body, policy: r.Policy, stateless: r.Session == ""}
	out.describe(x, req)
	resend, err := x.Commit(ctx)
	switch {
	case err != nil:
		return nil, err
	case x.Err != nil:
		return nil, x.Err
	case resend: // the session has changed meanwhile
		out.Body = x.Body
		out.describe(x, req)
	}
	return out, out.recorded(x, before)
}

// checked is a request whose values are valid.
type checked struct {
	api     wire.API
	fitting exchange.Fitting
}

func check(all *session.Sessions, r *Request) (*checked, error) {
	q := &checked{fitting: exchange.Fitting{Policy: r.Policy, Now: r.Time}}
	var err error
	if r.Format != "" {
		if q.api = wire.For(r.Format); q.api == nil {
			return nil, invalid("unknown format %.40q: expected %s", r.Format, formats())
		}
	} else if q.api, err = wire.Detect(r.Body); err != nil {
		return nil, invalid("%w; give its format: %s", err, formats())
	}
	if r.Policy != "" {
		o := all.Options()
		if _, err := o.Policies.Policy(r.Policy, o.Settings); err != nil {
			return nil, &Error{err}
		}
	}
	if r.Session != "" && !storage.ValidID(r.Session) {
		return nil, invalid("invalid session %.80q: expected letters, digits, '.', '_' and '-', at most 128", r.Session)
	}
	if err := q.setBudget(r.Budget, cmp.Or(r.Policy, all.Options().Policy)); err != nil {
		return nil, err
	}
	if len(r.Usage) > 0 {
		if r.Session == "" {
			return nil, invalid("usage is of no use without a session: it is that of the reply to the session's previous request")
		}
		if q.fitting.Usage, q.fitting.Passes, q.fitting.Terms, err = q.api.DecodeUsage(r.Usage); err != nil {
			return nil, invalid("invalid usage: %w", err)
		}
	}
	return q, nil
}

// formats lists the formats.
func formats() string {
	return fmt.Sprintf("%s, %s or %s", furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses)
}

// setBudget sets the largest prompt.
func (q *checked) setBudget(text, policy string) error {
	if text == "" {
		return nil
	}
	digits, chars := strings.CutSuffix(text, "chars")
	n, err := strconv.Atoi(strings.TrimSpace(digits))
	switch {
	case err != nil || n <= 0:
		return invalid("invalid budget %.40q: expected a number of tokens such as 100000, or of characters such as 400000chars", text)
	case chars && policy != "graduated":
		return invalid("a budget in characters works only with the policy graduated; give it in tokens")
	case chars:
		q.fitting.Chars = n
	default:
		q.fitting.Budget = n
	}
	return nil
}

// ephemeral returns sessions in memory with the options of others.
func ephemeral(all *session.Sessions) (*session.Sessions, error) {
	o := *all.Options()
	o.Tenant, o.Indexer, o.Vectors, o.Keep = "", nil, nil, 1
	return session.New(inmem.New(), &o)
}

// recordsOf returns the number of records of a session, 0 if it does not exist.
func recordsOf(ctx context.Context, all *session.Sessions, id furl.SessionID) (furl.Seq, error) {
	if id == "" {
		return 0, nil
	}
	s, err := all.Open(ctx, id)
	if errors.Is(err, storage.ErrNoSession) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return furl.Seq(s.Info().Records), nil
}

// Result is a fitted request.
type Result struct {
	// Body is the body to send. It has the bytes of the request's body where nothing has
	// changed.
	Body    []byte
	Outcome Outcome
	Events  []event.Moment

	policy    string // of the request
	stateless bool
}

// describe describes an exchange that was prepared and is not recorded yet.
func (r *Result) describe(x *exchange.Exchange, req *protocol.Request) {
	o := &Outcome{Format: req.Format, Model: req.Model, Changed: x.Reduced, Note: x.Why, Steps: []Step{}, Hidden: []Hidden{}}
	r.Outcome = *o
	if x.Fit == nil {
		return
	}
	o = &r.Outcome
	o.Policy = cmp.Or(r.policy, x.Session.Policy())
	if !r.stateless {
		o.Session = x.Session.ID()
	}
	o.setPlan(x.Fit)
	for _, h := range x.Hidden() {
		hidden := Hidden{Message: h.Message, Block: h.Block, By: h.By}
		if !r.stateless {
			hidden.Handle = recall.HandleOf(h.At).String()
		}
		o.Hidden = append(o.Hidden, hidden)
	}
}

// recorded adds what follows from the records of an exchange. before is the number of
// records before it.
func (r *Result) recorded(x *exchange.Exchange, before furl.Seq) (err error) {
	r.Outcome.Reductions = []session.Recorded{}
	if x.Session == nil {
		return nil
	}
	for _, red := range x.Session.Reductions() {
		if red.Seq > before || slices.ContainsFunc(r.Outcome.Hidden, func(h Hidden) bool { return h.By == red.Seq }) {
			r.Outcome.Reductions = append(r.Outcome.Reductions, red)
		}
	}
	if r.Outcome.Outcome, err = x.Session.Outcome(x.Fit); err != nil {
		return err
	}
	if r.Events, err = x.Session.Events(before, x.Fit.Budget.Window); err != nil {
		return fmt.Errorf("events of the request: %w", err)
	}
	// The exchange is recorded with the reply. Its events are known already.
	planned := furl.Record{Parent: x.Fit.Head, Body: &furl.Exchange{Plan: x.Fit.PlanSteps(), Estimated: x.Fit.Plan.After}}
	told := event.Of(new(furl.State), planned, x.Fit.Budget.Window)
	if len(x.Fit.Plan.Reductions) > 0 { // each says the size
		told = slices.DeleteFunc(told, func(e event.Event) bool { _, ok := e.(event.ContextUsage); return ok })
	}
	r.Events = append(r.Events, event.Moment{Record: planned, Events: told})
	return nil
}
