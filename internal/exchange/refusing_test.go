package exchange_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
)

// A store that takes nothing is known for it until it takes something again, or
// for a minute, in which no lookup may be made.
func TestStoreRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &broken{Store: inmem.New()}
		all := reopen(t, store, session.Options{Policy: "none"})
		c := newClient(t, all, "a")
		c.step()
		if all.Stats().StoreRefuses {
			t.Error("a store that takes everything refuses")
		}
		store.Down = true
		refused := func() {
			t.Helper()
			_, x := c.ask()
			if _, err := x.Commit(t.Context()); err != nil || x.Err == nil {
				t.Fatal(err, x.Err)
			}
		}
		refused()
		if !all.Stats().StoreRefuses {
			t.Error("a store that took nothing does not refuse")
		}
		store.Down = false
		c.add(furl.RoleUser, text("go on"))
		c.begin()
		if all.Stats().StoreRefuses {
			t.Error("a store that took what came last refuses")
		}
		store.Down = true
		c.add(furl.RoleUser, text("and on"))
		refused()
		if !all.Stats().StoreRefuses {
			t.Error("a store that took nothing again does not refuse")
		}
		time.Sleep(time.Minute)
		if all.Stats().StoreRefuses {
			t.Error("it is held against it for longer than a minute")
		}
	})
}
