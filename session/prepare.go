package session

import (
	"context"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
)

// Prompt holds the parts of a request besides the session's messages, and options
// of its plan.
type Prompt struct {
	// Model is the model's name in requests.
	Model string
	// Preamble is what is sent in addition to the messages: instructions as text
	// blocks, and each tool as an opaque block with its JSON as the text. It counts
	// and is never reduced. Digest identifies it.
	Preamble []furl.Block
	Digest   furl.Digest
	// Tail are messages that are sent after those of the path.
	Tail []furl.Message
	// MaxTokens is the requested maximum size of the reply in tokens, 0 if unset.
	MaxTokens int
	// CacheLifetime is how long the request's cache entries live, 0 if unknown: then
	// as long as those of earlier requests.
	CacheLifetime time.Duration
	// Refused is the provider's error if it refused the prompt as too long, else
	// nil. Window is the context window by that error, 0 if unknown.
	Refused *protocol.Overflow
	Window  int
	// DryRun plans without recording the plan. The fit's view shows everything
	// that the client has not changed itself.
	DryRun bool
	// Unbound reports that a dry run's prompt is not the view, so no thinking is
	// bound to the view.
	Unbound bool

	// now is the time of the plan. If zero, defaults to the clock's time.
	now time.Time
	// force plans even below the policy's trigger.
	force bool
}

// Preparation holds the functions by which a session prepares a request. They may be
// called more than once if the session changes meanwhile, and must then start over.
type Preparation struct {
	// Append, if not nil, appends the new messages of the request.
	Append func(tx *Tx) error
	// Prompt returns the other parts of the request.
	Prompt func(tx *Tx) Prompt
	// Encode, if not nil, is called with the planned prompt.
	Encode func(tx *Tx, fit *Fit) error
	// NoModel disables summaries written by a model during the plan.
	NoModel bool
}

// Prepare plans a request. It does not change the session before Commit. If the
// policy asks a model for a summary, the session can be used while that is written.
func (s *Session) Prepare(ctx context.Context, p Preparation) (*Draft, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.catchUp(ctx); err != nil {
		return nil, err
	}
	return s.prepare(ctx, &p, time.Time{}, !p.NoModel && s.all.live().Settings.Summarizer != nil)
}

// Commit records a prepared draft with the durability of UpdateEarly. If the session
// has changed since, the request is prepared again, without asking a model.
func (s *Session) Commit(ctx context.Context, d *Draft) error {
	return s.commitDraft(ctx, committed, d)
}

func (s *Session) commitDraft(ctx context.Context, how durability, d *Draft) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commit(ctx, how, d, func() (*Draft, error) {
		// With the same time, the plan for the same history is the same.
		again, err := s.prepare(ctx, &d.request, d.fit.At, false)
		if err != nil {
			return nil, err
		}
		*d = *again
		return d, nil
	})
}

// prepare returns the draft of a request. The session is locked.
func (s *Session) prepare(ctx context.Context, p *Preparation, now time.Time, ask bool) (*Draft, error) {
	var asked *modelPlan
	if ask {
		var err error
		if asked, err = s.planWithModel(ctx, p); err != nil {
			return nil, err
		}
	}
	var fit *Fit
	d, err := s.draft(func() error {
		in, err := s.appendRequest(p)
		if err != nil {
			return err
		}
		in.now = now
		if fit, err = s.planRequest(ctx, in, asked); err != nil || p.Encode == nil {
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

func (s *Session) appendRequest(p *Preparation) (Prompt, error) {
	if p.Append != nil {
		if err := p.Append(&Tx{s}); err != nil {
			return Prompt{}, err
		}
	}
	return p.Prompt(&Tx{s}), nil
}

// modelPlan is a plan by a policy that may have asked a model for a summary.
type modelPlan struct {
	plan     *furl.Plan
	budget   furl.Budget
	counted  preambleSize
	outdated bool // the session has changed since
}

// planWithModel plans with the session unlocked, because the policy may ask a model. It
// returns nil for a dry run.
func (s *Session) planWithModel(ctx context.Context, p *Preparation) (*modelPlan, error) {
	by, err := s.sessionPolicy()
	if err != nil {
		return nil, err
	}
	var a modelPlan
	var state *furl.State
	d, err := s.draft(func() error {
		in, err := s.appendRequest(p)
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
	a.outdated = !d.isCurrent(s)
	return &a, nil
}

// planUnlocked unlocks the session while it plans on a copy of the state.
func (s *Session) planUnlocked(ctx context.Context, p furl.Policy, state *furl.State, b furl.Budget) (*furl.Plan, error) {
	s.mu.Unlock()
	defer s.mu.Lock()
	return p.Plan(ctx, state, b)
}
