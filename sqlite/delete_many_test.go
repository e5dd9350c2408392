package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// DeleteMany removes all bytes of the sessions, leaves the others intact, and
// ignores sessions that do not exist.
func TestDeleteMany(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "furl.db"), nil)
	for _, name := range []string{"a", "b", "c"} {
		m := furl.TextMessage(furl.RoleUser, strings.Repeat("planted-in-"+name+" ", 50))
		if err := s.Append(t.Context(), key(name), storage.Batch{Records: []furl.Record{{Seq: 1, Body: m}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.DeleteMany(t.Context(), []furl.SessionKey{key("a"), key("none"), key("c")}); err != nil {
		t.Fatal(err)
	}
	var left []furl.SessionID
	for info, err := range s.Sessions(t.Context(), "", storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, info.Session)
	}
	if len(left) != 1 || left[0] != "b" || count(t, s, "b") != 1 {
		t.Errorf("remaining sessions %v, want only b", left)
	}
	sound(t, s)
	if err := s.DeleteMany(t.Context(), []furl.SessionKey{key("none")}); err != nil {
		t.Error(err)
	}
	closeStore(t, s)
	file, err := os.ReadFile(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "c"} {
		if strings.Contains(string(file), "planted-in-"+name) {
			t.Errorf("bytes of %s are still there", name)
		}
	}
}
