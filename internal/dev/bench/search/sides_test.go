package search

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/postgres"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/transcript"
)

// side is one of the stores that are compared.
type side struct {
	name  string
	store interface {
		storage.Store
		storage.Searchable
		storage.Checker
	}
	times []time.Duration
}

// sides opens the stores anew.
func sides(b *testing.B) []*side {
	lite, err := sqlite.Open(filepath.Join(b.TempDir(), "furl.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { lite.Close() })
	all := []*side{{name: "sqlite", store: lite}}
	for name, partitions := range map[string]int{"postgres": 0, "divided": 16} {
		s, err := postgres.Open(b.Context(), pgtest.URL(b), &postgres.Options{Partitions: partitions})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { s.Close() })
		all = append(all, &side{name: name, store: s})
	}
	slices.SortFunc(all[1:], func(a, b *side) int { return len(b.name) - len(a.name) })
	return all
}

// turns measures all sides in turns, so that other work on the machine meets
// them alike, and reports the median of each and how many times SQLite's it is.
func turns(b *testing.B, all []*side, n int, per int, do func(s *side, turn int) error) {
	for _, s := range all {
		s.times = nil
	}
	for b.Loop() {
		for turn := range n {
			for _, s := range all {
				begun := time.Now()
				if err := do(s, turn); err != nil {
					b.Fatalf("%s: %v", s.name, err)
				}
				s.times = append(s.times, time.Since(begun)/time.Duration(per))
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, s := range all {
		slices.Sort(s.times)
	}
	at := func(s *side, q float64) float64 {
		return float64(s.times[int(q*float64(len(s.times)-1))].Microseconds()) / 1000
	}
	for _, s := range all {
		b.ReportMetric(at(s, 0.5), s.name+"-ms")
		b.ReportMetric(at(s, 0.99), s.name+"-p99-ms")
		if s != all[0] {
			b.ReportMetric(at(s, 0.5)/at(all[0], 0.5), s.name+"-times")
		}
	}
}

// oneKB are records with messages of 1 KB, of one session.
func oneKB(n int) []furl.Record {
	return furltest.Session(furltest.SessionOptions{Seed: 7, Messages: n, MessageBytes: 1000})[:n]
}

// numbered makes a record the seq'th of a session whose records go round.
func numbered(records []furl.Record, seq furl.Seq, writer int) furl.Record {
	r := records[int(seq-1)%len(records)]
	r.Seq, r.Parent = seq, seq-1
	r.Chain = furl.DigestOf(fmt.Append(r.Chain[:], seq, writer))
	return r
}

// BenchmarkStores compares what the marks of the stores are about, in turns:
// SQLite, PostgreSQL, and PostgreSQL with its tables divided into 16.
func BenchmarkStores(b *testing.B) {
	b.Run("append", func(b *testing.B) {
		const times = 10
		records, all := oneKB(2000), sides(b)
		at := make(map[*side]furl.Seq)
		turns(b, all, 60, times, func(s *side, _ int) error {
			for range times {
				at[s]++
				r := []furl.Record{numbered(records, at[s], 0)}
				if err := s.store.Append(b.Context(), furl.SessionKey{Session: "s"}, storage.Batch{Records: r}); err != nil {
					return err
				}
			}
			return nil
		})
	})
	b.Run("append/16 writers", func(b *testing.B) {
		const times = 10
		records, all := oneKB(2000), sides(b)
		at := make(map[*side]furl.Seq)
		turns(b, all, 20, 16*times, func(s *side, _ int) error {
			var writers sync.WaitGroup
			errs := make([]error, 16)
			for w := range errs {
				writers.Go(func() {
					key := furl.SessionKey{Session: furl.SessionID(fmt.Sprint("s", w))}
					for i := range furl.Seq(times) {
						r := []furl.Record{numbered(records, at[s]+i+1, w)}
						if errs[w] = s.store.Append(b.Context(), key, storage.Batch{Records: r}); errs[w] != nil {
							return
						}
					}
				})
			}
			writers.Wait()
			at[s] += times
			return errs[0]
		})
	})
	b.Run("read and fold 2000", func(b *testing.B) {
		all := sides(b)
		key := furl.SessionKey{Session: "s"}
		for _, s := range all {
			if err := s.store.Append(b.Context(), key, storage.Batch{Records: oneKB(2000)}); err != nil {
				b.Fatal(err)
			}
		}
		turns(b, all, 40, 1, func(s *side, _ int) error {
			var records []furl.Record
			for r, err := range s.store.Read(b.Context(), key, 0) {
				if err != nil {
					return err
				}
				records = append(records, r)
			}
			return furl.NewLog().Load(records)
		})
	})
	b.Run("search", benchmarkSearches)
	b.Run("size", benchmarkSizes)
}

// benchmarkSearches searches in as many messages as the flag says.
func benchmarkSearches(b *testing.B) {
	all := sides(b)
	sessions := max(*scaleMessages / *scaleSession, 1)
	for _, s := range all {
		fill(b, s.store, sessions)
	}
	for _, scope := range []string{"session", "all"} {
		for i, name := range newKinds(newTalk(2)) {
			b.Run(scope+"/"+name.name, func(b *testing.B) {
				talks := make(map[*side]*talk) // the same questions to each
				for _, s := range all {
					talks[s] = newTalk(3)
				}
				turns(b, all, *scaleSearches, 1, func(s *side, _ int) error {
					n := talks[s].IntN(sessions)
					req := recall.Request{Text: newKinds(talks[s])[i].text(n), Limit: 10}
					if scope == "session" {
						req.Session = scaleKey(n).Session
					}
					_, err := recall.NewSearcher(s.store, nil).Search(b.Context(), req)
					return err
				})
			})
		}
	}
}

// benchmarkSizes keeps the Claude Code recordings, indexed.
func benchmarkSizes(b *testing.B) {
	files := recordings.Files(b, "entire-cli/*.jsonl.gz")
	for b.Loop() {
		for _, s := range sides(b) {
			for i, file := range files {
				rec, err := transcript.Read(file, bytes.NewReader(recordings.Read(b, file)))
				if err != nil {
					b.Fatal(err)
				}
				for j, session := range rec.Sessions {
					key := furl.SessionKey{Session: furl.SessionID(fmt.Sprintf("s%d-%d", i, j))}
					if err := s.store.Append(b.Context(), key, storage.Batch{Records: session.Log.Records(0)}); err != nil {
						b.Fatal(err)
					}
				}
			}
			if err := recall.NewIndexer(s.store, nil).CatchupTenant(context.WithoutCancel(b.Context()), ""); err != nil {
				b.Fatal(err)
			}
			st, err := s.store.Stats(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(st.Total)/float64(st.MessageBytes), s.name+"-total/message-bytes")
			b.ReportMetric(float64(st.Index)/float64(st.MessageBytes), s.name+"-index/message-bytes")
		}
	}
	b.ReportMetric(0, "ns/op")
}
