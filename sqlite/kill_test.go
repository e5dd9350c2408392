package sqlite_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// killRounds is how often the writing process is killed: a few dozen times,
// or FURL_KILL_ROUNDS.
func killRounds(t *testing.T) int {
	text := os.Getenv("FURL_KILL_ROUNDS")
	if text == "" && raceDetector {
		return 8
	}
	if text == "" {
		return 24
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("FURL_KILL_ROUNDS: %v", err)
	}
	return n
}

const killWriters = 8

// killText is the text whose parts are used in the records.
var killText = func() string {
	rnd := rand.New(rand.NewPCG(5, 6))
	text := make([]byte, 40_000)
	for i := range text {
		text[i] = byte('a' + rnd.IntN(8))
	}
	return string(text)
}()

// nthRecord is the record that writer w appends as seq; its size varies.
func nthRecord(w int, seq furl.Seq) furl.Record {
	rnd := rand.New(rand.NewPCG(uint64(w), uint64(seq)))
	size := []int{10, 300, 900, 2500, 9000}[rnd.IntN(5)]
	at := rnd.IntN(len(killText) - size)
	text := killText[at : at+size]
	m := furl.TextMessage(furl.RoleUser, fmt.Sprintf("writer %d record %d %s", w, seq, text))
	m.Raw = fmt.Appendf(nil, `{"role":"user","content":%q}`, m.Blocks[0].Text)
	return furl.Record{Seq: seq, Parent: seq - 1, At: time.Unix(int64(seq), 0).UTC(), Body: m}
}

// nthRecords chains the records up to last.
func nthRecords(w int, last furl.Seq) []furl.Record {
	records := make([]furl.Record, 0, last)
	var chain furl.Digest
	for seq := furl.Seq(1); seq <= last; seq++ {
		r := nthRecord(w, seq)
		chain = r.Body.(*furl.Message).Extend(chain)
		r.Chain = chain
		records = append(records, r)
	}
	return records
}

// writeUntilKilled appends with many writers, each to its own session and
// with index pages, and prints what was acknowledged.
func writeUntilKilled(path string) error {
	s, err := sqlite.Open(path, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx := context.Background()
	errs := make(chan error, killWriters)
	var wg sync.WaitGroup
	for w := range killWriters {
		wg.Go(func() { errs <- writeSession(ctx, s, w) })
	}
	go func() { // the reader is gone: the test has failed
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return <-errs
}

func writeSession(ctx context.Context, s *sqlite.Store, w int) error {
	k := key(fmt.Sprint("writer-", w))
	var last furl.Record
	for r, err := range s.Read(ctx, k, 0) {
		if err == nil {
			last = r
		}
	}
	cursor, _ := s.Indexed(ctx, k) // 0 for a new session
	for seq := last.Seq + 1; ; {
		n := furl.Seq(1 + (seq+furl.Seq(w))%3)
		var b storage.Batch
		for i := range n {
			r := nthRecord(w, seq+i)
			r.Chain = r.Body.(*furl.Message).Extend(last.Chain)
			b.Records = append(b.Records, r)
			last = r
		}
		if seq%5 == 0 {
			b.Meta = &storage.Meta{Title: fmt.Sprint("up to ", seq)}
		}
		if err := s.Append(ctx, k, b); err != nil {
			return err
		}
		seq += n
		// One write, so that lines of different writers do not mix.
		if _, err := os.Stdout.WriteString(fmt.Sprintf("a %d %d\n", w, seq-1)); err != nil {
			return err
		}
		if seq%4 != 0 {
			continue
		}
		x := storage.IndexWrite{After: cursor, To: seq - 1, Put: []storage.IndexPage{
			{Bucket: uint32(seq % 7), Segment: uint64(seq), Data: bytes.Repeat([]byte{byte(seq)}, 700)}}}
		if err := s.WriteIndex(ctx, k, x); err != nil {
			return err
		}
		cursor = seq - 1
		if _, err := os.Stdout.WriteString(fmt.Sprintf("i %d %d\n", w, cursor)); err != nil {
			return err
		}
	}
}

// TestKill kills a writing process at random moments, again and again, and
// opens the file: every acknowledged record exists, no record is torn, and
// the check finds no problems. FURL_KILL_ROUNDS=500 go test -run TestKill
// ./sqlite runs five hundred rounds.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "furl.db")
	rnd := rand.New(rand.NewPCG(1, 2))
	acked := make(map[string]furl.Seq) // by "a" or "i" and the writer
	for round := range killRounds(t) {
		p := child(t, "write", path)
		// Kill it after a random line of output; the position of the other
		// writers is then unknown.
		var said []string
		for range 1 + rnd.IntN(80) {
			said = append(said, p.line(t))
		}
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(p.out)
		if err != nil {
			t.Fatal(err)
		}
		_ = p.cmd.Wait() // killed
		said = append(said, strings.SplitAfter(string(rest), "\n")...)
		for _, line := range said {
			var what string
			var w int
			var seq furl.Seq
			if _, err := fmt.Sscanf(line, "%s %d %d\n", &what, &w, &seq); err == nil {
				acked[fmt.Sprint(what, w)] = seq
			}
		}
		s := openAt(t, path, nil)
		for w := range killWriters {
			checkKilled(t, s, w, acked)
		}
		sound(t, s)
		closeStore(t, s)
		if t.Failed() {
			t.Fatalf("after round %d", round)
		}
		if st, err := os.Stat(path); err == nil && st.Size() > 6<<20 { // start again
			path, acked = filepath.Join(t.TempDir(), "furl.db"), make(map[string]furl.Seq)
		}
	}
}

func checkKilled(t *testing.T, s *sqlite.Store, w int, acked map[string]furl.Seq) {
	t.Helper()
	k := key(fmt.Sprint("writer-", w))
	appended, indexed := acked[fmt.Sprint("a", w)], acked[fmt.Sprint("i", w)]
	var got []furl.Record
	for r, err := range s.Read(context.Background(), k, 0) {
		if err != nil {
			if appended > 0 {
				t.Errorf("writer %d: %v, acknowledged were %d records", w, err, appended)
			}
			return
		}
		got = append(got, r)
	}
	if furl.Seq(len(got)) < appended {
		t.Errorf("writer %d: %d records, acknowledged were %d", w, len(got), appended)
	}
	want := nthRecords(w, furl.Seq(len(got)))
	for i := range got {
		if a, b := got[i].Body.(*furl.Message), want[i].Body.(*furl.Message); !bytes.Equal(a.Raw, b.Raw) || got[i].Chain != want[i].Chain {
			t.Fatalf("writer %d: record %d is %.100s, want %.100s", w, i+1, a.Raw, b.Raw)
		}
	}
	if err := furl.NewLog().Load(got); err != nil {
		t.Errorf("writer %d: %v", w, err)
	}
	if cursor, err := s.Indexed(context.Background(), k); err != nil || cursor < indexed {
		t.Errorf("writer %d: the cursor is at %d, %v; acknowledged was %d", w, cursor, err, indexed)
	}
}
