package postgres

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/storage"
)

// BenchmarkCitus compares a Citus cluster with a plain server, both on this machine.
// The operations alternate, so that all run under the same load. It reports
// medians in milliseconds.
func BenchmarkCitus(b *testing.B) {
	c := pgtest.Citus(b)
	stores := []*Store{
		reopen(b, pgtest.URL(b), nil),
		reopen(b, c.URL(pgtest.Coordinator), nil),
	}
	const history = 2000
	records := kilobytes(history)
	other := furltest.Session(furltest.SessionOptions{Seed: 3, Messages: 20})
	last := make([]furl.Digest, 0, 200)
	for i := range 200 { // what lists and matching find
		key := furl.SessionKey{Session: furl.SessionID(fmt.Sprint("session-", i))}
		mine := slices.Clone(other)
		mine[len(mine)-1].Chain = furl.DigestOf([]byte(key.Session))
		last = append(last, mine[len(mine)-1].Chain)
		for _, s := range stores {
			appendAll(b, s, key, mine)
		}
	}
	for _, s := range stores {
		appendAll(b, s, furl.SessionKey{Session: "read"}, records)
		if _, err := s.pool.Exec(b.Context(), `analyze furl.records, furl.sessions`); err != nil {
			b.Fatal(err)
		}
	}
	page := func(i int) storage.IndexPage {
		return storage.IndexPage{Bucket: uint32(i), Segment: 1, Data: make([]byte, 500)}
	}
	pages := make([]storage.IndexPage, 64)
	for i := range pages {
		pages[i] = page(i)
	}
	round := 0
	ops := []struct {
		name  string
		times int // in each round
		do    func(s *Store, n int) error
	}{
		{"append-1KB", 20, func(s *Store, n int) error {
			r := renumber(records, furl.Seq(n+1))
			return s.Append(b.Context(), furl.SessionKey{Session: "append"}, storage.Batch{Records: []furl.Record{r}})
		}},
		{"batch-2000", 1, func(s *Store, n int) error {
			return s.Append(b.Context(), furl.SessionKey{Session: furl.SessionID(fmt.Sprint("batch-", n))}, storage.Batch{Records: records})
		}},
		{"index-64-pages", 5, func(s *Store, n int) error {
			return s.WriteIndex(b.Context(), furl.SessionKey{Session: "read"}, storage.IndexWrite{After: furl.Seq(n), To: furl.Seq(n + 1), Put: pages})
		}},
		{"read-2000", 2, func(s *Store, _ int) error {
			return furl.NewLog().Load(read(b, s, furl.SessionKey{Session: "read"}, 0))
		}},
		{"match-2-chains", 10, func(s *Store, n int) error {
			found, err := s.Match(b.Context(), "", []furl.Digest{last[n%len(last)], last[(n+7)%len(last)]}, 20)
			if err == nil && len(found) != 2 {
				err = fmt.Errorf("matched %d messages", len(found))
			}
			return err
		}},
		{"list-50", 10, func(s *Store, _ int) error {
			for _, err := range s.Sessions(b.Context(), "", storage.SessionQuery{Limit: 50}) {
				if err != nil {
					return err
				}
			}
			return nil
		}},
	}
	took := make([][2][]time.Duration, len(ops))
	for b.Loop() {
		for i, op := range ops {
			for n := range op.times {
				for which, s := range stores {
					begun := time.Now()
					if err := op.do(s, round*op.times+n); err != nil {
						b.Fatalf("%s: %v", op.name, err)
					}
					took[i][which] = append(took[i][which], time.Since(begun))
				}
			}
		}
		round++
	}
	for i, op := range ops {
		var median [2]float64
		for which := range stores {
			slices.Sort(took[i][which])
			median[which] = float64(took[i][which][len(took[i][which])/2].Microseconds()) / 1000
		}
		b.ReportMetric(median[0], op.name+"-plain-ms")
		b.ReportMetric(median[1], op.name+"-citus-ms")
		b.ReportMetric(median[1]/median[0], op.name+"-ratio")
	}
}

// BenchmarkCitusPing compares a ping with a lookup that asks each shard. It reports the
// median in milliseconds, and the processor time of the cluster's servers.
func BenchmarkCitusPing(b *testing.B) {
	c := pgtest.Citus(b)
	for _, shards := range []int{8, 36} {
		c.Empty(b)
		s := reopen(b, c.URL(pgtest.Coordinator), &Options{Partitions: shards, MaxConns: 1})
		lookup := func() error {
			for _, err := range s.Sessions(b.Context(), "", storage.SessionQuery{Hint: "ping", Limit: 1}) {
				return err
			}
			return nil
		}
		for name, do := range map[string]func() error{"ping": func() error { return s.Ping(b.Context()) }, "lookup": lookup} {
			b.Run(fmt.Sprintf("%s-%d-shards", name, shards), func(b *testing.B) {
				took, before := []time.Duration(nil), c.CPU(b)
				for b.Loop() {
					begun := time.Now()
					if err := do(); err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(begun))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
				b.ReportMetric(float64((c.CPU(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms")
			})
		}
	}
}
