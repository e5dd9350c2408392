package session

import (
	"context"
	"errors"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/protocol"
)

// Overflow learns from a provider that has refused the prompt as too long: it
// hides more, without asking any model, and reports whether Body is now to be
// sent instead. It helps once per exchange, and not in a dry run. What it hides
// is committed with the rest.
func (x *Exchange) Overflow(ctx context.Context, o *protocol.Overflow) bool {
	if x.Session == nil || x.end == nil || x.Recovered != nil || x.Dry || o == nil {
		return false
	}
	x.limit = x.all.learn(x.req.Model, o, x.Fit.Plan.After)
	s := x.Session
	before := len(x.Body)
	err := s.shorten(ctx, x, o)
	if err != nil {
		s.all.log.Warn("a prompt that is too long cannot be made shorter", "session", s.key.Session, "tokens", o.Tokens, "limit", o.Limit, "bytes", before, "error", err)
		return false
	}
	x.Recovered = &event.OverflowRecovered{Reported: o.Tokens, Limit: o.Limit}
	return true
}

// shorten prepares an exchange whose prompt was too long again. After an error
// it is what it was.
func (s *Session) shorten(ctx context.Context, x *Exchange, o *protocol.Overflow) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	was := *x
	x.forced = o
	err := s.prepare(ctx, x, time.Time{})
	if err == nil && (len(x.Fit.Plan.Reductions) == 0 || len(x.Body) >= len(was.Body)) {
		err = errNothing
	}
	if err != nil {
		x.Body, x.Fit, x.Why, x.held, x.forced = was.Body, was.Fit, was.Why, was.held, nil
	}
	return err
}

// backTo makes a record the head again, if the session has gone on elsewhere.
func (s *Session) backTo(head furl.Seq) error {
	if s.log.Head() == head {
		return nil
	}
	r, err := s.log.Rewind(head, s.all.o.Now(), furl.Furl)
	if err != nil || r.Parent != head {
		return errors.Join(err, furl.ErrNotOnPath)
	}
	return nil
}

var errNothing = errors.New("there is nothing to hide")

// learned is what a provider has told of a model.
type learned struct {
	window int
	// accepted is the largest prompt that it has taken, as it reported.
	accepted int
	// output says that the reply which a request asks for must fit beside the
	// prompt.
	output bool
}

// maxLearned bounds of how many models it is known.
const maxLearned = 1000

// margin is how much smaller than a refused prompt the window is taken to be
// if the provider does not tell: the prompt's size is an estimate.
const margin = 0.05

// learn remembers how large a model's prompts may be, as its provider says, or
// as can be told from a prompt of about so many tokens that it refused without
// a word about its window. It gives that size, 0 if nothing is known.
func (a *shared) learn(model string, o *protocol.Overflow, refused int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.learned[model]
	switch {
	case o.Limit > 0:
		l.window = o.Limit
		// A prompt that fits by itself was refused for the reply asked for.
		l.output = l.output || o.Tokens > 0 && o.Tokens <= o.Limit
	case refused > 0:
		window := max(refused-int(margin*float64(refused)), l.accepted)
		if l.window == 0 || window < l.window {
			l.window = window
		}
	default:
		return 0
	}
	a.know(model, l)
	return l.window
}

// accepted remembers how large a prompt a model's provider has taken. A window
// that is smaller was not the model's: a text that only looks like a refusal can
// name any number.
func (a *shared) accepted(model string, prompt int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.learned[model]
	was := l
	l.accepted = max(l.accepted, prompt)
	if l.window > 0 && prompt > l.window {
		l.window = 0
	}
	if l != was {
		a.know(model, l)
	}
}

func (a *shared) know(model string, l learned) {
	if a.learned == nil || len(a.learned) > maxLearned {
		a.learned = make(map[string]learned)
	}
	a.learned[model] = l
}

// outputCounts reports whether a provider has said that the reply which a
// request asks for must fit beside the prompt.
func (a *shared) outputCounts(model string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.learned[model].output
}
