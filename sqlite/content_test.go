package sqlite_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// After a delete, no bytes of a session's contents remain, but for those that
// another session has too.
func TestDeleteLeavesNoContents(t *testing.T) {
	ctx := t.Context()
	rnd := rand.New(rand.NewPCG(7, 1))
	s := openAt(t, filepath.Join(t.TempDir(), "furl.db"), nil)
	defer closeStore(t, s)
	records := map[string][]furl.Record{"a": some(40), "secret": some(40)}
	both := []byte("what both sessions have")
	for i := range 40 {
		for id, list := range records {
			b := storage.Batch{Records: list[i : i+1], Contents: [][]byte{both}}
			if id == "secret" {
				b.Contents = append(b.Contents, secret(t, rnd, []int{60, 900, 20000}[i%3]).Raw)
			}
			if err := s.Append(ctx, key(id), b); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(holdsPlanted(t, s)) == 0 {
		t.Fatal("the contents are not in the file")
	}
	if err := s.Delete(ctx, key("secret")); err != nil {
		t.Fatal(err)
	}
	if names := holdsPlanted(t, s); len(names) > 0 {
		t.Errorf("the contents are still in %v", names)
	}
	if _, err := s.Content(ctx, key("a"), furl.DigestOf(both)); err != nil {
		t.Errorf("a content that another session has: %v", err)
	}
	sound(t, s)
}

// A store of an older format that is read only has no contents, and is sound.
func TestContentOfOldFormat(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "sessions-2.db"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "furl.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, path, &sqlite.Options{ReadOnly: true})
	defer closeStore(t, s)
	if _, err := s.Content(t.Context(), key("anthropic"), furl.Digest{1}); !errors.Is(err, storage.ErrNoContent) {
		t.Errorf("a content: %v, want ErrNoContent", err)
	}
	sound(t, s)
}

// A content whose bytes have changed is found when it is read, and by a check.
func TestChangedContent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "furl.db")
	s := openAt(t, path, nil)
	content := []byte("the instructions of a client")
	if err := s.Append(t.Context(), key("a"), storage.Batch{Records: some(1), Contents: [][]byte{content}}); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	edit(t, path, "UPDATE bodies SET data = CAST('The' || substr(CAST(data AS TEXT), 4) AS BLOB)")
	s = openAt(t, path, nil)
	defer closeStore(t, s)
	if _, err := s.Content(t.Context(), key("a"), furl.DigestOf(content)); !errors.Is(err, furl.ErrDamaged) {
		t.Errorf("a changed content: %v, want ErrDamaged", err)
	}
	n := 0
	for p, err := range s.Check(t.Context(), false) {
		if err != nil || p.Session != key("a") {
			t.Errorf("%+v, %v", p, err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("a check finds %d problems, want 1", n)
	}
}
