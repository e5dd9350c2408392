package recall_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// BenchmarkCatchup indexes sessions after each step of 5 KB. Its time includes the appends.
func BenchmarkCatchup(b *testing.B) {
	records := furltest.Session(furltest.SessionOptions{Seed: 7, Messages: 200, MessageBytes: 4000})
	s, err := sqlite.Open(filepath.Join(b.TempDir(), "furl.db"), &sqlite.Options{Sync: sqlite.SyncNormal})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	x := recall.NewIndexer(s, nil)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at := i % (len(records) / 2) * 2
		key := furl.SessionKey{Session: furl.SessionID(fmt.Sprint("s", i/(len(records)/2)))}
		if err := s.Append(b.Context(), key, storage.Batch{Records: records[at : at+2]}); err != nil {
			b.Fatal(err)
		}
		if err := x.Catchup(b.Context(), key); err != nil {
			b.Fatal(err)
		}
	}
}
