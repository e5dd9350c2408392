package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// The version changes with each commit of this store and of another one on the same
// file, and at no other time.
func TestVersion(t *testing.T) {
	place := filepath.Join(t.TempDir(), "furl.db")
	var stores []*sqlite.Store
	for range 2 {
		s, err := sqlite.Open(place, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		stores = append(stores, s)
	}
	version := func() uint64 {
		t.Helper()
		n, err := stores[0].Version(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	last := version()
	for i, s := range []*sqlite.Store{stores[0], stores[1], stores[0]} {
		key := furl.SessionKey{Session: furl.SessionID([]string{"a", "b", "c"}[i])}
		record, err := furl.NewLog().Append(0, time.Now(), furl.Client, furl.TextMessage(furl.RoleUser, "hello"))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Append(t.Context(), key, storage.Batch{Records: []furl.Record{record}}); err != nil {
			t.Fatal(err)
		}
		now := version()
		if now == last {
			t.Errorf("commit %d: the version is still %d", i, now)
		}
		if again := version(); again != now {
			t.Errorf("without a commit, the version changed from %d to %d", now, again)
		}
		last = now
	}
	stores[0].Close()
	if _, err := stores[0].Version(t.Context()); err == nil {
		t.Error("a closed store has a version")
	}
}
