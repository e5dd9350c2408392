package exchange_test

import (
	"testing"

	"github.com/furlhq/furl/session"
)

// Other options hold from the next request on, in sessions that are open, too;
// what is under way ends as it began.
func TestConfigure(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "none"})
	c := newClient(t, all, "a")
	for range 9 {
		c.step()
	}
	_, x := c.begin()
	if x.Reduced {
		t.Fatal("the policy none hides something")
	}
	if err := all.Configure(&session.Options{Policy: "rolling-mask-5", Window: 50_000}); err != nil {
		t.Fatal(err)
	}
	c.reply(x, text("done"))
	s := x.Session
	c.add("user", text("go on"))
	_, y := c.begin()
	if !y.Reduced || y.Session != s || y.Fit.Budget.Window != 50_000 {
		t.Errorf("reduced %t in a window of %d, want the new policy in the new window", y.Reduced, y.Fit.Budget.Window)
	}
	y.Drop()
	if err := all.Configure(&session.Options{Policy: "no such policy"}); err == nil {
		t.Error("an unknown policy is no error")
	}
	if _, z := c.begin(); !z.Reduced {
		t.Error("options that make no sense have changed something")
	}
	checked(t, s)
}
