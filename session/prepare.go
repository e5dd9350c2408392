package session

import (
	"context"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
)

// Prompt is what a request sends besides the session's messages, and how it is
// planned.
type Prompt struct {
	// Model is the name that requests give it.
	Model string
	// Preamble is what is sent beside the messages: instructions as text blocks,
	// and each tool as an opaque one with its JSON as the text. It counts, and is
	// never reduced. Digest identifies it.
	Preamble []furl.Block
	Digest   furl.Digest
	// Tail are messages that are sent after those of the path.
	Tail []furl.Message
	// MaxTokens is the requested size of the reply; 0: none is.
	MaxTokens int
	// Refused is what the provider said when it refused the prompt as too long, nil
	// if it did not. Window is the window that this tells; 0: none.
	Refused *protocol.Overflow
	Window  int
	// DryRun plans, and records nothing of the plan: the fit's view shows all that
	// the client does not hide itself.
	DryRun bool
	// Unbound says that a dry run's prompt is not the view: no thinking is bound to
	// it.
	Unbound bool

	// Now is when it is planned for. If zero, the clock's time.
	now time.Time
	// force plans even if the policy's trigger is not reached.
	force bool
}

// Preparation is a request on its way into a session. Its functions may be called
// more than once, if the session has changed meanwhile: they start anew then.
type Preparation struct {
	// Lead, if not nil, appends what the request brings.
	Lead func(tx *Tx) error
	// Prompt returns what is sent besides.
	Prompt func(tx *Tx) Prompt
	// Encode, if not nil, is given what was planned.
	Encode func(tx *Tx, fit *Fit) error
	// NoModel has no model asked for a summary.
	NoModel bool
}

// Prepare plans a request. Nothing of it is in the session before Commit. If the
// policy asks a model for a summary, the session can be used while that is written.
func (s *Session) Prepare(ctx context.Context, p Preparation) (*Draft, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.catchUp(ctx); err != nil {
		return nil, err
	}
	return s.prepare(ctx, &p, time.Time{}, !p.NoModel && s.all.live().Settings.Summarizer != nil)
}

// Commit records a draft that was prepared, as UpdateEarly does. If the session has
// changed since, the request is prepared again, without asking any model.
func (s *Session) Commit(ctx context.Context, d *Draft) error {
	return s.commitDraft(ctx, committed, d)
}

func (s *Session) commitDraft(ctx context.Context, how durability, d *Draft) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commit(ctx, how, d, func() (*Draft, error) {
		// At the same time, since a plan for the same history is then the same.
		again, err := s.prepare(ctx, &d.request, d.fit.At, false)
		if err != nil {
			return nil, err
		}
		*d = *again
		return d, nil
	})
}

// prepare makes the draft of a request. The session is locked.
func (s *Session) prepare(ctx context.Context, p *Preparation, now time.Time, ask bool) (*Draft, error) {
	var asked *asked
	if ask {
		var err error
		if asked, err = s.ask(ctx, p); err != nil {
			return nil, err
		}
	}
	var fit *Fit
	d, err := s.draft(func() error {
		in, err := s.lead(p)
		if err != nil {
			return err
		}
		in.now = now
		if fit, err = s.fit(ctx, in, asked); err != nil || p.Encode == nil {
			return err
		}
		return p.Encode(&Tx{s}, fit)
	})
	if err != nil {
		return nil, err
	}
	d.request, d.fit = *p, fit
	return d, nil
}

func (s *Session) lead(p *Preparation) (Prompt, error) {
	if p.Lead != nil {
		if err := p.Lead(&Tx{s}); err != nil {
			return Prompt{}, err
		}
	}
	return p.Prompt(&Tx{s}), nil
}

// asked is a plan by a policy that may ask a model.
type asked struct {
	plan    *furl.Plan
	budget  furl.Budget
	counted preambleSize
	late    bool // the session has changed since
}

// ask plans with the session unlocked. It returns nil for a dry run.
func (s *Session) ask(ctx context.Context, p *Preparation) (*asked, error) {
	by, err := s.plans()
	if err != nil {
		return nil, err
	}
	var a asked
	var state *furl.State
	d, err := s.draft(func() error {
		in, err := s.lead(p)
		if err != nil || in.DryRun {
			return err
		}
		a.budget, _, a.counted = s.budgetFor(in)
		state, err = furl.Fold(s.log, s.log.Head())
		return err
	})
	if err != nil || state == nil {
		return nil, err
	}
	if a.plan, err = s.planUnlocked(ctx, by, state, a.budget); err != nil {
		return nil, fmt.Errorf("plan by %s: %w", by.Name(), err)
	}
	a.late = !d.fits(s)
	return &a, nil
}

// planUnlocked plans on a state of its own. The session is locked, but not
// meanwhile.
func (s *Session) planUnlocked(ctx context.Context, p furl.Policy, state *furl.State, b furl.Budget) (*furl.Plan, error) {
	s.mu.Unlock()
	defer s.mu.Lock()
	return p.Plan(ctx, state, b)
}
