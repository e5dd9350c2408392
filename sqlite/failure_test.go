package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// tells fails the test unless an error names the file and contains the words.
func tells(t testing.TB, err error, s *sqlite.Store, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), s.Path()) {
		t.Errorf("%v: want an error that names %s and says %q", err, s.Path(), words)
	}
}

// A full disk fails only the append that needs space; when space is freed,
// the same append succeeds.
func TestDiskFull(t *testing.T) {
	ctx := context.Background()
	o := &sqlite.Options{}
	o.SetMaxPages(150)
	s := openAt(t, filepath.Join(t.TempDir(), "furl.db"), o)
	defer closeStore(t, s)
	records := furltest.Session(furltest.SessionOptions{Messages: 600, MessageBytes: 4000})
	var full error
	n := 0
	for ; full == nil && n < len(records); n++ {
		full = s.Append(ctx, key("s"), storage.Batch{Records: records[n : n+1]})
	}
	n-- // the one that failed
	tells(t, full, s, "the disk is full")
	if errors.Is(full, furl.ErrDamaged) || errors.Is(full, furl.ErrConflict) {
		t.Errorf("a full disk is %v", full)
	}
	if got := count(t, s, "s"); got != n {
		t.Errorf("%d records, want the %d that were acknowledged", got, n)
	}
	sound(t, s)
	if err := s.Exec("PRAGMA max_page_count = 100000"); err != nil {
		t.Fatal(err)
	}
	put(t, s, "s", records[n:n+50])
	if got := count(t, s, "s"); got != n+50 {
		t.Errorf("%d records, want %d", got, n+50)
	}
	sound(t, s)
}

// An append that is committed but not flushed is not acknowledged. A caller
// that only needs the commit was notified before.
func TestDiskLost(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "furl.db"), nil)
	defer s.Close() // fails too
	put(t, s, "s", some(2))
	s.LoseDisk()
	committed := 0
	err := s.AppendEarly(t.Context(), key("s"), storage.Batch{Records: some(4)[2:]}, func() { committed = count(t, s, "s") })
	tells(t, err, s, "the disk reported an error")
	if committed != 4 {
		t.Errorf("%d records when it was committed, want 4", committed)
	}
	tells(t, s.Append(t.Context(), key("s"), storage.Batch{Records: some(5)[4:]}), s, "the disk reported an error")
	if n := count(t, s, "s"); n != 5 {
		t.Errorf("%d records, want 5", n)
	}
	sound(t, s)
}

// If appends share a transaction, one failure does not affect the others.
func TestOneOfAGroupFails(t *testing.T) {
	ctx := context.Background()
	o := &sqlite.Options{}
	o.SetMaxPages(150)
	s := openAt(t, filepath.Join(t.TempDir(), "furl.db"), o)
	defer closeStore(t, s)
	put(t, s, "old", some(2))
	release := make(chan struct{})
	s.Hold(release)
	huge := secret(t, rand.New(rand.NewPCG(1, 1)), 700_000)
	cancelled, cancel := context.WithCancel(ctx)
	errs := make([]error, 9)
	var wg sync.WaitGroup
	for i := range errs {
		batch := storage.Batch{Records: some(3)}
		k, ctx := key(fmt.Sprint("s", i)), ctx
		switch i {
		case 3:
			batch.Records = []furl.Record{{Seq: 1, Body: huge}}
		case 5:
			k, batch = key("old"), storage.Batch{Records: []furl.Record{{Seq: 1, Body: &furl.Head{}}}}
		case 7:
			ctx = cancelled
		}
		wg.Go(func() { errs[i] = s.Append(ctx, k, batch) })
	}
	for s.Waiting() < len(errs) {
		runtime.Gosched()
	}
	cancel()
	close(release)
	wg.Wait()
	for i, err := range errs {
		switch i {
		case 3:
			tells(t, err, s, "the disk is full")
		case 5:
			if !errors.Is(err, furl.ErrConflict) {
				t.Errorf("the conflict: %v", err)
			}
		case 7:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the cancelled one: %v", err)
			}
		default:
			if err != nil {
				t.Errorf("append %d of the group: %v", i, err)
			} else if n := count(t, s, fmt.Sprint("s", i)); n != 3 {
				t.Errorf("session %d has %d records, want 3", i, n)
			}
		}
	}
	for _, id := range []string{"s3", "s7"} {
		for _, err := range s.Read(ctx, key(id), 0) {
			if !errors.Is(err, storage.ErrNoSession) {
				t.Errorf("session %s: %v, want ErrNoSession", id, err)
			}
		}
	}
	sound(t, s)
}

// A changed byte of a body is found by a read and by a check.
func TestChangedByte(t *testing.T) {
	path := filepath.Join(t.TempDir(), "furl.db")
	s := openAt(t, path, nil)
	put(t, s, "whole", some(5))
	body := secret(t, rand.New(rand.NewPCG(1, 1)), 100)
	put(t, s, "s", []furl.Record{{Seq: 1, Body: body}, {Seq: 2, Parent: 1, Body: body}})
	closeStore(t, s)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(data, []byte(planted))
	data[at] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, path, nil)
	defer closeStore(t, s)
	var got error
	for _, err := range s.Read(context.Background(), key("s"), 0) {
		got = err
	}
	tells(t, got, s, "record 1: checksum mismatch")
	tells(t, got, s, "lost unless you have a backup: furl doctor lists")
	if !errors.Is(got, furl.ErrDamaged) {
		t.Errorf("%v, want ErrDamaged", got)
	}
	if n := count(t, s, "whole"); n != 5 {
		t.Errorf("the other session has %d records, want 5", n)
	}
	problems := problemsOf(t, s, true)
	if len(problems) != 1 || problems[0].Session != key("s") || problems[0].Seq == 0 || problems[0].Derived {
		t.Errorf("the check found %+v, want the one record", problems)
	}
}

