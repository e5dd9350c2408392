package open

import (
	"context"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// Prepared is a request that was planned and is not committed. It is discarded if it is
// not committed.
type Prepared struct {
	*Change
	request Preparation
	Fit     *policy.Fit
}

// Prepare plans a request. It does not change the session before Prepared.Commit. If the
// policy asks a model for a summary, the session can be used while that is written.
func (s *Session) Prepare(ctx context.Context, p Preparation) (*Prepared, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.catchUp(ctx); err != nil {
		return nil, err
	}
	return s.prepare(ctx, &p, time.Time{}, !p.NoModel && (p.AskModel || s.all.live().Settings.Summarizer != nil) && !s.current().asksFirst())
}

// Commit records the request. If the session has changed since, the request is prepared
// again, without asking a model.
func (d *Prepared) Commit(ctx context.Context, how Durability) error {
	s := d.s
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.commit(ctx, how, d.Change, func() (*Change, error) {
		// With the same time, the plan for the same history is the same.
		again, err := s.prepare(ctx, &d.request, d.Fit.At, false)
		if err != nil {
			return nil, err
		}
		*d = *again
		return d.Change, nil
	})
	if err == nil && d.request.Committed != nil {
		d.request.Committed(s.current())
	}
	return err
}

// prepare plans a request. The session is locked.
func (s *Session) prepare(ctx context.Context, p *Preparation, now time.Time, ask bool) (*Prepared, error) {
	var asked *modelPlan
	if ask {
		var err error
		if asked, err = s.planWithModel(ctx, p); err != nil {
			return nil, err
		}
	}
	var fit *policy.Fit
	c, err := s.try(func(c *Change) error {
		in, err := c.appendRequest(p)
		if err != nil {
			return err
		}
		in.Now = now
		if fit, err = c.planRequest(ctx, in, asked); err != nil || p.Encode == nil {
			return err
		}
		return p.Encode(c, fit)
	})
	if err != nil {
		return nil, err
	}
	return &Prepared{c, *p, fit}, nil
}

func (c *Change) appendRequest(p *Preparation) (Prompt, error) {
	c.at = p.Now
	if p.Append != nil {
		if err := p.Append(c); err != nil {
			return Prompt{}, err
		}
	}
	in := p.Prompt(c)
	return in, c.repairEdits(in)
}

// repairEdits shows the text of files again in which an edit of the newest reply failed, if
// the policy does so. A dry run changes nothing, and a prompt that was refused as too long gets
// no longer.
func (c *Change) repairEdits(in Prompt) error {
	if in.DryRun || in.Refused != nil || !policy.MayRepair(c.log.State()) {
		return nil
	}
	p, err := c.PolicyWithoutModel(in)
	if err != nil {
		return err
	}
	b, _, _ := c.BudgetFor(in)
	if c.repair = policy.RepairOf(p, c.log.State(), b); c.repair == nil {
		return nil
	}
	_, err = c.Append(furl.Furl, c.repair.Restoration)
	return err
}

// modelPlan is a plan by a policy that may have asked a model for a summary.
type modelPlan struct {
	plan     *furl.Plan
	budget   furl.Budget
	counted  PreambleSize
	outdated bool // the session has changed since
}

// planWithModel plans with the session unlocked, because the policy may ask a model. It
// returns nil for a dry run.
func (s *Session) planWithModel(ctx context.Context, p *Preparation) (*modelPlan, error) {
	var by furl.Policy
	var a modelPlan
	var state *furl.State
	c, err := s.try(func(c *Change) error {
		in, err := c.appendRequest(p)
		if err != nil || in.DryRun {
			return err
		}
		if by, err = c.policyFor(in); err != nil {
			return err
		}
		a.budget, _, a.counted = c.BudgetFor(in)
		state, err = furl.Fold(c.log, c.log.Head())
		return err
	})
	if err != nil || state == nil {
		return nil, err
	}
	if a.plan, err = s.planUnlocked(ctx, by, state, a.budget); err != nil {
		return nil, fmt.Errorf("plan by %s: %w", by.Name(), err)
	}
	a.outdated = !c.isCurrent()
	return &a, nil
}

// planUnlocked unlocks the session while it plans on a copy of the state.
func (s *Session) planUnlocked(ctx context.Context, p furl.Policy, state *furl.State, b furl.Budget) (*furl.Plan, error) {
	s.mu.Unlock()
	defer s.mu.Lock()
	return p.Plan(ctx, state, b)
}
