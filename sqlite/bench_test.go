package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/transcript"
)

// These benchmarks are reported in docs/operate/stores.md; run them with make
// bench-store.

// kilobytes returns records with messages of 1 KB, of one session.
func kilobytes(n int) []furl.Record {
	return furltest.Session(furltest.SessionOptions{Seed: 7, Messages: n, MessageBytes: 1000})[:n]
}

// renumber makes a record the seq'th of a session that repeats the same
// records.
func renumber(records []furl.Record, seq furl.Seq) furl.Record {
	r := records[int(seq-1)%len(records)]
	r.Seq, r.Parent = seq, seq-1
	r.Chain[8] = byte(seq) // spread over the chain index, as new ones are
	r.Chain[0], r.Chain[1], r.Chain[2] = r.Chain[0]^byte(seq>>16), r.Chain[1]^byte(seq>>8), r.Chain[2]^byte(seq)
	return r
}

// bare is a table of two columns with the same settings. The bytes of records
// are inserted one by one: the upper bound of what SQLite can do.
type bare struct {
	db     *sql.DB
	insert *sql.Stmt
	data   [][]byte
	n      int
}

func newBare(b *testing.B, records []furl.Record) *bare {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "bare.db")+
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=wal_autocheckpoint(4000)")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE records (id INTEGER PRIMARY KEY, data BLOB NOT NULL)"); err != nil {
		b.Fatal(err)
	}
	x := &bare{db: db}
	if x.insert, err = db.Prepare("INSERT INTO records (data) VALUES (?)"); err != nil {
		b.Fatal(err)
	}
	for _, r := range records {
		head, body, err := record.Encode(r)
		if err != nil {
			b.Fatal(err)
		}
		x.data = append(x.data, append(head, body...))
	}
	return x
}

func (x *bare) add(b *testing.B) {
	if _, err := x.insert.Exec(x.data[x.n%len(x.data)]); err != nil {
		b.Fatal(err)
	}
	x.n++
}

// BenchmarkAppend compares bare INSERTs, single appends to one session, and
// 16 writers to 16 sessions. They alternate every few milliseconds, so that
// all run under the same load. An iteration is sixteen appends of each kind.
func BenchmarkAppend(b *testing.B) { benchmarkAppend(b, false) }

// BenchmarkAppendIndexed does the same while another goroutine indexes the
// appended records with a delay of half a second.
func BenchmarkAppendIndexed(b *testing.B) { benchmarkAppend(b, true) }

func benchmarkAppend(b *testing.B, indexed bool) {
	records := kilobytes(2000)
	x := newBare(b, records)
	s := openAt(b, filepath.Join(b.TempDir(), "furl.db"), nil)
	defer s.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var index sync.WaitGroup
	if indexed {
		index.Go(func() { indexBeside(ctx, b, s) })
	}
	add := func(id string, seq furl.Seq, tag byte) {
		r := renumber(records, seq)
		r.Chain[3] ^= tag
		if err := s.Append(context.Background(), furl.SessionKey{Session: furl.SessionID(id)}, storage.Batch{Records: []furl.Record{r}}); err != nil {
			b.Error(err)
		}
	}
	var forBare, single, group turns
	turn := func(t *turns, do func()) {
		begun := time.Now()
		do()
		d := time.Since(begun)
		t.total += d
		if t.best == 0 || d < t.best {
			t.best = d
		}
	}
	next := furl.Seq(1)
	grown := furl.Seq(1)
	for b.Loop() {
		turn(&forBare, func() {
			for range 16 {
				x.add(b)
			}
		})
		turn(&single, func() {
			for range 16 {
				add("s", next, 0)
				next++
			}
		})
		turn(&group, func() {
			var wg sync.WaitGroup
			for w := range 16 {
				wg.Go(func() {
					for i := range furl.Seq(4) {
						add(fmt.Sprint("group-", w), grown+i, byte(w+1))
					}
				})
			}
			wg.Wait()
			grown += 4
		})
	}
	cancel()
	index.Wait()
	n := float64(b.N)
	b.ReportMetric(16*n/forBare.total.Seconds(), "bare/s")
	b.ReportMetric(16*n/single.total.Seconds(), "single/s")
	b.ReportMetric(64*n/group.total.Seconds(), "group/s")
	b.ReportMetric(100*forBare.total.Seconds()/single.total.Seconds(), "%of-bare")
	b.ReportMetric(4*single.total.Seconds()/group.total.Seconds(), "group/single")
	// On a busy machine the best rounds show the speed of an idle one.
	b.ReportMetric(16/forBare.best.Seconds(), "best-bare/s")
	b.ReportMetric(16/single.best.Seconds(), "best-single/s")
	b.ReportMetric(64/group.best.Seconds(), "best-group/s")
}

