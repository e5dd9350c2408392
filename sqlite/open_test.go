package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/internal/dev/needs"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

func key(id string) furl.SessionKey { return furl.SessionKey{Session: furl.SessionID(id)} }

// put appends records to a session.
func put(t testing.TB, s *sqlite.Store, id string, records []furl.Record) {
	t.Helper()
	if err := s.Append(context.Background(), key(id), storage.Batch{Records: records}); err != nil {
		t.Fatal(err)
	}
}

// count reads a session and returns its number of records.
func count(t testing.TB, s *sqlite.Store, id string) (n int) {
	t.Helper()
	for _, err := range s.Read(context.Background(), key(id), 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func some(n int) []furl.Record {
	return furltest.Session(furltest.SessionOptions{Messages: n})[:n]
}

// sound fails the test if a check finds a problem.
func sound(t testing.TB, s *sqlite.Store) {
	t.Helper()
	for p, err := range s.Check(context.Background(), false) {
		if err != nil {
			t.Fatal(err)
		}
		t.Errorf("a check finds %+v", p)
	}
}

func closeStore(t testing.TB, s *sqlite.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// The file, its log and its folder are accessible to their owner only.
func TestPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // it has other permissions, and the folder's are inherited
	}
	dir := filepath.Join(t.TempDir(), "new", "furl")
	path := filepath.Join(dir, "furl.db")
	modes := func(when string) {
		t.Helper()
		for name, want := range map[string]fs.FileMode{dir: 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600} {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode().Perm(); got != want {
				t.Errorf("%s: %s has mode %o, want %o", when, filepath.Base(name), got, want)
			}
		}
	}
	s := openAt(t, path, nil)
	put(t, s, "s", some(3))
	modes("a new store")
	closeStore(t, s)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, path, nil)
	defer closeStore(t, s)
	put(t, s, "t", some(3))
	modes("a store that others could read")
}

// The path may be a link: SQLite's other files are created next to the
// target.
func TestLink(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "elsewhere", "furl.db")
	s := openAt(t, file, nil)
	put(t, s, "s", some(2))
	closeStore(t, s)
	link := filepath.Join(dir, "link.db")
	needs.Symlink(t, file, link)
	s = openAt(t, link, nil)
	put(t, s, "t", some(4))
	closeStore(t, s)
	s = openAt(t, file, nil)
	defer closeStore(t, s)
	if n := count(t, s, "t"); n != 4 {
		t.Errorf("%d records, want 4", n)
	}
	sound(t, s)
}

// A path may contain any characters.
func TestOddPaths(t *testing.T) {
	for _, name := range []string{"a b.db", "a?mode=ro.db", "100%.db", "a#b.db", "ü✓.db", "a%20b.db", "a+b&c;d.db", "-x", "'\".db"} {
		path := filepath.Join(t.TempDir(), name)
		s := openAt(t, path, nil)
		put(t, s, "s", some(2))
		closeStore(t, s)
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		s = openAt(t, path, nil)
		if n := count(t, s, "s"); n != 2 {
			t.Errorf("%q: %d records, want 2", name, n)
		}
		closeStore(t, s)
	}
	t.Chdir(t.TempDir())
	s := openAt(t, "relative.db", nil)
	defer closeStore(t, s)
	if _, err := os.Stat("relative.db"); err != nil {
		t.Error(err)
	}
}

