package recall

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// unversioned is a store that cannot tell whether it has changed.
type unversioned struct {
	storage.Store
	storage.Searchable
}

// A Searcher that keeps what searches have in common returns what one returns that
// reads everything for each search, also after another process has appended, indexed
// or deleted.
func TestSharedBetweenSearches(t *testing.T) {
	place := filepath.Join(t.TempDir(), "furl.db")
	store, other := openSQLite(t, place), openSQLite(t, place)
	kept := NewSearcher(store, nil)
	fresh := NewSearcher(&unversioned{store, store}, nil)
	indexer := NewIndexer(other, nil)
	logs := make(map[furl.SessionKey]*furl.Log)
	say := func(n int, text string) furl.SessionKey {
		t.Helper()
		key := furl.SessionKey{Session: furl.SessionID(fmt.Sprintf("s%d", n))}
		if logs[key] == nil {
			logs[key] = furl.NewLog()
		}
		r, err := logs[key].Append(logs[key].Head(), time.UnixMilli(int64(1_700_000_000_000+1000*(len(text)+n))), furl.Client, furl.TextMessage(furl.RoleUser, text))
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Append(context.Background(), key, storage.Batch{Records: []furl.Record{r}}); err != nil {
			t.Fatal(err)
		}
		return key
	}
	hits := 0
	check := func(after string) {
		t.Helper()
		for _, text := range []string{"zebra", "zebra fence", "fence zebra", "parse_zebra", "zbera", "nothing"} {
			for _, limit := range []int{3, 20} {
				for range 2 { // the second time, the terms are known
					got, err := kept.Search(t.Context(), Request{Text: text, Limit: limit})
					want, err2 := fresh.Search(t.Context(), Request{Text: text, Limit: limit})
					if err != nil || err2 != nil {
						t.Fatalf("%s: %v, %v", after, err, err2)
					}
					hits += len(want.Hits)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s, %q, limit %d: (-fresh +kept)\n%s", after, text, limit, diff)
					}
				}
			}
		}
	}
	check("of an empty store")
	rounds := 4
	if RaceDetector {
		rounds = 2
	}
	for round := range rounds {
		for n := range 6 {
			key := say(n, fmt.Sprintf("round %d: the zebra %d jumps over fence %d, says parse_zebra%d", round, n, round*n, round))
			check("after an append")
			if n%2 == 0 {
				if err := indexer.Catchup(t.Context(), key); err != nil {
					t.Fatal(err)
				}
				check("after indexing")
			}
		}
	}
	if err := other.Delete(t.Context(), furl.SessionKey{Session: "s2"}); err != nil {
		t.Fatal(err)
	}
	check("after a session was deleted")
	if hits < 250*rounds {
		t.Errorf("only %d hits were compared", hits)
	}
	last := kept.cache.last
	if _, err := kept.Search(t.Context(), Request{Text: "zebra"}); err != nil || last == nil || kept.cache.last != last {
		t.Errorf("the sessions were read again without a change: %v", err)
	}
}

func openSQLite(t *testing.T, place string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(place, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