// turns is the duration of the rounds of one kind.
type turns struct{ total, best time.Duration }

// indexBeside writes pages as an index would, a third of the bytes in 64
// buckets, half a second after the appends.
func indexBeside(ctx context.Context, b *testing.B, s *sqlite.Store) {
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

// BenchmarkLoad reads a session of 2,000 messages of 1 KB from disk each
// time, and folds it.
func BenchmarkLoad(b *testing.B) {
	s := openAt(b, filepath.Join(b.TempDir(), "furl.db"), nil)
	defer s.Close()
	key := furl.SessionKey{Session: "s"}
	if err := s.Append(context.Background(), key, storage.Batch{Records: kilobytes(2000)}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	best := time.Hour // on a busy machine the mean is unreliable
	for b.Loop() {
		begun := time.Now()
		records := make([]furl.Record, 0, 2000)
		for r, err := range s.Read(context.Background(), key, 0) {
			if err != nil {
				b.Fatal(err)
			}
			records = append(records, r)
		}
		if err := furl.NewLog().Load(records); err != nil {
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
		s := openAt(b, filepath.Join(b.TempDir(), "furl.db"), nil)
		for i, file := range files {
			key := furl.SessionKey{Session: furl.SessionID(fmt.Sprint("s", i))}
			importFile(b, s, key, recordings.Read(b, file))
		}
		st, err := s.Stats(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		path := s.Path()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(st.MessageBytes), "message-bytes")
		b.ReportMetric(float64(fileSize(b, path))/float64(st.MessageBytes), "file/message-bytes")
		b.ReportMetric(float64(st.Bodies)/float64(st.MessageBytes), "bodies/message-bytes")
	}
}

// BenchmarkMatch looks up 400 chains of a history in a store of 200 sessions.
func BenchmarkMatch(b *testing.B) {
	s := openAt(b, filepath.Join(b.TempDir(), "furl.db"), nil)
	defer s.Close()
	var chains []furl.Digest
	for i := range uint64(200) {
		records := furltest.Session(furltest.SessionOptions{Seed: i, Messages: 400, MessageBytes: 300})
		if err := s.Append(context.Background(), furl.SessionKey{Session: furl.SessionID(fmt.Sprint("s", i))}, storage.Batch{Records: records}); err != nil {
			b.Fatal(err)
		}
		chains = chains[:0]
		for _, r := range records {
			chains = append(chains, r.Chain)
		}
	}
	slices.Reverse(chains)
	for b.Loop() {
		if found, err := s.Match(context.Background(), "", chains, 1); err != nil || len(found) != 1 {
			b.Fatal(found, err)
		}
	}
}

func importFile(b *testing.B, s *sqlite.Store, key furl.SessionKey, data []byte) {
	rec, err := transcript.Read(string(key.Session)+".jsonl", bytes.NewReader(data))
	if err != nil {
		b.Fatal(err)
	}
	for i, session := range rec.Sessions {
		key := furl.SessionKey{Session: furl.SessionID(fmt.Sprintf("%s-%d", key.Session, i))}
		for _, r := range session.Log.Records(0) { // one by one, as a gateway appends
			if err := s.Append(context.Background(), key, storage.Batch{Records: []furl.Record{r}}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func fileSize(b *testing.B, path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return info.Size()
}
