package exchange_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/encrypted"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// Another process destroys the keys of a tenant. Within two seconds this one shows nothing
// of the sessions that it has in memory, also if nothing else was recorded.
func TestDestroyedKeysEndWhatIsInMemory(t *testing.T) {
	master, err := encrypted.ParseMaster(encrypted.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "furl.db")
	process := func() encrypted.Layer {
		st, err := sqlite.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		l := encrypted.New(st, master)
		t.Cleanup(func() { l.Close() })
		return l
	}
	all := reopen(t, process(), session.Options{Policy: "none"})
	c := newClient(t, all, "a")
	c.add(furl.RoleUser, text("the secret is "+secret))
	c.step()
	other := newClient(t, all, "b")
	other.step()
	id := c.last.Session.ID()
	held, err := all.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := encrypted.Destroy(t.Context(), process(), ""); err != nil {
		t.Fatal(err)
	}
	destroyed := time.Now()
	for {
		s, err := all.Open(t.Context(), id)
		if errors.Is(err, storage.ErrDestroyed) {
			break
		}
		if err != nil || time.Since(destroyed) > 2*time.Second {
			t.Fatalf("after %v: %d records, %v", time.Since(destroyed), len(s.Records(0)), err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if n := len(held.Records(0)); n != 0 {
		t.Errorf("a caller that has the session open still reads %d records", n)
	}
	if open := all.Internal().InMemory(); len(open) != 0 {
		t.Errorf("%d sessions are still in memory", len(open))
	}
	c.add(furl.RoleUser, text("go on"))
	req, x := c.ask()
	if string(x.Body) != string(req.Body) {
		t.Errorf("the next request was changed by what was in memory: %s", x.Body)
	}
	x.Drop()
}
