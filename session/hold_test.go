package session_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// A session under legal hold is deleted neither on request nor by retention, until the
// hold is released. Tenants can have their own age.
func TestHolds(t *testing.T) {
	file, err := sqlite.Open(filepath.Join(t.TempDir(), "furl.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	for name, store := range map[string]storage.Store{"memory": inmem.New(), "sqlite": file} {
		t.Run(name, func(t *testing.T) { testHolds(t, store) })
	}
}

func testHolds(t *testing.T, store storage.Store) {
	ctx := t.Context()
	now := time.Now()
	all, err := session.New(store, &session.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]furl.SessionID{}
	for _, tenant := range []furl.Tenant{"acme", "bob", "eve"} {
		for i := range 2 {
			s := all.For(tenant).Create(storage.Meta{})
			if _, err := s.Append(ctx, furl.TextMessage(furl.RoleUser, fmt.Sprint("session ", i))); err != nil {
				t.Fatal(err)
			}
			ids[fmt.Sprint(tenant, i)] = s.ID()
		}
	}
	change := func(f func([]storage.Hold) []storage.Hold) {
		t.Helper()
		if err := storage.ChangeHolds(ctx, store, func(h []storage.Hold) ([]storage.Hold, error) { return f(h), nil }); err != nil {
			t.Fatal(err)
		}
	}
	change(func(h []storage.Hold) []storage.Hold {
		return append(h, storage.Hold{ID: "h-1", Tenant: "acme", Session: ids["acme0"], Reason: "case 17"})
	})
	change(func(h []storage.Hold) []storage.Hold {
		return append(h, storage.Hold{ID: "h-2", Tenant: "bob", Reason: "case 18"})
	})
	if holds, err := storage.Holds(ctx, store); err != nil || len(holds) != 2 || holds[1].Reason != "case 18" {
		t.Fatalf("the holds are %+v, %v", holds, err)
	}
	var held *storage.HeldError
	if err := all.For("acme").Delete(ctx, ids["acme0"]); !errors.As(err, &held) || held.Hold.ID != "h-1" {
		t.Errorf("a held session: %v", err)
	}
	if err := all.For("bob").Delete(ctx, ids["bob1"]); !errors.As(err, &held) {
		t.Errorf("a session of a held tenant: %v", err)
	}
	if tenants, err := all.Tenants(ctx); err != nil || len(tenants) != 3 {
		t.Errorf("the tenants are %q, %v", tenants, err)
	}
	now = now.Add(48 * time.Hour)
	gone, err := all.Retain(ctx, session.Retention{Age: 24 * time.Hour, Tenants: map[furl.Tenant]time.Duration{"eve": 0}})
	if err != nil || len(gone) != 1 || gone[0].Session != ids["acme1"] {
		t.Errorf("retention has deleted %v, %v", gone, err)
	}
	if gone, err := all.Retain(ctx, session.Retention{Tenants: map[furl.Tenant]time.Duration{"eve": time.Hour}, Size: 1}); err != nil || len(gone) != 2 {
		t.Errorf("for a tenant and for size: %v, %v", gone, err)
	}
	change(func([]storage.Hold) []storage.Hold { return nil })
	if err := all.For("acme").Delete(ctx, ids["acme0"]); err != nil {
		t.Errorf("after the release: %v", err)
	}
	if gone, err := all.Retain(ctx, session.Retention{Age: 24 * time.Hour}); err != nil || len(gone) != 2 {
		t.Errorf("retention after the release: %v, %v", gone, err)
	}
}