func problemsOf(t testing.TB, s *sqlite.Store, mend bool) (problems []storage.Problem) {
	t.Helper()
	for p, err := range s.Check(context.Background(), mend) {
		if err != nil {
			t.Fatal(err)
		}
		problems = append(problems, p)
	}
	return problems
}

// With any page overwritten, the store either reports the damage and its
// place, or works. It never returns data that was not written.
func TestDamagedPages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "furl.db")
	s := openAt(t, path, nil)
	records := furltest.Session(furltest.SessionOptions{Messages: 60, MessageBytes: 3000, Exchanges: true})
	put(t, s, "s", records)
	closeStore(t, s)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	found := 0
	for n := 0; n*page < len(whole); n += 3 {
		data := bytes.Clone(whole)
		for i := range data[n*page : (n+1)*page] {
			data[n*page+i] = byte(i*7 + n)
		}
		broken := filepath.Join(t.TempDir(), "furl.db")
		if err := os.WriteFile(broken, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := sqlite.Open(broken, nil)
		if err != nil {
			if !strings.Contains(err.Error(), broken) {
				t.Errorf("page %d: %v does not name the file", n, err)
			}
			found++
			continue
		}
		seq := furl.Seq(0)
		for r, err := range s.Read(context.Background(), key("s"), 0) {
			if err != nil {
				tells(t, err, s, "damaged")
				break
			}
			if seq++; r.Seq != seq || r.At != records[seq-1].At {
				t.Fatalf("page %d: record %d is %+v", n, seq, r)
			}
		}
		for _, err := range s.Check(context.Background(), false) {
			found++
			if err != nil && !errors.Is(err, furl.ErrDamaged) {
				t.Errorf("page %d: check: %v, want ErrDamaged", n, err)
			}
			break
		}
		if err := s.Close(); err != nil && !errors.Is(err, furl.ErrDamaged) {
			t.Errorf("page %d: close: %v", n, err)
		}
	}
	if pages := len(whole) / page / 3; found < pages*9/10 {
		t.Errorf("of %d damaged pages %d were found", pages, found)
	}
}

// A file that is removed while it is open accepts no appends, which would be
// lost with it; after it is put back, it does.
func TestFileTakenAway(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // it does not let an open file be moved
	}
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "furl.db")
	s := openAt(t, path, nil)
	defer closeStore(t, s)
	records := some(4)
	put(t, s, "s", records[:2])
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	next := storage.Batch{Records: records[2:3]}
	tells(t, s.Append(ctx, key("s"), next), s, "deleted or replaced")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tells(t, s.Append(ctx, key("s"), next), s, "deleted or replaced")
	for _, err := range s.Read(ctx, key("s"), 0) {
		tells(t, err, s, "deleted or replaced")
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(ctx, key("s"), next); err != nil {
		t.Fatal(err)
	}
	if n := count(t, s, "s"); n != 3 {
		t.Errorf("%d records, want 3", n)
	}
}

// A write waits for a lock of another process, and the error names the lock.
func TestLockedByAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "furl.db")
	s := openAt(t, path, &sqlite.Options{LockTimeout: 50 * time.Millisecond})
	defer closeStore(t, s)
	put(t, s, "s", some(1))
	other := child(t, "lock", path)
	other.line(t) // it has the lock
	next := storage.Batch{Records: some(2)[1:]}
	tells(t, s.Append(context.Background(), key("s"), next), s, "another process has locked the file")
	if n := count(t, s, "s"); n != 1 {
		t.Errorf("%d records read during the lock, want 1", n)
	}
	other.stop(t)
	if err := s.Append(context.Background(), key("s"), next); err != nil {
		t.Errorf("after the lock: %v", err)
	}
	sound(t, s)
}

// An append of another process is seen by watchers and by the next append.
func TestAnotherProcessAppends(t *testing.T) {
	path := filepath.Join(t.TempDir(), "furl.db")
	s := openAt(t, path, &sqlite.Options{Poll: 5 * time.Millisecond})
	defer closeStore(t, s)
	put(t, s, "s", some(1))
	ctx := t.Context()
	ch, err := s.Watch(ctx, key("s"))
	if err != nil {
		t.Fatal(err)
	}
	other := child(t, "append", path)
	other.line(t) // it has appended record 2
	select {
	case <-ch:
	case <-time.After(20 * time.Second):
		t.Error("a watcher was not notified of another process's append")
	}
	other.stop(t)
	if err := s.Append(ctx, key("s"), storage.Batch{Records: []furl.Record{{Seq: 2, Body: &furl.Head{}}}}); !errors.Is(err, furl.ErrConflict) {
		t.Errorf("an append after another process's append: %v, want ErrConflict", err)
	}
	put(t, s, "s", some(3)[2:])
	if n := count(t, s, "s"); n != 3 {
		t.Errorf("%d records, want 3", n)
	}
}
