package exchange_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/session"
)

// elsewhere returns the same client with sessions of another process.
func (c *client) elsewhere(all *session.Sessions) *client {
	other := *c
	other.all, other.history, other.name = all, slices.Clone(c.history), c.name+"x"
	return &other
}

// The client of one process sends its next request to another one, which has the
// first part of the session in memory.
func twoProcesses(t *testing.T, hint string) (c, other *client) {
	o := session.Options{Policy: "none"}
	all, store := open(t, o)
	c = newClient(t, all, "a")
	c.hints.Hint = hint
	c.step()
	other = c.elsewhere(reopen(t, store, o))
	other.step()
	c.history, c.replies = slices.Clone(other.history), other.replies
	return c, other
}

// checkOneCourse checks that the log has each message once, all on one path, and an
// exchange for each reply.
func checkOneCourse(t *testing.T, all *session.Sessions, id furl.SessionID, want string) {
	t.Helper()
	s, err := all.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	checked(t, s)
	replies := strings.Count(want, "a")
	if got := strings.Join(path(t, s), ""); got != want || strings.Count(kinds(s), "m") != len(want) || strings.Count(kinds(s), "x") != replies {
		t.Errorf("the path has %s, want %s; the log has %s, want each message once and %d exchanges", got, want, kinds(s), replies)
	}
	if n := len(s.Branches()); n != 1 {
		t.Errorf("%d branches", n)
	}
	if total := s.Meta().Ledger.Total(); total.Requests != replies {
		t.Errorf("the ledger has %d requests, want %d", total.Requests, replies)
	}
	if list, err := all.Find(t.Context(), session.Latest); err != nil || list.ID() != id {
		t.Errorf("the conversation has another session: %v", err)
	}
}

// A client's next request arrives at another process before its reply is recorded.
// The request waits for the reply.
func TestRequestWaitsForReplyElsewhere(t *testing.T) {
	for _, hint := range []string{"one", ""} {
		synctest.Test(t, func(t *testing.T) {
			c, other := twoProcesses(t, hint)
			do := call("toolu_last", "read", `{}`)
			_, first := c.begin()
			next := other.elsewhere(other.all)
			next.add(furl.RoleAssistant, text("looking on"), do)
			next.add(furl.RoleUser, result("toolu_last", "it says so"))
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, second := next.begin()
				next.reply(second, text("Done."))
			}()
			synctest.Wait() // for a pause
			c.reply(first, text("looking on"), do)
			<-done
			checkOneCourse(t, c.all, first.Session.ID(), "uauauaua")
			if n := countHeads(c, first.Session.ID()); n != 0 {
				t.Errorf("the log has %d rewinds", n)
			}
		})
	}
}

func countHeads(c *client, id furl.SessionID) (n int) {
	s, err := c.all.Open(c.t.Context(), id)
	if err != nil {
		c.fatal(err)
	}
	for _, r := range s.Records(0) {
		if _, ok := r.Body.(*furl.Head); ok {
			n++
		}
	}
	return n
}

// The first process is so slow that the request no longer waits: the request brings
// the reply, and its exchange is recorded without it.
func TestReplyIsRecordedElsewhereFirst(t *testing.T) {
	for _, answered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c, other := twoProcesses(t, "one")
			do := call("toolu_last", "read", `{}`)
			_, first := c.begin()
			other.add(furl.RoleAssistant, text("looking on"), do)
			other.add(furl.RoleUser, result("toolu_last", "it says so"))
			_, second := other.begin()
			if answered { // the head is inside a step then
				other.reply(second, text("once more"), call("toolu_more", "read", `{}`))
			}
			c.reply(first, text("looking on"), do)
			if !answered {
				other.reply(second, text("once more"), call("toolu_more", "read", `{}`))
			}
			_, third := other.begin()
			other.reply(third, text("Done."))
			checkOneCourse(t, reopen(t, c.all.Store(), session.Options{Policy: "none"}), first.Session.ID(), "uauauauaua")
		})
	}
}

// The first process has ended before it recorded the reply: the request waits for a
// moment and brings it.
func TestReplyIsNeverRecordedElsewhere(t *testing.T) {
	for _, hint := range []string{"one", ""} {
		synctest.Test(t, func(t *testing.T) {
			c, other := twoProcesses(t, hint)
			_, first := c.begin()
			defer first.Drop()
			other.send(text("looking on"))
			other.history = other.history[:len(other.history)-1]
			s, err := reopen(t, c.all.Store(), session.Options{}).Open(t.Context(), first.Session.ID())
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(path(t, s), ""); got != "uauaua" {
				t.Errorf("the path has %s", got)
			}
		})
	}
}

