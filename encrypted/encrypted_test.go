package encrypted_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/furlhq/furl/encrypted"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/internal/dev/racetest"
	"github.com/furlhq/furl/postgres"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

func master(t testing.TB, keys ...string) encrypted.Master {
	t.Helper()
	text := ""
	for _, k := range keys {
		text += k + "\n"
	}
	if text == "" {
		text = encrypted.NewMasterKey()
	}
	m, err := encrypted.ParseMaster(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func openSQLite(t testing.TB, path string, m encrypted.Master) encrypted.Layer {
	t.Helper()
	s, err := sqlite.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return encrypted.New(s, m)
}

// The guarantees of every store hold with encryption.
func TestConformance(t *testing.T) {
	m := master(t)
	huge := 0 // the default
	if racetest.Enabled {
		huge = 2 << 20
	}
	racetest.FewerChecks(t, 10)
	furltest.TestStore(t, func(t testing.TB) storage.Store {
		return openSQLite(t, filepath.Join(t.TempDir(), "furl.db"), m)
	}, &furltest.Options{HugeBytes: huge, Reopen: func(t testing.TB, s storage.Store) storage.Store {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return openSQLite(t, s.(encrypted.Layer).Inner().(*sqlite.Store).Path(), m)
	}})
}

// The same code is before other stores, so the race detector need not see it again.
func TestConformanceOfOtherStores(t *testing.T) {
	m := master(t)
	t.Run("inmem", func(t *testing.T) {
		furltest.TestStore(t, func(testing.TB) storage.Store { return encrypted.New(inmem.New(), m) }, nil)
	})
	t.Run("postgres", func(t *testing.T) {
		racetest.Checks(t, 3)
		furltest.TestStore(t, func(t testing.TB) storage.Store {
			s, err := postgres.Open(context.Background(), pgtest.URL(t), nil)
			if err != nil {
				t.Fatal(err)
			}
			return encrypted.New(s, m)
		}, nil)
	})
}
