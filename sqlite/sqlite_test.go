package sqlite_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

func TestConformance(t *testing.T) {
	if checks := flag.Lookup("rapid.checks"); raceDetector && checks.Value.String() == checks.DefValue {
		if err := flag.Set(checks.Name, "30"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = flag.Set(checks.Name, checks.DefValue) }) // it is valid
	}
	open := func(t testing.TB) storage.Store {
		return openAt(t, filepath.Join(t.TempDir(), "furl.db"), nil)
	}
	furltest.TestStore(t, open, &furltest.Options{
		Reopen: func(t testing.TB, s storage.Store) storage.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return openAt(t, s.(*sqlite.Store).Path(), nil)
		},
	})
}

func openAt(t testing.TB, path string, o *sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
