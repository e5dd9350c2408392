//go:build unix

package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// powerMoments is the number of power losses: a few hundred, or
// FURL_POWER_LOSSES.
func powerMoments(t *testing.T) int {
	text := os.Getenv("FURL_POWER_LOSSES")
	if text == "" && raceDetector {
		return 50
	}
	if text == "" {
		return 200
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("FURL_POWER_LOSSES: %v", err)
	}
	return n
}

const powerWriters = 3

// powerRun is what one process did before the power loss.
type powerRun struct {
	t    *testing.T
	disk *recordedDisk
	path string
	full bool       // acknowledged means flushed
	had  []furl.Seq // records of each writer at the start

	mu      sync.Mutex
	batches []powerBatch
	deleted []powerDelete
}

// powerBatch is an append. The three moments are counts of disk operations.
type powerBatch struct {
	writer                         int
	last                           furl.Seq
	begun, committed, acknowledged int
}

// powerDelete is a session that was appended and deleted.
type powerDelete struct {
	id      furl.SessionID // of one run: the next one may start with what this one has not deleted
	deleted int            // when the delete was acknowledged
}

// TestPowerLoss writes to a store, and computes from the writes and flushes
// the files that a power loss may leave, at many moments: all flushed bytes,
// some sectors of the others, and some of the new and removed names. Each
// time the store opens, the check finds no problems, every acknowledged
// record exists, no deleted session exists, and everything lost was committed
// after everything kept. The next run continues from one of these states, so
// that recovery is interrupted too. FURL_POWER_LOSSES=10000 go test -run
// TestPowerLoss ./sqlite does more.
func TestPowerLoss(t *testing.T) {
	for name, sync := range map[string]sqlite.Sync{"full": sqlite.SyncFull, "normal": sqlite.SyncNormal} {
		t.Run(name, func(t *testing.T) { losePower(t, sync, powerMoments(t)/2) })
	}
}

func losePower(t *testing.T, sync sqlite.Sync, moments int) {
	rnd := rand.New(rand.NewPCG(3, 4))
	files, has := make(map[string][]byte), make([]furl.Seq, powerWriters) // before a run
	for moments > 0 {
		run := &powerRun{t: t, path: filepath.Join(t.TempDir(), "furl.db"), full: sync == sqlite.SyncFull, had: has}
		writeFiles(t, filepath.Dir(run.path), files)
		run.disk = recordDisk(t, filepath.Dir(run.path))
		run.write(rnd, sync)
		run.disk.stop()
		for range min(moments, 25) {
			moments--
			n := rnd.IntN(run.disk.note())
			files = run.disk.afterPowerLoss(n, rnd)
			has = run.check(n, files, rnd)
			if t.Failed() {
				t.Fatalf("with the power lost after %d of %d operations", n, run.disk.note()-1)
			}
		}
		if len(files["furl.db"]) > 1<<19 { // start again
			clear(files)
			has = make([]furl.Seq, powerWriters)
		}
	}
}

