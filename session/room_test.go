package session_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// A session that is larger than the memory for sessions is not read, and one
// that would become so does not grow; the others go on.
func TestSessionLargerThanMemory(t *testing.T) {
	store := inmem.New()
	all, err := session.New(store, &session.Options{MaxMemory: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	s := all.Create(storage.Meta{})
	stored := 0
	for i := 0; err == nil && i < 100; i++ {
		if _, err = s.Append(t.Context(), furl.TextMessage(furl.RoleUser, fmt.Sprintf("%d %s", i, strings.Repeat("word ", 100)))); err == nil {
			stored++
		}
	}
	if !errors.Is(err, session.ErrMemory) || stored < 10 {
		t.Fatalf("after %d messages: %v", stored, err)
	}
	if n := len(s.Records(0)); n != stored {
		t.Errorf("the session has %d records after the refused one, want %d", n, stored)
	}
	if _, err := all.Open(t.Context(), s.ID()); err != nil {
		t.Error(err)
	}
	other := all.Create(storage.Meta{})
	if _, err := other.Append(t.Context(), furl.TextMessage(furl.RoleUser, "hi")); err != nil {
		t.Errorf("another session: %v", err)
	}
	small, err := session.New(store, &session.Options{MaxMemory: 8 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := small.Open(t.Context(), s.ID()); !errors.Is(err, session.ErrMemory) {
		t.Errorf("a session larger than the memory was read: %v", err)
	}
	if _, err := small.Open(t.Context(), other.ID()); err != nil {
		t.Error(err)
	}
}
