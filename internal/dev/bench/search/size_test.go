package search

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/transcript"
)

// BenchmarkRecallSize says how large the index of recorded coding sessions is,
// beside the messages as they were on the wire, how much of it is for looking
// inside words, and how fast it is made.
func BenchmarkRecallSize(b *testing.B) {
	for b.Loop() {
		store, err := sqlite.Open(filepath.Join(b.TempDir(), "furl.db"), nil)
		if err != nil {
			b.Fatal(err)
		}
		indexer := recall.NewIndexer(store, nil)
		for _, file := range recordings.Files(b, "entire-cli/*.jsonl.gz") {
			rec, err := transcript.ReadFile(file)
			if err != nil {
				b.Fatal(err)
			}
			for i, s := range rec.Sessions {
				key := furl.SessionKey{Session: furl.SessionID(filepath.Base(file) + "-" + word(uint64(i)))}
				if err := store.Append(b.Context(), key, storage.Batch{Records: s.Log.Records(0)}); err != nil {
					b.Fatal(err)
				}
			}
		}
		begun := time.Now()
		if err := indexer.CatchupTenant(b.Context(), ""); err != nil {
			b.Fatal(err)
		}
		took := time.Since(begun)
		stats, err := store.Stats(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		inside := 0 // the vocabularies and their signatures, buckets 2 to 10
		for bucket := uint32(2); bucket <= 10; bucket++ {
			for p, err := range store.Pages(b.Context(), furl.SessionKey{}, bucket) {
				if err != nil {
					b.Fatal(err)
				}
				inside += len(p.Data)
			}
		}
		wire := float64(stats.MessageBytes)
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(wire/1e6, "MB")
		b.ReportMetric(float64(stats.Index)/wire, "index/wire")
		b.ReportMetric(float64(inside)/wire, "subword/wire")
		b.ReportMetric(float64(stats.Total)/wire, "store/wire")
		b.ReportMetric(wire/1e6/took.Seconds(), "MB/s")
		if err := store.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