func writeFiles(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// write writes through two stores that have the file open, like two
// processes, and closes them.
func (run *powerRun) write(rnd *rand.Rand, sync_ sqlite.Sync) {
	t := run.t
	o := &sqlite.Options{Sync: sync_}
	o.SetDisk(recordingVFS, run.disk.sync)
	stores := []*sqlite.Store{openAt(t, run.path, o), openAt(t, run.path, o)}
	for _, s := range stores { // so that the log is moved into the file often
		if err := s.Exec(fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", 5+rnd.IntN(60))); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for w := range powerWriters {
		batches := 5 + rnd.IntN(12)
		wg.Go(func() { run.append(stores[w%2], w, batches) })
	}
	kept := secret(t, rnd, 6_000)
	wg.Go(func() { run.appendAndDelete(stores[1], kept) })
	wg.Wait()
	for _, s := range stores {
		closeStore(t, s)
	}
}

// append appends batches to a writer's session, and index pages.
func (run *powerRun) append(s *sqlite.Store, w, batches int) {
	ctx := run.t.Context()
	k := key(fmt.Sprint("writer-", w))
	var last furl.Record
	for r, err := range s.Read(ctx, k, 0) {
		if err == nil {
			last = r
		}
	}
	for range batches {
		var b storage.Batch
		for range 1 + (last.Seq+furl.Seq(w))%3 {
			r := nthRecord(w, last.Seq+1)
			r.Chain = r.Body.(*furl.Message).Extend(last.Chain)
			b.Records = append(b.Records, r)
			last = r
		}
		did := powerBatch{writer: w, last: last.Seq, begun: run.disk.note()}
		if err := s.AppendEarly(ctx, k, b, func() { did.committed = run.disk.note() }); err != nil {
			run.t.Error(err)
			return
		}
		did.acknowledged = run.disk.note()
		run.mu.Lock()
		run.batches = append(run.batches, did)
		run.mu.Unlock()
		if last.Seq%4 == 0 {
			cursor, err := s.Indexed(ctx, k)
			if err != nil {
				run.t.Error(err)
				return
			}
			x := storage.IndexWrite{After: cursor, To: last.Seq, Put: []storage.IndexPage{
				{Bucket: uint32(last.Seq % 7), Segment: uint64(last.Seq), Data: bytes.Repeat([]byte{byte(last.Seq)}, 700)}}}
			if err := s.WriteIndex(ctx, k, x); err != nil {
				run.t.Error(err)
				return
			}
		}
	}
}

// appendAndDelete appends sessions and deletes them again.
func (run *powerRun) appendAndDelete(s *sqlite.Store, m *furl.Message) {
	for i := range 3 {
		d := powerDelete{id: furl.SessionID(fmt.Sprintf("deleted-%d-%s", i, filepath.Base(filepath.Dir(run.path))))}
		k := furl.SessionKey{Session: d.id}
		if err := s.Append(run.t.Context(), k, storage.Batch{Records: []furl.Record{{Seq: 1, Body: m}}}); err != nil {
			run.t.Error(err)
			return
		}
		if err := s.Delete(run.t.Context(), k); err != nil {
			run.t.Error(err)
			return
		}
		d.deleted = run.disk.note()
		run.mu.Lock()
		run.deleted = append(run.deleted, d)
		run.mu.Unlock()
	}
}

// check opens the files that a power loss after n operations left. It returns
// the number of records of each writer.
func (run *powerRun) check(n int, files map[string][]byte, rnd *rand.Rand) []furl.Seq {
	t := run.t
	dir := t.TempDir()
	writeFiles(t, dir, files)
	if rnd.IntN(2) == 0 { // SQLite's index of the log is never flushed
		stale := make([]byte, 32<<10)
		for i := range stale {
			stale[i] = byte(rnd.Int())
		}
		writeFiles(t, dir, map[string][]byte{"furl.db-shm": stale})
	}
	s := openAt(t, filepath.Join(dir, "furl.db"), nil)
	defer closeStore(t, s)
	sound(t, s)
	has := make([]furl.Seq, powerWriters)
	for w := range has {
		has[w] = run.records(s, w)
		if has[w] < run.had[w] {
			t.Errorf("writer %d: %d records, before this run there were %d", w, has[w], run.had[w])
		}
	}
	lost := len(run.disk.ops) // when the first lost record was committed
	for _, b := range run.batches {
		if b.last <= has[b.writer] {
			continue
		}
		if run.full && b.acknowledged <= n {
			t.Errorf("writer %d: %d records, acknowledged were %d", b.writer, has[b.writer], b.last)
		}
		if b.committed <= n {
			lost = min(lost, b.committed)
		}
	}
	for _, b := range run.batches {
		if b.last <= has[b.writer] && b.begun > lost {
			t.Errorf("writer %d: record %d is there, and what was committed before it began is not", b.writer, b.last)
		}
	}
	for _, d := range run.deleted {
		there := run.there(s, d.id)
		if run.full && there && d.deleted <= n {
			t.Errorf("%s was deleted and is there", d.id)
		}
	}
	return has
}

// records reads a writer's session, which must be a prefix of what was
// written.
func (run *powerRun) records(s *sqlite.Store, w int) furl.Seq {
	t := run.t
	var got []furl.Record
	for r, err := range s.Read(context.Background(), key(fmt.Sprint("writer-", w)), 0) {
		switch {
		case errors.Is(err, storage.ErrNoSession):
			return 0
		case err != nil:
			t.Fatal(err)
		}
		got = append(got, r)
	}
	for i, want := range nthRecords(w, furl.Seq(len(got))) {
		if m := want.Body.(*furl.Message); !bytes.Equal(got[i].Body.(*furl.Message).Raw, m.Raw) || got[i].Chain != want.Chain {
			t.Fatalf("writer %d: record %d is %.100s, want %.100s", w, i+1, got[i].Body.(*furl.Message).Raw, m.Raw)
		}
	}
	return furl.Seq(len(got))
}

func (run *powerRun) there(s *sqlite.Store, id furl.SessionID) bool {
	for _, err := range s.Read(context.Background(), furl.SessionKey{Session: id}, 0) {
		if err != nil && !errors.Is(err, storage.ErrNoSession) {
			run.t.Fatal(err)
		}
		return err == nil
	}
	return false
}

// A store opens after a power loss at any moment of its creation.
func TestPowerLossWhileAStoreIsMade(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	path := filepath.Join(t.TempDir(), "furl.db")
	disk := recordDisk(t, filepath.Dir(path))
	o := &sqlite.Options{}
	o.SetDisk(recordingVFS, disk.sync)
	closeStore(t, openAt(t, path, o))
	disk.stop()
	for n := range disk.note() {
		for i := range 2 {
			if raceDetector && n%3 != i {
				continue
			}
			dir := t.TempDir()
			writeFiles(t, dir, disk.afterPowerLoss(n, rnd))
			s := openAt(t, filepath.Join(dir, "furl.db"), nil)
			put(t, s, "s", some(1))
			sound(t, s)
			closeStore(t, s)
		}
	}
}

// When a delete is acknowledged, the deleted bytes are overwritten on disk
// too: no power loss restores them.
func TestDeletedBytesStayGoneAfterPowerLoss(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	path := filepath.Join(t.TempDir(), "furl.db")
	disk := recordDisk(t, filepath.Dir(path))
	defer disk.stop()
	o := &sqlite.Options{}
	o.SetDisk(recordingVFS, disk.sync)
	s := openAt(t, path, o)
	defer closeStore(t, s)
	put(t, s, "other", some(20))
	for i := range 5 {
		put(t, s, "secret", []furl.Record{{Seq: furl.Seq(i + 1), Parent: furl.Seq(i), Body: secret(t, rnd, 3000)}})
	}
	if err := s.Delete(t.Context(), key("secret")); err != nil {
		t.Fatal(err)
	}
	n := disk.note()
	for range 40 {
		for name, data := range disk.afterPowerLoss(n, rnd) {
			if found := bytes.Count(data, []byte(planted)); found > 0 {
				t.Errorf("%s contains the deleted text %d times", name, found)
			}
		}
	}
}

// The names of folders created for a store are flushed to disk, from the top.
// Otherwise a power loss can remove the folder and its content.
func TestNewFoldersAreFlushed(t *testing.T) {
	top := t.TempDir()
	var flushed []string
	o := &sqlite.Options{}
	o.SetDisk("", func(f *os.File) error {
		name, err := filepath.Rel(top, f.Name())
		flushed = append(flushed, name)
		return errors.Join(err, f.Sync())
	})
	s := openAt(t, filepath.Join(top, "a", "b", "furl.db"), o)
	closeStore(t, s)
	if want := []string{".", "a"}; !slices.Equal(flushed, want) {
		t.Errorf("flushed %q, want %q", flushed, want)
	}
}
