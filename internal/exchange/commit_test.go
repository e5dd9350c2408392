package exchange_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// Several conversations share a session, as an agent and those that it has
// started may, and several requests of each are under way at a time. Whatever
// order they are accepted, refused and answered in, what was sent is what is
// recorded: no request is sent twice, each path is its conversation's history,
// and what was refused is nowhere.
func TestRequestsUnderWayTogether(t *testing.T) {
	for _, policy := range []string{"none", "rolling-mask-5", "sliding-window", "auto"} {
		t.Run(policy, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { underWayTogether(t, rt, policy) })
		})
	}
}

type underWay struct {
	*client
	open []*exchange.Exchange // begun, and neither accepted nor refused
	said int
}

func underWayTogether(t *testing.T, rt *rapid.T, policy string) {
	store := inmem.New()
	defer store.Close()
	all := reopen(t, store, session.Options{Policy: policy, Window: 3000})
	var agents []*underWay
	for i := range 3 {
		c := newClient(t, all, fmt.Sprint("agent", i))
		c.history = nil
		c.add(furl.RoleUser, text(fmt.Sprint("agent ", i, " looks")))
		c.hints.Hint = "shared"
		agents = append(agents, &underWay{client: c})
	}
	pick := func() *underWay { return rapid.SampledFrom(agents).Draw(rt, "agent") }
	take := func(a *underWay) *exchange.Exchange {
		i := rapid.IntRange(0, len(a.open)-1).Draw(rt, "request")
		x := a.open[i]
		a.open = slices.Delete(a.open, i, i+1)
		return x
	}
	rt.Repeat(map[string]func(*rapid.T){
		"begin": func(*rapid.T) {
			a := pick()
			if len(a.open) < 3 {
				_, x := a.ask()
				a.open = append(a.open, x)
			}
		},
		"refuse": func(*rapid.T) {
			if a := pick(); len(a.open) > 0 {
				take(a).Drop()
			}
		},
		"accept": func(*rapid.T) {
			a := pick()
			if len(a.open) == 0 {
				return
			}
			x := take(a)
			sent := bytes.Clone(x.Body)
			if resend, err := x.Commit(t.Context()); err != nil || x.Err != nil || resend || !bytes.Equal(sent, x.Body) {
				rt.Fatalf("commit: %v %v, send again %v", err, x.Err, resend)
			}
			a.verify(x)
			for _, other := range a.open { // the same request, sent again meanwhile
				other.Drop()
			}
			a.open = nil
			a.said++
			a.reply(x, text(fmt.Sprint("looking ", a.said)), call(fmt.Sprintf("toolu_%s_%d", a.name, a.said), "read", `{}`))
		},
		"restart": func(*rapid.T) {
			for _, a := range agents {
				for _, x := range a.open {
					x.Drop()
				}
				a.open = nil
			}
			all = reopen(t, store, session.Options{Policy: policy, Window: 3000})
			for _, a := range agents {
				a.all = all
			}
		},
		"": func(*rapid.T) {},
	})
	sessions := 0
	for info, err := range all.List(t.Context(), storage.SessionQuery{}) {
		if sessions++; err != nil || sessions > 1 {
			rt.Fatalf("%d sessions, %v", sessions, err)
		}
		s, err := all.Open(t.Context(), info.Session)
		if err != nil {
			t.Fatal(err)
		}
		checked(t, s)
		chains := make(map[furl.Digest]bool)
		for _, r := range s.Records(0) {
			if m, ok := r.Body.(*furl.Message); ok && m.Role == furl.RoleUser {
				if chains[r.Chain] {
					rt.Fatalf("record %d is there twice", r.Seq)
				}
				chains[r.Chain] = true
			}
		}
	}
}

// A person hides something while a request is on its way: the request must be
// sent again without it. A pin changes nothing in what was sent.
func TestReducedWhileUnderWay(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "none"})
	c := newClient(t, all, "a")
	for range 3 {
		c.step()
	}
	_, x := c.ask()
	sent := bytes.Clone(x.Body)
	if err := x.Session.Hold(t.Context(), furl.Pin, furl.Span{First: furl.Pos{Msg: 1}, Last: furl.Pos{Msg: 1}}); err != nil {
		t.Fatal(err)
	}
	if resend, err := x.Commit(t.Context()); err != nil || resend || !bytes.Equal(x.Body, sent) {
		t.Errorf("after a pin: send again %v, %v", resend, err)
	}
	x.Drop()
	_, x = c.ask()
	if done, err := x.Session.Reduce(t.Context(), session.ReduceOptions{Stage: &policy.Mask{}}); err != nil || len(done.Planned) == 0 {
		t.Fatalf("nothing was masked: %v", err)
	}
	if resend, err := x.Commit(t.Context()); err != nil || !resend || bytes.Equal(x.Body, sent) {
		t.Errorf("after a reduction: send again %v, %v", resend, err)
	}
	c.reply(x, text("done"))
	checked(t, x.Session)
}

// A setting that is changed while a request is on its way is kept.
func TestSettingsChangedWhileUnderWay(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "none"})
	c := newClient(t, all, "a")
	c.hints.Hint = "one"
	c.step()
	c.hints.Client = "codex" // new to the session, so that the request changes what is known of it
	_, x := c.ask()
	if err := x.Session.Set(t.Context(), "policy", "sliding-window"); err != nil {
		t.Fatal(err)
	}
	if resend, err := x.Commit(t.Context()); err != nil || resend {
		t.Fatalf("send again %v, %v", resend, err)
	}
	if m := x.Session.Meta(); m.Policy != "sliding-window" || m.Client != "codex" {
		t.Errorf("the session has %+v", m)
	}
}

// Whoever sends a request and never says that it was accepted, but has its
// reply, was not refused.
func TestDoneCommits(t *testing.T) {
	all, store := open(t, session.Options{Policy: "none"})
	c := newClient(t, all, "a")
	_, x := c.ask()
	for info, err := range store.Sessions(t.Context(), "", storage.SessionQuery{}) {
		t.Errorf("session %s is stored before its request was accepted, %v", info.Session, err)
	}
	c.reply(x, text("hello"))
	if got := kinds(x.Session); got != "mxm" {
		t.Errorf("the records are %s, want mxm", got)
	}
	// A refusal commits nothing, nor does what comes after the end.
	c.add(furl.RoleUser, text("more"))
	_, x = c.ask()
	if err := x.Done(t.Context(), &protocol.Reply{Refusal: &protocol.Refusal{Status: 401}}); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := x.Done(t.Context(), &protocol.Reply{ID: "msg_late", Usage: furl.Usage{Input: 1}}); err != nil {
		t.Fatal(err)
	}
	if got := kinds(x.Session); got != "mxm" {
		t.Errorf("the records are %s, want mxm", got)
	}
}

// A session that is deleted while a request is on its way begins anew with it.
func TestDeletedWhileUnderWay(t *testing.T) {
	all, store := open(t, session.Options{Policy: "none"})
	c := newClient(t, all, "a")
	c.step()
	_, x := c.ask()
	was := x.Session.ID()
	if err := reopen(t, store, session.Options{}).Delete(t.Context(), was); err != nil {
		t.Fatal(err)
	}
	if resend, err := x.Commit(t.Context()); err != nil || resend || x.Err != nil {
		t.Fatalf("send again %v, %v %v", resend, err, x.Err)
	}
	c.reply(x, text("done"))
	if got := strings.Join(path(t, x.Session), ""); got != "uaua" || x.Session.ID() == was {
		t.Errorf("the path has %s in session %s, which was %s", got, x.Session.ID(), was)
	}
	checked(t, x.Session)
}
