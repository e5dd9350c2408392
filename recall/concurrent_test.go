package recall

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/storage"
)

// While some processes index and others append, a search finds the records that
// were appended before it. In the end the index is that of a single process.
func TestIndexersAtOnce(t *testing.T) {
	const sessions, messages = 3, 60
	store := inmem.New()
	key := func(n int) furl.SessionKey { return furl.SessionKey{Session: furl.SessionID(fmt.Sprint("s", n))} }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var indexers, writers sync.WaitGroup
	for range 3 {
		x := NewIndexer(store, nil)
		x.maxRecords = 3
		indexers.Go(func() {
			for ctx.Err() == nil {
				if err := x.CatchupTenant(ctx, ""); err != nil && ctx.Err() == nil {
					t.Errorf("index: %v", err)
				}
			}
		})
	}
	all := make([][]furl.Record, sessions)
	for n := range sessions {
		v := wordMaker{rand.New(rand.NewPCG(uint64(n), 21))}
		writers.Go(func() {
			s := NewSearcher(store, nil)
			for i := range messages {
				m := furl.TextMessage(furl.RoleUser, fmt.Sprintf("%s unique_%d_%d", v.text(20), n, i))
				r := furl.Record{Seq: furl.Seq(i + 1), Parent: furl.Seq(i), At: begun.Add(time.Duration(i) * time.Second), Body: m}
				if err := store.Append(t.Context(), key(n), storage.Batch{Records: []furl.Record{r}}); err != nil {
					t.Error(err)
					return
				}
				all[n] = append(all[n], r)
				req := Request{Text: fmt.Sprintf("unique_%d_%d", n, i)}
				if i%2 == 0 {
					req.Session = key(n).Session
				}
				res, err := s.Search(t.Context(), req)
				if err != nil || len(res.Hits) == 0 || res.Hits[0].Pos.Msg != r.Seq || res.Hits[0].Session != key(n).Session || len(res.Warnings) > 0 {
					t.Errorf("%+v: %+v, %v", req, res, err)
				}
			}
		})
	}
	writers.Wait()
	cancel()
	indexers.Wait()
	fresh := inmem.New()
	for n := range sessions {
		put(t, fresh, key(n), all[n])
		if err := NewIndexer(store, nil).Catchup(t.Context(), key(n)); err != nil {
			t.Error(err)
		}
	}
	req := Request{Text: "store session unique_1", Limit: 50}
	if d := cmp.Diff(search(t, NewSearcher(fresh, nil), req), search(t, NewSearcher(store, nil), req)); d != "" {
		t.Error(d)
	}
}

// Of several processes that extend a session, the one that has appended last indexes it. What
// no process indexes is found at the interval, but not while it is being extended.
func TestLastProcessIndexes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := inmem.New()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		var all [2]*Indexer
		for i := range all {
			all[i] = NewIndexer(store, &IndexerOptions{Interval: time.Minute, Gather: time.Second})
			go func() { done <- all[i].Run(ctx) }()
		}
		synctest.Wait()
		v := wordMaker{rand.New(rand.NewPCG(1, 23))}
		key := furl.SessionKey{Session: "a"}
		indexed := func() furl.Seq {
			synctest.Wait()
			n, _ := store.Indexed(t.Context(), key) // 0: no session
			return n
		}
		put(t, store, key, randomSession(v, 5))
		n := lastOf(t, store, key)
		all[0].Touch(key, n-1, 1<<20) // as if the other process had appended the last record
		time.Sleep(time.Second)
		if got := indexed(); got != 0 {
			t.Errorf("indexed up to %d by a process that has not appended last", got)
		}
		all[1].Touch(key, n, 1<<20)
		time.Sleep(time.Second)
		if got := indexed(); got != n {
			t.Errorf("indexed up to %d by the process that has appended last, want %d", got, n)
		}
		key.Session = "b"
		time.Sleep(45 * time.Second)
		put(t, store, key, randomSession(v, 5))
		time.Sleep(15 * time.Second)
		if got := indexed(); got != 0 {
			t.Errorf("indexed up to %d while it may be extended", got)
		}
		time.Sleep(time.Minute)
		if got, want := indexed(), lastOf(t, store, key); got != want {
			t.Errorf("indexed up to %d after the interval, want %d", got, want)
		}
		cancel()
		for range all {
			<-done
		}
	})
}

// lastOf is the number of records of a session.
func lastOf(t *testing.T, store storage.Store, key furl.SessionKey) (last furl.Seq) {
	t.Helper()
	for r, err := range store.Read(t.Context(), key, 0) {
		if err != nil {
			t.Fatal(err)
		}
		last = r.Seq
	}
	return last
}

// Run indexes records some time after a Touch, and other records at its
// interval.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := inmem.New()
		x := NewIndexer(store, &IndexerOptions{Interval: time.Minute, Gather: time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- x.Run(ctx) }()
		synctest.Wait()
		v := wordMaker{rand.New(rand.NewPCG(1, 22))}
		indexed := func(key furl.SessionKey) bool {
			synctest.Wait()
			n, err := store.Indexed(t.Context(), key)
			return err == nil && n > 0
		}
		told := furl.SessionKey{Tenant: "told", Session: "a"}
		put(t, store, told, randomSession(v, 5))
		x.Touch(told, 1<<20, 1<<20)
		if indexed(told) {
			t.Error("indexed before more could come")
		}
		time.Sleep(time.Second)
		if !indexed(told) {
			t.Error("a session Run was told of is not indexed")
		}
		other := furl.SessionKey{Session: "b"}
		put(t, store, other, randomSession(v, 5))
		if indexed(other) {
			t.Error("indexed before the interval")
		}
		time.Sleep(time.Minute)
		if !indexed(other) {
			t.Error("not indexed after the interval")
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run ends with %v", err)
		}
	})
}
