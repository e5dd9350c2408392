package exchange_test

import (
	"testing"
	"testing/synctest"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
)

// A client that asks on before its first reply is recorded stays in its
// session, also when another conversation has begun alike.
func TestAskingOnBeforeTheReplyIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := inmem.New()
		defer store.Close()
		all, err := session.New(store, nil)
		if err != nil {
			t.Fatal(err)
		}
		one, other := &client{t: t, all: all, name: "a"}, &client{t: t, all: all, name: "b"}
		for _, c := range []*client{one, other} {
			c.add(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: "hi"})
		}
		_, slow := other.begin()
		_, x := one.begin()
		said := message(t, furl.RoleAssistant, furl.Block{Kind: furl.KindText, Text: "hello"})
		one.history = append(one.history, said.Raw)
		one.add(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: "go on"})
		next := make(chan *exchange.Exchange, 1)
		go func() {
			y, err := exchange.Of(all).Begin(t.Context(), one.request(), exchange.BeginOptions{})
			if err != nil {
				t.Error(err)
			}
			next <- y
		}()
		synctest.Wait() // it waits for one of the two
		if err := x.Done(t.Context(), &protocol.Reply{Complete: true, Messages: []*furl.Message{said}}); err != nil {
			t.Fatal(err)
		}
		slow.Drop()
		y := <-next
		defer y.Drop()
		if _, err := y.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if y.Session == nil || y.Session.ID() != x.Session.ID() {
			t.Errorf("the next request is in another session")
		}
		if n := len(y.Session.View("").Messages); n != 3 {
			t.Errorf("%d messages, want 3", n)
		}
	})
}

// What no exchange under way can lead to waits for none.
func TestUnknownHistoryDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := inmem.New()
		defer store.Close()
		all, err := session.New(store, nil)
		if err != nil {
			t.Fatal(err)
		}
		one, other := &client{t: t, all: all}, &client{t: t, all: all}
		one.add(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: "hi"})
		_, x := one.begin()
		defer x.Drop()
		for _, text := range []string{"good morning", "and how are you"} {
			other.add(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: text})
			other.add(furl.RoleAssistant, furl.Block{Kind: furl.KindText, Text: "fine"})
		}
		other.add(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: "go on"})
		_, y := other.begin()
		defer y.Drop()
		if y.Session.ID() == x.Session.ID() {
			t.Error("a history of its own is in the session of another")
		}
	})
}
