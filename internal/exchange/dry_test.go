package exchange_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
)

// dry sends the client's request as a dry run.
func (c *client) dry() (*protocol.Request, *exchange.Exchange) {
	c.t.Helper()
	req := c.request()
	x, err := exchange.Of(c.all).Begin(c.t.Context(), req, exchange.BeginOptions{Hints: c.hints, DryRun: true})
	if err != nil || x.Err != nil {
		c.fatal("a dry run failed: ", err, x.Err)
	}
	c.last = x
	return req, x
}

// A dry run tells what it would hide, hides nothing, and records the exchange.
func TestDryRun(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "rolling-mask-5"})
	c := newClient(t, all, "a")
	for range 9 {
		req, x := c.dry()
		if &x.Body[0] != &req.Body[0] {
			t.Fatal("what is sent is not what came")
		}
		n := c.replies
		c.reply(x, text("looking"), call("toolu_"+string(rune('a'+n)), "read", `{"path":"f"}`))
	}
	_, x := c.dry()
	plan := x.Fit.Plan
	if len(plan.Reductions) == 0 || plan.After >= plan.Before || !x.Dry || x.Reduced {
		t.Errorf("the plan hides %d, from %d to %d tokens", len(plan.Reductions), plan.Before, plan.After)
	}
	c.reply(x, text("done"))
	s := x.Session
	if k := kinds(s); strings.Contains(k, "r") || strings.Count(k, "x") != 10 {
		t.Errorf("the log is %s, want 10 exchanges and no reduction", k)
	}
	last := s.Records(0)[s.Info().Records-2].Body.(*furl.Exchange)
	if last.Estimated != plan.Before || len(last.Plan) < 2 {
		t.Errorf("the exchange estimates %d tokens by %v, want %d", last.Estimated, last.Plan, plan.Before)
	}
	for _, step := range last.Plan {
		if step.Skipped == "" {
			t.Errorf("stage %s says that it did something", step.Stage)
		}
	}
	checked(t, s)
	// Without it, the same session is reduced as if it had never been tried.
	c.add(furl.RoleUser, text("go on"))
	if _, x := c.begin(); !x.Reduced || x.Session != s {
		t.Error("after the dry runs nothing is hidden")
	}
}

// In a session in which something is hidden already, a dry run sends the
// request as it came, and what is learned of its size is not taken for that of
// the view.
func TestDryRunOfReducedSession(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "rolling-mask-5"})
	c := newClient(t, all, "a")
	for range 10 {
		c.step()
	}
	_, before := c.begin()
	before.Drop()
	if !before.Reduced {
		t.Fatal("nothing is hidden")
	}
	req, x := c.dry()
	if !bytes.Equal(x.Body, req.Body) {
		t.Error("what is sent is not what came")
	}
	records := len(x.Session.Records(0))
	c.reply(x, text("done"))
	if k := kinds(x.Session)[records:]; k != "xm" {
		t.Errorf("recorded %q, want an exchange and a message", k)
	}
	ex := x.Session.Records(furl.Seq(records))[0].Body.(*furl.Exchange)
	if ex.Estimated <= before.Fit.Plan.After {
		t.Errorf("estimated %d tokens for all of it, and %d with what is hidden", ex.Estimated, before.Fit.Plan.After)
	}
	c.add(furl.RoleUser, text("go on"))
	_, after := c.begin()
	if !after.Reduced || after.Fit.Plan.After > before.Fit.Plan.After+200 {
		t.Errorf("the view is taken for %d tokens, before it was %d", after.Fit.Plan.After, before.Fit.Plan.After)
	}
	checked(t, after.Session)
}

// A dry run of a count leaves no trace.
func TestPeekForADryRun(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "rolling-mask-5"})
	c := newClient(t, all, "a")
	for range 9 {
		_, x := c.dry()
		n := c.replies
		c.reply(x, text("looking"), call("toolu_"+string(rune('a'+n)), "read", `{"path":"f"}`))
	}
	n := len(c.last.Session.Records(0))
	req := c.request()
	x, err := exchange.Of(all).Begin(t.Context(), req, exchange.BeginOptions{DryRun: true, Peek: true})
	if err != nil {
		t.Fatal(err)
	}
	if x.Fit == nil || len(x.Fit.Plan.Reductions) == 0 || x.Reduced {
		t.Errorf("the plan is %+v", x.Fit)
	}
	if err := x.Done(t.Context(), &protocol.Reply{Usage: furl.Usage{Input: 1}, Complete: true}); err != nil {
		t.Error(err)
	}
	if got := len(x.Session.Records(0)); got != n {
		t.Errorf("%d records, want %d", got, n)
	}
}
