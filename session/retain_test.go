package session_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// oneByOne hides that a store can delete many sessions at once.
type oneByOne struct {
	storage.Store
	storage.Deleter
}

// However a session is deleted, the program can delete what it keeps of it elsewhere.
func TestDeletedIsTold(t *testing.T) {
	for _, many := range []bool{true, false} {
		mem := inmem.New()
		var store storage.Store = mem
		if !many {
			store = oneByOne{mem, mem}
		}
		now := time.Now()
		var told []furl.SessionID
		failing := false
		all, err := session.New(store, &session.Options{Now: func() time.Time { return now }, Deleted: func(key furl.SessionKey) error {
			told = append(told, key.Session)
			if failing {
				return errors.New("disk is full")
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		var ids []furl.SessionID
		add := func(n int) {
			ids, told = nil, nil
			for range n {
				s := all.Create(storage.Meta{})
				if _, err := s.Append(t.Context(), furl.TextMessage(furl.RoleUser, "hi")); err != nil {
					t.Fatal(err)
				}
				ids = append(ids, s.ID())
			}
		}
		check := func(what string) {
			t.Helper()
			slices.Sort(ids)
			slices.Sort(told)
			if !slices.Equal(ids, told) {
				t.Errorf("%s, many %v: told of %v, want %v", what, many, told, ids)
			}
		}
		add(1)
		if err := all.Delete(t.Context(), ids[0]); err != nil {
			t.Error(err)
		}
		check("delete")
		add(3)
		now = now.Add(time.Hour)
		if gone, err := all.Retain(t.Context(), session.Retention{Age: time.Minute}); err != nil || len(gone) != 3 {
			t.Errorf("%d gone, %v", len(gone), err)
		}
		check("retain")
		failing = true
		add(1)
		if err := all.Delete(t.Context(), ids[0]); err == nil || !strings.Contains(err.Error(), "was deleted, but not") {
			t.Errorf("a failure: %v", err)
		}
	}
}

// Retention deletes whole sessions, the oldest first, and nothing unless asked.
func TestRetain(t *testing.T) {
	store := inmem.New()
	now := time.Now()
	all, err := session.New(store, &session.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		s := all.Create(storage.Meta{Title: fmt.Sprint(i)})
		if _, err := s.Append(t.Context(), furl.TextMessage(furl.RoleUser, fmt.Sprint("session ", i))); err != nil {
			t.Fatal(err)
		}
	}
	left := func() (titles []string) {
		for info, err := range all.List(t.Context(), storage.SessionQuery{}) {
			if err != nil {
				t.Fatal(err)
			}
			titles = append(titles, info.Title)
		}
		return titles
	}
	if gone, err := all.Retain(t.Context(), session.Retention{}); err != nil || len(gone) > 0 {
		t.Errorf("nothing was asked for: %v %v", gone, err)
	}
	if gone, err := all.Retain(t.Context(), session.Retention{Age: time.Hour, Size: 1}); err != nil || len(gone) > 0 {
		t.Errorf("all are young: %v %v", gone, err)
	}
	// A day later, the store has room for two of five.
	now = now.Add(24 * time.Hour)
	stats, err := store.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gone, err := all.Retain(t.Context(), session.Retention{Age: 48 * time.Hour, Size: stats.Total * 2 / 5})
	if err != nil || len(gone) != 3 || gone[0].Title != "0" {
		t.Errorf("for size: %d gone, %v", len(gone), err)
	}
	if got := left(); !slices.Equal(got, []string{"4", "3"}) {
		t.Errorf("left are %v", got)
	}
	now = now.Add(48 * time.Hour)
	if gone, err := all.Retain(t.Context(), session.Retention{Age: 48 * time.Hour}); err != nil || len(gone) != 2 {
		t.Errorf("for age: %d gone, %v", len(gone), err)
	}
}

// Retention holds for the whole store, whoever's the sessions are.
func TestRetainAllTenants(t *testing.T) {
	now := time.Now()
	all, err := session.New(inmem.New(), &session.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []furl.Tenant{"", "ann", "bob"} {
		if _, err := all.For(tenant).Create(storage.Meta{}).Append(t.Context(), furl.TextMessage(furl.RoleUser, "hello")); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(48 * time.Hour)
	gone, err := all.Retain(t.Context(), session.Retention{Age: 24 * time.Hour})
	if err != nil || len(gone) != 3 {
		t.Fatalf("%d sessions are gone, want 3: %v", len(gone), err)
	}
	if tenants, err := all.Tenants(t.Context()); err != nil || len(tenants) != 0 {
		t.Errorf("tenants %q have sessions left: %v", tenants, err)
	}
}
