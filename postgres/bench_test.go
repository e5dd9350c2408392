package postgres

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/transcript"
)

// These benchmarks are reported in docs/operate/stores.md and are the same as those
// of package sqlite. All use one server on this machine with default
// settings.

// kilobytes returns records with messages of 1 KB, of one session.
func kilobytes(n int) []furl.Record {
	return furltest.Session(furltest.SessionOptions{Seed: 7, Messages: n, MessageBytes: 1000})[:n]
}

// renumber makes a record the seq'th of a session that repeats the same
// records.
func renumber(records []furl.Record, seq furl.Seq) furl.Record {
	r := records[int(seq-1)%len(records)]
	r.Seq, r.Parent = seq, seq-1
	r.Chain = furl.DigestOf(fmt.Append(r.Chain[:], seq))
	return r
}

// BenchmarkAppend compares bare INSERTs of the same bytes into a table of two
// columns, which is the upper bound of what the server can do; single appends
// to one session; and 16 writers to 16 sessions. They alternate, so that all
// run under the same load. An iteration is eight appends of the first two
// kinds.
func BenchmarkAppend(b *testing.B) { benchmarkAppend(b, false) }

// BenchmarkAppendIndexed does the same while another goroutine indexes the
// appended records with a delay of half a second.
func BenchmarkAppendIndexed(b *testing.B) { benchmarkAppend(b, true) }

func benchmarkAppend(b *testing.B, indexed bool) {
	const turn, group = 8, 4
	s := open(b, nil)
	if _, err := s.pool.Exec(b.Context(), `create table bare (id bigint generated always as identity primary key, data bytea not null)`); err != nil {
		b.Fatal(err)
	}
	records := kilobytes(2000)
	data := make([][]byte, len(records))
	for i, r := range records {
		head, body, err := record.Encode(r)
		if err != nil {
			b.Fatal(err)
		}
		data[i] = append(head, body...)
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var beside sync.WaitGroup
	if indexed {
		beside.Go(func() { indexBeside(ctx, b, s) })
	}
	add := func(id string, seq furl.Seq, tag byte) {
		r := renumber(records, seq)
		r.Chain[3] ^= tag
		if err := s.Append(ctx, furl.SessionKey{Session: furl.SessionID(id)}, storage.Batch{Records: []furl.Record{r}}); err != nil {
			b.Error(err)
		}
	}
	var bare, single, grouped time.Duration
	timed := func(sum *time.Duration, do func()) {
		begun := time.Now()
		do()
		*sum += time.Since(begun)
	}
	n, next, grown := 0, furl.Seq(1), furl.Seq(1)
	for b.Loop() {
		timed(&bare, func() {
			for range turn {
				if _, err := s.pool.Exec(ctx, `insert into bare (data) values ($1)`, data[n%len(data)]); err != nil {
					b.Error(err)
				}
				n++
			}
		})
		timed(&single, func() {
			for range turn {
				add("s", next, 0)
				next++
			}
		})
		timed(&grouped, func() {
			var writers sync.WaitGroup
			for w := range 16 {
				writers.Go(func() {
					for i := range furl.Seq(group) {
						add(fmt.Sprint("group-", w), grown+i, byte(w+1))
					}
				})
			}
			writers.Wait()
			grown += group
		})
	}
	cancel()
	beside.Wait()
	turns := float64(n) / turn
	b.ReportMetric(turn*turns/bare.Seconds(), "bare/s")
	b.ReportMetric(turn*turns/single.Seconds(), "single/s")
	b.ReportMetric(16*group*turns/grouped.Seconds(), "group/s")
	b.ReportMetric(100*bare.Seconds()/single.Seconds(), "%of-bare")
	b.ReportMetric(16*group/turn*single.Seconds()/grouped.Seconds(), "group/single")
}

// indexBeside writes pages as an index would, a third of the bytes in 64
// buckets, half a second after the appends.
func indexBeside(ctx context.Context, b *testing.B, s *Store) {
	key := furl.SessionKey{Session: "s"}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for segment := uint64(1); ; segment++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		cursor, err := s.Indexed(ctx, key)
		if err != nil {
			continue // nothing was appended yet, or the end
		}
		to, size := cursor, 0
		for r, err := range s.Read(ctx, key, cursor) {
			if err != nil {
				return
			}
			to, size = r.Seq, size+r.Body.(*furl.Message).Bytes()
		}
		w := storage.IndexWrite{After: cursor, To: to}
		for bucket := range uint32(64) {
			w.Put = append(w.Put, storage.IndexPage{Bucket: bucket, Segment: segment, Data: make([]byte, size/3/64)})
		}
		if err := s.WriteIndex(ctx, key, w); err != nil && ctx.Err() == nil {
			b.Errorf("write index: %v", err)
			return
		}
	}
}

