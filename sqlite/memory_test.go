package sqlite_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/furlhq/furl/sqlite"
)

// Giving memory back closes the connections that nobody reads with, and takes
// nothing from those who read or write then or later.
func TestGiveBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "furl.db")
	s := openAt(t, path, nil)
	put(t, s, "a", some(50))
	count(t, s, "a")
	if s.IdleReaders() == 0 {
		t.Error("no connection is kept after a read")
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
			t.Errorf("%d connections are kept that nobody reads with, want none", got)
		}
		put(t, s, "b", some(3))
	}
	if n != 50 || count(t, s, "b") != 3 {
		t.Errorf("%d records were read, want 50; 3 others: %d", n, count(t, s, "b"))
	}
	if s.IdleReaders() == 0 {
		t.Error("no connection is kept after later reads")
	}
	closeStore(t, s)
	if err := s.GiveBack(t.Context()); err == nil {
		t.Error("a closed store gives memory back")
	}

	only := openAt(t, path, &sqlite.Options{ReadOnly: true})
	count(t, only, "a")
	if err := errors.Join(only.GiveBack(t.Context()), only.Close()); err != nil {
		t.Errorf("read-only: %v", err)
	}
}