// A file that is not a furl store is refused and not changed.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	made := func(name string, statements ...string) string {
		path := filepath.Join(dir, name)
		db, err := sql.Open("sqlite", "file:"+path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, st := range statements {
			if _, err := db.Exec(st); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	newer := filepath.Join(dir, "newer.db")
	s := openAt(t, newer, nil)
	put(t, s, "s", some(1))
	closeStore(t, s)
	made("newer.db", "PRAGMA user_version = 99", "PRAGMA journal_mode = DELETE")
	for _, tt := range []struct {
		path, text string
		is         error
	}{
		{write("text.db", "dear diary"), "not a furl store", nil},
		{write("long.db", strings.Repeat("dear diary ", 1000)), "not a furl store", nil},
		{made("other.db", "PRAGMA auto_vacuum = FULL", "CREATE TABLE t (x)"), "not a furl store", nil},
		{made("other-id.db", "PRAGMA application_id = 7"), "not a furl store", nil},
		{dir, "is a folder", nil},
		{newer, "format 99", record.ErrNewerFormat},
	} {
		before, _ := os.ReadFile(tt.path) // of a folder: nothing
		if err := os.Chmod(tt.path, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, readOnly := range []bool{false, true} {
			s, err := sqlite.Open(tt.path, &sqlite.Options{ReadOnly: readOnly})
			if err == nil {
				s.Close()
				t.Errorf("%s was opened", tt.path)
				continue
			}
			if !strings.Contains(err.Error(), tt.text) || !strings.Contains(err.Error(), tt.path) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%v: want %q, the path and %v", err, tt.text, tt.is)
			}
		}
		if after, _ := os.ReadFile(tt.path); string(after) != string(before) {
			t.Errorf("%s was changed", tt.path)
		}
		// The permissions of another program's file are not changed.
		if info, err := os.Stat(tt.path); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s has become %v, %v", tt.path, info.Mode(), err)
		}
	}
	if _, err := sqlite.Open(filepath.Join(dir, "none.db"), &sqlite.Options{ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read-only open of a missing file: %v, want ErrNotExist", err)
	}
}

// If many open one new file at the same time, all of them can use it.
func TestOpenTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "furl.db")
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			s, err := sqlite.Open(path, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			err = s.Append(context.Background(), key(string(rune('a'+i))), storage.Batch{Records: some(5)})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := openAt(t, path, nil)
	defer closeStore(t, s)
	for i := range 6 {
		if n := count(t, s, string(rune('a'+i))); n != 5 {
			t.Errorf("session %c has %d records, want 5", 'a'+i, n)
		}
	}
	sound(t, s)
}

// A store opened read-only can be read while another one writes, and refuses
// writes.
func TestReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "furl.db")
	s := openAt(t, path, nil)
	put(t, s, "s", some(3))
	for range 2 { // with the writer open, and after it is closed
		r := openAt(t, path, &sqlite.Options{ReadOnly: true})
		if n := count(t, r, "s"); n != 3 {
			t.Errorf("%d records, want 3", n)
		}
		for name, err := range map[string]error{
			"append": r.Append(context.Background(), key("s"), storage.Batch{Records: some(4)[3:]}),
			"delete": r.Delete(context.Background(), key("s")),
			"index":  r.WriteIndex(context.Background(), key("s"), storage.IndexWrite{}),
		} {
			if err == nil || !strings.Contains(err.Error(), "read-only") {
				t.Errorf("%s: %v, want an error that it is read-only", name, err)
			}
		}
		sound(t, r)
		closeStore(t, r)
		closeStore(t, s)
	}
}

// A file without the possibility to create files next to it is read as
// immutable. If it changes, reads return an error.
func TestFrozenFileChanges(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "furl.db")
	s := openAt(t, path, nil)
	put(t, s, "s", some(2))
	closeStore(t, s)
	frozen, err := sqlite.OpenFrozen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, frozen)
	if n := count(t, frozen, "s"); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
	if err := frozen.Append(t.Context(), key("s"), storage.Batch{Records: some(3)[2:]}); err == nil {
		t.Error("it accepted records")
	}
	s = openAt(t, path, nil)
	put(t, s, "t", some(2))
	for _, err := range frozen.Read(t.Context(), key("s"), 0) {
		if err == nil || !strings.Contains(err.Error(), "changed by another process") {
			t.Errorf("after a change: %v", err)
		}
		break
	}
	closeStore(t, s)
}
