package encrypted_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/encrypted"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/postgres"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// BenchmarkEncryption measures stores with and without encryption, alternately in one
// run, and reports the medians of appending a step of 4 records and of reading a
// session of 2,000 messages, and their ratios.
func BenchmarkEncryption(b *testing.B) {
	ctx := context.Background()
	m := master(b)
	records := furltest.Session(furltest.SessionOptions{Seed: 1, Messages: 2000, Exchanges: true, MessageBytes: 2000})
	for name, open := range map[string]func() encrypted.Inner{
		"sqlite": func() encrypted.Inner {
			s, err := sqlite.Open(filepath.Join(b.TempDir(), "furl.db"), nil)
			if err != nil {
				b.Fatal(err)
			}
			return s
		},
		"postgres": func() encrypted.Inner {
			s, err := postgres.Open(ctx, pgtest.URL(b), nil)
			if err != nil {
				b.Fatal(err)
			}
			return s
		},
	} {
		b.Run(name, func(b *testing.B) {
			stores := []encrypted.Layer{encrypted.New(open(), nil), encrypted.New(open(), m)}
			var appends, reads [2][]time.Duration
			for range b.N {
				id := key(fmt.Sprint("s", len(appends[0])))
				for at := 0; at < len(records); at += 4 {
					for i, st := range stores {
						start := time.Now()
						if err := st.Append(ctx, id, storage.Batch{Records: records[at:min(at+4, len(records))]}); err != nil {
							b.Fatal(err)
						}
						appends[i] = append(appends[i], time.Since(start))
					}
				}
				for range 10 {
					for i, st := range stores {
						start := time.Now()
						var last furl.Seq
						for r, err := range st.Read(ctx, id, 0) {
							if err != nil {
								b.Fatal(err)
							}
							last = r.Seq
						}
						if int(last) != len(records) {
							b.Fatal(last)
						}
						reads[i] = append(reads[i], time.Since(start))
					}
				}
			}
			median := func(d []time.Duration) float64 {
				slices.Sort(d)
				return float64(d[len(d)/2].Microseconds())
			}
			for _, x := range []struct {
				name string
				d    [2][]time.Duration
			}{{"append", appends}, {"read", reads}} {
				plain, sealed := median(x.d[0]), median(x.d[1])
				b.ReportMetric(plain, x.name+"-plain-µs")
				b.ReportMetric(sealed, x.name+"-encrypted-µs")
				b.ReportMetric(sealed/plain, x.name+"-ratio")
			}
			b.ReportMetric(0, "ns/op")
			for _, st := range stores {
				if err := st.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
