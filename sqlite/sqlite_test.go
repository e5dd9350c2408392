package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/internal/dev/racetest"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

func TestConformance(t *testing.T) {
	racetest.FewerChecks(t, 30)
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
