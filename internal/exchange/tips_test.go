package exchange_test

import (
	"context"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// asked counts what a store is asked for.
type asked struct {
	storage.Store
	matches, reads, lists int
}

func (a *asked) Match(ctx context.Context, t furl.Tenant, chains []furl.Digest, limit int) ([]storage.Matched, error) {
	a.matches++
	return a.Store.Match(ctx, t, chains, limit)
}

func (a *asked) Read(ctx context.Context, key furl.SessionKey, after furl.Seq) iter.Seq2[furl.Record, error] {
	a.reads++
	return a.Store.Read(ctx, key, after)
}

func (a *asked) Sessions(ctx context.Context, t furl.Tenant, q storage.SessionQuery) iter.Seq2[storage.SessionInfo, error] {
	a.lists++
	return a.Store.Sessions(ctx, t, q)
}

// A conversation that goes on where a session in memory ends needs no question
// to the store.
func TestGoingOnAsksNothing(t *testing.T) {
	store := &asked{Store: inmem.New()}
	all := sessionsOn(t, store)
	c, d := newClient(t, all, "a"), newClient(t, all, "b")
	c.add(furl.RoleUser, text("Go."))
	d.add(furl.RoleUser, text("Go there."))
	// Its first request has a reply that no session has.
	e := &client{t: t, all: all, name: "c"}
	e.add(furl.RoleUser, text("Look at it."))
	e.add(furl.RoleAssistant, text(strings.Repeat("I shall look at all the files. ", 10)))
	e.add(furl.RoleUser, text("Go on."))
	first, other, late := c.step().Session, d.step().Session, e.step().Session
	if late.Meta().Settings["partial"] == "" {
		t.Fatal("the start of a session is taken for known")
	}
	before := *store
	for range 5 {
		if s := e.step().Session; s != late {
			t.Fatalf("it continues in %s, not in %s", s.ID(), late.ID())
		}
		if s := c.step().Session; s != first {
			t.Fatalf("it continues in %s, not in %s", s.ID(), first.ID())
		}
		if s := d.step().Session; s != other {
			t.Fatalf("it continues in %s, not in %s", s.ID(), other.ID())
		}
	}
	if *store != before {
		t.Errorf("the store was asked: %+v, before %+v", store, before)
	}
	checked(t, first)
}

// What another process does meanwhile is met at the append: its records are
// read and gone on from, a session that it deleted is begun anew.
func TestGoingOnMeetsOthers(t *testing.T) {
	store := inmem.New()
	here, there := sessionsOn(t, store), sessionsOn(t, store)
	c := newClient(t, here, "a")
	c.fields = `,"cache_control":{"type":"ephemeral"}` // nothing is hidden so early
	c.add(furl.RoleUser, text("Go."))
	s := c.step().Session
	for i := range 4 {
		c.all = [...]*session.Sessions{there, here}[i%2]
		if x := c.step(); x.Session.ID() != s.ID() {
			t.Fatalf("request %d: it continues in %s, not in %s", i, x.Session.ID(), s.ID())
		}
	}
	last, err := here.Open(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	checked(t, last)
	if n := len(path(t, last)); n != 11 {
		t.Errorf("%d messages on the path, want 11", n)
	}
	c.all = here
	c.step()
	if err := there.Delete(t.Context(), s.ID()); err != nil {
		t.Fatal(err)
	}
	x := c.step()
	if x.Session == nil || x.Session.ID() == s.ID() {
		t.Fatal("a session that was deleted elsewhere is gone on with")
	}
	checked(t, x.Session)
}

// A fork ends where the original does; requests go on in the original.
func TestGoingOnPrefersTheOriginal(t *testing.T) {
	all := sessionsOn(t, inmem.New())
	c := newClient(t, all, "a")
	c.add(furl.RoleUser, text("Go."))
	s := c.step().Session
	if _, err := all.Fork(t.Context(), s, s.Head()); err != nil {
		t.Fatal(err)
	}
	if x := c.step(); x.Session.ID() != s.ID() {
		t.Errorf("it goes on in %s, not in the original %s", x.Session.ID(), s.ID())
	}
}

func sessionsOn(t *testing.T, store storage.Store) *session.Sessions {
	t.Helper()
	all, err := session.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Sessions that rest make room long before the limit; those at work stay.
func TestRestingSessionsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &asked{Store: inmem.New()}
		all, err := session.New(store, &session.Options{KeepBytes: 72_000, Poll: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		begun := func(name string) *client {
			c := newClient(t, all, name)
			c.add(furl.RoleUser, text("I am "+name+strings.Repeat(", and I work here", 100)))
			c.step()
			return c
		}
		a, b := begun("a"), begun("b")
		read := func(c *client) bool {
			before := store.reads
			c.step()
			return store.reads > before
		}
		time.Sleep(time.Minute)
		begun("c")
		if read(a) || read(b) {
			t.Error("a session that was used a minute ago was let go")
		}
		time.Sleep(119 * time.Second)
		if read(b) {
			t.Error("a session at work was let go")
		}
		time.Sleep(2 * time.Second)
		begun("d")
		if read(b) {
			t.Error("the session at work was let go, not the one that rested")
		}
		if !read(a) {
			t.Error("a session that has rested for two minutes is still in memory")
		}
	})
}

// Trim does the same when no session begins, and keeps what has room.
func TestTrim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &asked{Store: inmem.New()}
		all, err := session.New(store, &session.Options{KeepBytes: 72_000, Poll: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		var clients []*client
		for _, name := range []string{"a", "b", "c", "d"} {
			c := newClient(t, all, name)
			c.add(furl.RoleUser, text("I am "+name+strings.Repeat(", and I work here", 100)))
			c.step()
			clients = append(clients, c)
		}
		time.Sleep(time.Minute)
		if all.Trim() {
			t.Error("something of a minute ago was let go")
		}
		time.Sleep(2 * time.Minute)
		if !all.Trim() {
			t.Error("nothing was let go that has rested for three minutes")
		}
		if all.Trim() {
			t.Error("something was let go for which there is room")
		}
		before := store.reads
		if clients[3].step(); store.reads > before {
			t.Error("the newest session was let go, for which there is room")
		}
		if clients[0].step(); store.reads == before {
			t.Error("the oldest session is still in memory")
		}
	})
}