// A process that knows that the others have ended does not wait for their replies.
func TestReplyOfEndedProcess(t *testing.T) {
	for _, hint := range []string{"one", ""} {
		synctest.Test(t, func(t *testing.T) {
			o := session.Options{Policy: "none", Now: time.Now}
			all, store := open(t, o)
			c := newClient(t, all, "a")
			c.hints.Hint = hint
			c.step()
			_, first := c.begin()
			defer first.Drop()
			time.Sleep(time.Millisecond)
			began := time.Now()
			other := c.elsewhere(reopen(t, alone{store, began}, o))
			other.add(furl.RoleAssistant, text("looking on"))
			other.add(furl.RoleUser, text("go on"))
			_, x := other.begin()
			defer x.Drop()
			if x.Session.ID() != first.Session.ID() || strings.Join(path(t, x.Session), "") != "uauau" {
				t.Errorf("session %s, want %s, with %s", x.Session.ID(), first.Session.ID(), path(t, x.Session))
			}
			if took := time.Since(began); took > 0 {
				t.Errorf("id %q: it waited %s", hint, took)
			}
		})
	}
}

// Several conversations without an id start with the same message. The second
// request of one of them waits for its own first reply.
func TestFirstReplyElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := session.Options{Policy: "none"}
		all, store := open(t, o)
		o.NewID = func() furl.SessionID { return "other" }
		other := reopen(t, store, o)
		one, two := newClient(t, all, "one"), newClient(t, all, "two")
		_, first := one.begin()
		_, newer := two.begin()
		next := one.elsewhere(other)
		next.add(furl.RoleAssistant, text("hello, one"))
		next.add(furl.RoleUser, text("go on"))
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, second := next.begin()
			next.reply(second, text("Done."))
			if second.Session.ID() != first.Session.ID() {
				t.Errorf("the request is in session %s, want %s", second.Session.ID(), first.Session.ID())
			}
		}()
		synctest.Wait()
		two.reply(newer, text("hello, two"))
		one.reply(first, text("hello, one"))
		<-done
		for id, want := range map[furl.SessionID]string{first.Session.ID(): "uaua", newer.Session.ID(): "ua"} {
			s, err := reopen(t, store, session.Options{}).Open(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(path(t, s), ""); got != want {
				t.Errorf("session %s has %s, want %s", id, got, want)
			}
		}
	})
}

// A request that failed at one process succeeds at another one. The first one then
// knows the session by its id.
func TestHintStoredElsewhere(t *testing.T) {
	o := session.Options{Policy: "none"}
	all, store := open(t, o)
	o.NewID = func() furl.SessionID { return "other" }
	c := newClient(t, all, "a")
	c.hints.Hint = "one"
	_, refused := c.ask()
	refused.Drop()
	other := c.elsewhere(reopen(t, store, o))
	second := other.step()
	c.history = other.history
	if third := c.step(); third.Session.ID() != second.Session.ID() {
		t.Errorf("the conversation continues in session %s, want %s", third.Session.ID(), second.Session.ID())
	}
	checkOneCourse(t, all, second.Session.ID(), "uaua")
}

// What another process has hidden is hidden in the next request, which is sent once.
func TestHiddenElsewhere(t *testing.T) {
	o := session.Options{Policy: "rolling-mask-5"}
	all, store := open(t, o)
	clients := []*client{newClient(t, all, "a"), nil, nil}
	clients[0].hints.Hint = "one"
	for i := range clients[1:] {
		clients[i+1] = clients[0].elsewhere(reopen(t, store, o))
	}
	for n := range 30 {
		c := clients[n%3]
		x := c.step() // begin fails if the request has to be sent again
		if st := sessiontest.Log(t, x.Session).State(); n > 20 && !event.Hides(st) {
			t.Fatal("nothing is hidden")
		}
		next := clients[(n+1)%3]
		next.history, next.replies = slices.Clone(c.history), c.replies
	}
	s, err := all.Open(context.Background(), clients[0].last.Session.ID())
	if err != nil {
		t.Fatal(err)
	}
	checked(t, s)
	if n := countHeads(clients[0], s.ID()); n != 0 || len(s.Branches()) != 1 {
		t.Errorf("%d rewinds, %d branches", n, len(s.Branches()))
	}
}
