package exchange_test

import (
	"testing"

	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
)

// Who looks at a session beside the gateway sees the limit that the gateway
// keeps to, and a gateway that has another one keeps to its own.
func TestLastWindow(t *testing.T) {
	all, store := open(t, session.Options{Window: 20_000})
	c := newClient(t, all, "one")
	c.step()
	id := c.last.Session.ID()
	limits := func(o *session.Options) (context, page int) {
		t.Helper()
		others, err := session.New(store, o)
		if err != nil {
			t.Fatal(err)
		}
		s, err := others.Open(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return s.Context("").Limit, modelOf(s, s.Meta().Model).Window
	}
	for _, tc := range []struct {
		name string
		o    session.Options
		want int
	}{
		{"a command", session.Options{LastWindow: true}, 20_000},
		{"a command that says another", session.Options{LastWindow: true, Window: 30_000}, 30_000},
		{"another gateway", session.Options{}, 200_000},
	} {
		if context, page := limits(&tc.o); context != tc.want || page != tc.want {
			t.Errorf("%s sees %d and %d, want %d", tc.name, context, page, tc.want)
		}
	}
	// The next gateway keeps to what the catalogue says.
	next, err := session.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.all = next
	c.step()
	if got := c.last.Session.Meta().Window; got != 0 {
		t.Errorf("the session still has a window of %d", got)
	}
	if context, _ := limits(&session.Options{LastWindow: true}); context != 200_000 {
		t.Errorf("a command sees %d", context)
	}
}

// What is hidden and shown again has the sizes that the context has.
func TestRestoredSizes(t *testing.T) {
	all, _ := open(t, session.Options{Window: 20_000})
	c := newClient(t, all, "one")
	for range 12 {
		c.step()
	}
	s := c.last.Session
	was := s.Context("").Size
	done, err := s.Reduce(t.Context(), session.ReduceOptions{Stage: &policy.Truncate{}})
	if err != nil || len(done.Planned) == 0 || done.Before != was {
		t.Fatalf("nothing was hidden, or from %d tokens where the context had %d: %v", done.Before, was, err)
	}
	now := s.Context("").Size
	for _, dry := range []bool{true, false} {
		back, err := s.Restore(t.Context(), session.RestoreOptions{Reduction: done.Planned[0].Record, DryRun: dry})
		if err != nil || back.Before != now || back.After-back.Before != done.Before-done.After {
			t.Errorf("restored from %d to %d, the context has %d and was reduced from %d to %d: %v", back.Before, back.After, now, done.Before, done.After, err)
		}
	}
}
