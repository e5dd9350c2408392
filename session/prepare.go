package session

import (
	"context"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/transact"
)

// prepareRequest plans a request. It does not change the session before the draft is
// committed.
func (s *Session) prepareRequest(ctx context.Context, p preparation) (*draft, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.catchUp(ctx); err != nil {
		return nil, err
	}
	return s.prepare(ctx, &p, time.Time{}, !p.NoModel && (p.AskModel || s.all.live().Settings.Summarizer != nil) && !s.asksFirst())
}

// Commit implements transact.Draft.
func (d *draft) Commit(ctx context.Context) error { return d.of.commitDraft(ctx, committed, d) }

// commitDraft commits a prepared draft.
func (s *Session) commitDraft(ctx context.Context, how durability, d *draft) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commit(ctx, how, d, func() (*draft, error) {
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
func (s *Session) prepare(ctx context.Context, p *preparation, now time.Time, ask bool) (*draft, error) {
	var asked *modelPlan
	if ask {
		var err error
		if asked, err = s.planWithModel(ctx, p); err != nil {
			return nil, err
		}
	}
	var fit *Fit
	d, err := s.draft(func() error {
		s.at = p.Now
		defer func() { s.at = time.Time{} }()
		in, err := s.appendRequest(p)
		if err != nil {
			return err
		}
		in.Now = now
		if fit, err = s.planRequest(ctx, in, asked); err != nil || p.Encode == nil {
			return err
		}
		return p.Encode(&tx{s}, fit)
	})
	if err != nil {
		return nil, err
	}
	d.of, d.request, d.fit = s, *p, fit
	return d, nil
}

func (s *Session) appendRequest(p *preparation) (transact.Prompt, error) {
	if p.Append != nil {
		if err := p.Append(&tx{s}); err != nil {
			return transact.Prompt{}, err
		}
	}
	return p.Prompt(&tx{s}), nil
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
func (s *Session) planWithModel(ctx context.Context, p *preparation) (*modelPlan, error) {
	var by furl.Policy
	var a modelPlan
	var state *furl.State
	d, err := s.draft(func() error {
		s.at = p.Now
		defer func() { s.at = time.Time{} }()
		in, err := s.appendRequest(p)
		if err != nil || in.DryRun {
			return err
		}
		if by, err = s.policyFor(in); err != nil {
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
