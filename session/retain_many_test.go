package session_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// costly counts what costs as much as the store is large.
type costly struct {
	*inmem.Store
	looks, deletions int
}

func (c *costly) Stats(ctx context.Context) (storage.Stats, error) {
	c.looks++
	return c.Store.Stats(ctx)
}

func (c *costly) DeleteMany(ctx context.Context, keys []furl.SessionKey) error {
	c.deletions++
	for _, key := range keys {
		if err := c.Store.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

func (c *costly) Delete(ctx context.Context, key furl.SessionKey) error {
	return c.DeleteMany(ctx, []furl.SessionKey{key})
}

// What retention costs does not grow with the number of sessions that it
// deletes, and it deletes none too many.
func TestRetainMany(t *testing.T) {
	store := &costly{Store: inmem.New()}
	now := time.Now()
	all, err := session.New(store, &session.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		s := all.Create(storage.Meta{})
		if _, err := s.Append(t.Context(), furl.TextMessage(furl.RoleUser, fmt.Sprintf("session %0*d", 100+i, i))); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(24 * time.Hour)
	stats, err := store.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	size := stats.Total / 4
	gone, err := all.Retain(t.Context(), session.Retention{Size: size})
	if err != nil {
		t.Fatal(err)
	}
	if store.looks > 20 || store.deletions > 20 {
		t.Errorf("%d sessions: looked %d times and deleted %d times, want at most 20", len(gone), store.looks, store.deletions)
	}
	stats, err = store.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if last := gone[len(gone)-1].Bytes; stats.Total > size || stats.Total < size-2*last-500 {
		t.Errorf("%d bytes are left, want %d and less by at most a session", stats.Total, size)
	}
	store.looks, store.deletions = 0, 0
	now = now.Add(24 * time.Hour)
	if gone, err := all.Retain(t.Context(), session.Retention{Age: time.Hour}); err != nil || len(gone) < 50 || store.deletions != 1 {
		t.Errorf("for age: %d gone in %d times, %v", len(gone), store.deletions, err)
	}
}
