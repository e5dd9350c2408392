package sqlite_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/furlhq/furl/sqlite"
)

// GiveBack closes idle connections, and does not disturb concurrent or later
// reads and writes.
func TestGiveBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "furl.db")
	s := openAt(t, path, nil)
	put(t, s, "a", some(50))
	count(t, s, "a")
	if s.IdleReaders() == 0 {
		t.Error("no idle connection after a read")
	}
	n := 0
	for _, err := range s.Read(t.Context(), key("a"), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n != 10 {
			continue
		}
		if err := s.GiveBack(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.IdleReaders(); got != 0 {
			t.Errorf("%d idle connections, want 0", got)
		}
		put(t, s, "b", some(3))
	}
	if n != 50 || count(t, s, "b") != 3 {
		t.Errorf("%d records were read, want 50; 3 others: %d", n, count(t, s, "b"))
	}
	if s.IdleReaders() == 0 {
		t.Error("no idle connection after later reads")
	}
	closeStore(t, s)
	if err := s.GiveBack(t.Context()); err == nil {
		t.Error("GiveBack of a closed store did not fail")
	}

	only := openAt(t, path, &sqlite.Options{ReadOnly: true})
	count(t, only, "a")
	if err := errors.Join(only.GiveBack(t.Context()), only.Close()); err != nil {
		t.Errorf("read-only: %v", err)
	}
}