// BenchmarkLoad reads a session of 2,000 messages of 1 KB each time, and
// folds it.
func BenchmarkLoad(b *testing.B) {
	s := open(b, nil)
	key := furl.SessionKey{Session: "s"}
	appendAll(b, s, key, kilobytes(2000))
	b.ReportAllocs()
	best := time.Hour
	for b.Loop() {
		begun := time.Now()
		if err := furl.NewLog().Load(read(b, s, key, 0)); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(begun))
	}
	b.ReportMetric(float64(best.Microseconds())/1000, "best-ms")
}

// BenchmarkSize imports the Claude Code recordings and reports the size of
// the store per byte of their messages.
func BenchmarkSize(b *testing.B) {
	files := recordings.Files(b, "entire-cli/*.jsonl.gz")
	for b.Loop() {
		s := open(b, nil)
		for i, file := range files {
			rec, err := transcript.Read(file, bytes.NewReader(recordings.Read(b, file)))
			if err != nil {
				b.Fatal(err)
			}
			for j, session := range rec.Sessions {
				key := furl.SessionKey{Session: furl.SessionID(fmt.Sprintf("s%d-%d", i, j))}
				for _, r := range session.Log.Records(0) { // one by one, as a gateway appends
					appendAll(b, s, key, []furl.Record{r})
				}
			}
		}
		st, err := s.Stats(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(st.MessageBytes), "message-bytes")
		b.ReportMetric(float64(st.Total)/float64(st.MessageBytes), "total/message-bytes")
		b.ReportMetric(float64(st.Bodies)/float64(st.MessageBytes), "bodies/message-bytes")
	}
}

// BenchmarkAcross runs the queries of a tenant across its 2,000 sessions,
// with 20 messages and 64 pages each.
func BenchmarkAcross(b *testing.B) {
	for name, partitions := range map[string]int{"plain": 0, "16 partitions": 16} {
		b.Run(name, func(b *testing.B) { across(b, open(b, &Options{Partitions: partitions})) })
	}
}

func across(b *testing.B, s *Store) {
	const sessions = 2000
	records := furltest.Session(furltest.SessionOptions{Seed: 3, Messages: 20})
	var last []furl.Digest
	for i := range sessions {
		key := furl.SessionKey{Session: furl.SessionID(fmt.Sprint("session-", i))}
		mine := slices.Clone(records)
		end := &mine[len(mine)-1]
		end.Chain = furl.DigestOf([]byte(key.Session))
		last = append(last, end.Chain)
		appendAll(b, s, key, mine)
		w := storage.IndexWrite{To: 20}
		for bucket := range uint32(64) {
			w.Put = append(w.Put, storage.IndexPage{Bucket: bucket, Segment: 1, Data: make([]byte, 200)})
		}
		if err := s.WriteIndex(b.Context(), key, w); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := s.pool.Exec(b.Context(), `analyze`); err != nil {
		b.Fatal(err)
	}
	var chains []furl.Digest // of a request with many messages
	for i := range 200 {
		chains = append(chains, last[i*7], furl.DigestOf([]byte{byte(i)}))
	}
	match := func(chains []furl.Digest) func(*testing.B) {
		return func(b *testing.B) {
			for b.Loop() {
				if found, err := s.Match(b.Context(), "", chains, 20); err != nil || len(found) != 20 {
					b.Fatal(len(found), err)
				}
			}
		}
	}
	b.Run("match 400 chains", match(chains))
	b.Run("match what all begin with", match([]furl.Digest{records[0].Chain}))
	b.Run("list 50", func(b *testing.B) {
		for b.Loop() {
			for _, err := range s.Sessions(b.Context(), "", storage.SessionQuery{Limit: 50}) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	pages := func(key furl.SessionKey, want int) func(*testing.B) {
		return func(b *testing.B) {
			for b.Loop() {
				n := 0
				for _, err := range s.Pages(b.Context(), key, 7) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if n != want {
					b.Fatalf("%d pages, want %d", n, want)
				}
			}
		}
	}
	b.Run("bucket of a session", pages(furl.SessionKey{Session: "session-77"}, 1))
	b.Run("bucket of all", pages(furl.SessionKey{}, sessions))
}
