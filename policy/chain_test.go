package policy

import (
	"context"
	"errors"
	"testing"

	"github.com/furlhq/furl"
)

// failing is a policy that fails.
type failing struct{ err error }

func (failing) Name() string { return "failing" }

func (f failing) Plan(context.Context, *furl.State, furl.Budget) (*furl.Plan, error) {
	return nil, f.err
}

func TestChain(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, text(30))
	for range 9 {
		s.step("read", text(60))
	}
	b := s.budget(600)
	front := withoutBackstop(must(t, "rolling-mask-5"))
	slide := must(t, "sliding-window")

	both := chain{first: front, then: slide}
	plan, err := both.Plan(context.Background(), s.log.State(), b)
	if err != nil {
		t.Fatal(err)
	}
	if both.Name() != "sliding-window" || plan.Before != b.Size {
		t.Errorf("%s begins at %d, want %d", both.Name(), plan.Before, b.Size)
	}
	// Masking brings the view below the threshold, so the window stays put.
	if len(plan.Reductions) != 1 || plan.Reductions[0].Stage != "mask" {
		t.Errorf("planned %+v, want the mask alone", plan.Steps)
	}
	b.Window = 400
	if plan, err = both.Plan(context.Background(), s.log.State(), b); err != nil {
		t.Fatal(err)
	}
	if len(plan.Reductions) != 2 || plan.Reductions[1].Stage != "truncate" {
		t.Errorf("planned %+v, want mask, then truncate", plan.Steps)
	}
	s.plan(both, b)
	if got := s.view().Tokens; got != plan.After {
		t.Errorf("the view has %d tokens, the plan says %d", got, plan.After)
	}

	boom := errors.New("boom")
	if plan, err = (chain{first: failing{boom}, then: slide}).Plan(context.Background(), s.log.State(), b); err != nil || plan == nil {
		t.Errorf("a failure in front gives %v", err)
	}
	if _, err = (chain{first: front, then: failing{boom}}).Plan(context.Background(), s.log.State(), b); !errors.Is(err, boom) {
		t.Errorf("a failure behind gives %v", err)
	}
}

func TestFirstOf(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, text(30))
	for range 9 {
		s.step("read", text(60))
	}
	first := FirstOf{broken{}, &Truncate{}, &Mask{}}
	plan := s.plan(&Pipeline{Label: "p", Trigger: always, Stages: []Stage{first}}, s.budget(0))
	if len(plan.Steps) != 2 || !plan.Steps[0].Failed || plan.Steps[1].Stage != "truncate" || len(plan.Reductions) != 1 {
		t.Errorf("steps %+v", plan.Steps)
	}
	if _, err := (FirstOf{broken{}, &Mask{KeepResults: 99}}).Reduce(context.Background(), new(furl.State).View(furl.Model{}), furl.Budget{}); !errors.Is(err, Nothing) {
		t.Errorf("on an empty view it gives %v", err)
	}
}

func always(*furl.View, furl.Budget) bool { return true }
