package furltest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// patience is how long a watcher may wait for a value before the test fails.
const patience = 20 * time.Second

// Every append sends a value; the end of the context closes the channel.
func (s *suite) testWatch(t *testing.T) {
	st := s.store(t)
	watcher, ok := st.(storage.Watcher)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	appendAll(t, st, key("a"), say(1, 1, "a"), 1)
	one, err := watcher.Watch(ctx, key("a"))
	must(t, err)
	all, err := watcher.Watch(ctx, furl.SessionKey{})
	must(t, err)
	later, err := watcher.Watch(ctx, key("not-yet"))
	must(t, err)
	for i := furl.Seq(2); i < 6; i++ {
		appendAll(t, st, key("a"), say(i, 1, "a"), 1)
		wait(t, one, "a watcher of the session")
		wait(t, all, "a watcher of the tenant")
	}
	appendAll(t, st, key("not-yet"), say(1, 1, "a"), 1)
	wait(t, later, "a watcher of a session that did not exist")
	wait(t, all, "a watcher of the tenant")

	// A reader that reads after each value sees all records.
	go func() {
		for i := furl.Seq(6); i < 100; i++ {
			must(failing{t}, st.Append(context.WithoutCancel(ctx), key("a"), storage.Batch{Records: say(i, 1, "a")}))
		}
	}()
	for cursor := furl.Seq(5); cursor < 99; {
		wait(t, one, "a watcher that follows")
		for _, r := range collect(t, st.Read(ctx, key("a"), cursor)) {
			cursor = r.Seq
		}
	}
	cancel()
	for name, ch := range map[string]<-chan struct{}{"session": one, "tenant": all, "new session": later} {
		for open := true; open; {
			select {
			case _, open = <-ch:
			case <-time.After(patience):
				t.Fatalf("the channel of the %s is open after the context's end", name)
			}
		}
	}
	if _, err := watcher.Watch(ctx, key("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("watch under a cancelled context: %v, want Canceled", err)
	}
}

func wait(t *testing.T, ch <-chan struct{}, who string) {
	t.Helper()
	select {
	case _, ok := <-ch:
		if !ok {
			t.Fatalf("the channel of %s was closed", who)
		}
	case <-time.After(patience):
		t.Fatalf("%s received no value", who)
	}
}

// Deleting removes a whole session and does not affect others.
func (s *suite) testDelete(t *testing.T) {
	st, reopen := s.lasting(t)
	deleter, ok := st.(storage.Deleter)
	if !ok {
		return
	}
	ctx := context.Background()
	long := Session(SessionOptions{Seed: 4, Messages: 40, MessageBytes: 6000})
	other := furl.SessionKey{Tenant: "other", Session: "a"}
	keys := []furl.SessionKey{key("a"), key("b"), other}
	content := furl.Digest{7}
	for _, k := range keys {
		appendAll(t, st, k, long, 10)
		if index, ok := st.(storage.Searchable); ok {
			must(t, index.WriteIndex(ctx, k, storage.IndexWrite{To: 3, Put: []storage.IndexPage{page(1, 1, "words")}}))
		}
		if vectors, ok := st.(storage.VectorStore); ok {
			must(t, vectors.PutVectors(ctx, k, "m", []storage.Vector{{Content: content, Data: []byte("v")}}))
		}
	}
	must(t, deleter.Delete(ctx, key("a")))
	gone := func(k furl.SessionKey) {
		t.Helper()
		if _, err := gather(st.Read(ctx, k, 0)); !errors.Is(err, storage.ErrNoSession) {
			t.Errorf("read after the delete: %v, want ErrNoSession", err)
		}
		if err := deleter.Delete(ctx, k); !errors.Is(err, storage.ErrNoSession) {
			t.Errorf("delete again: %v, want ErrNoSession", err)
		}
		for _, i := range collect(t, st.Sessions(ctx, k.Tenant, storage.SessionQuery{})) {
			if i.SessionKey == k {
				t.Errorf("session %s is still listed", k.Session)
			}
		}
		if index, ok := st.(storage.Searchable); ok {
			if got := pages(t, index, k, 1); len(got) != 0 {
				t.Errorf("the index still has %q", got)
			}
		}
		if vectors, ok := st.(storage.VectorStore); ok {
			if got := collect(t, vectors.Vectors(ctx, k, "m")); len(got) != 0 {
				t.Errorf("%d vectors are left", len(got))
			}
		}
	}
	gone(key("a"))
	st = reopen()
	deleter = st.(storage.Deleter)
	gone(key("a"))
	chain := []furl.Digest{long[0].Chain}
	for _, k := range keys[1:] {
		holds(t, st, k, long)
		if index, ok := st.(storage.Searchable); ok {
			if got := pages(t, index, k, 1); !slices.Equal(got, []string{string(k.Session) + " 1 words"}) {
				t.Errorf("the index of session %q has %q", k, got)
			}
		}
		matched, err := st.Match(ctx, k.Tenant, chain, 10)
		if err != nil || len(matched) != 1 || matched[0].Session != k.Session {
			t.Errorf("tenant %q: matched %v, %v; want the session that is left", k.Tenant, matched, err)
		}
		if vectors, ok := st.(storage.VectorStore); ok {
			if found, err := vectors.FindVectors(ctx, k.Tenant, "m", []furl.Digest{content}); err != nil || len(found) != 1 {
				t.Errorf("tenant %q has %d vectors, %v; want the one that session %s holds", k.Tenant, len(found), err, k.Session)
			}
		}
	}
	// The id can be used for a new session.
	appendAll(t, st, key("a"), say(1, 2, "new"), 2)
	holds(t, st, key("a"), say(1, 2, "new"))
	if index, ok := st.(storage.Searchable); ok {
		if got, err := index.Indexed(ctx, key("a")); got != 0 || err != nil {
			t.Errorf("the cursor of the new session is at %d, %v; want 0", got, err)
		}
	}
	for _, k := range keys {
		must(t, deleter.Delete(ctx, k))
	}
	if vectors, ok := st.(storage.VectorStore); ok {
		if found, err := vectors.FindVectors(ctx, "", "m", []furl.Digest{content}); err != nil || len(found) != 0 {
			t.Errorf("%d vectors are left of deleted sessions, %v", len(found), err)
		}
	}
	if checker, ok := st.(storage.Checker); ok {
		stats, err := checker.Stats(ctx)
		if err != nil || stats.Sessions != 0 || stats.Records != 0 || stats.Messages != 0 || stats.MessageBytes != 0 {
			t.Errorf("after deleting everything the store has %+v, %v", stats, err)
		}
	}
}

// A check of an undamaged store finds no problems, and Stats returns its
// sizes.
func (s *suite) testCheck(t *testing.T) {
	st := s.store(t)
	checker, ok := st.(storage.Checker)
	if !ok {
		return
	}
	ctx := context.Background()
	records := Session(SessionOptions{Seed: 5, Messages: 30, Exchanges: true, MessageBytes: 3000})
	var messages, size int64
	for _, r := range records {
		if m, ok := r.Body.(*furl.Message); ok {
			messages, size = messages+1, size+int64(m.Bytes())
		}
	}
	for _, id := range []string{"a", "b"} {
		appendAll(t, st, key(id), records, 9)
	}
	if index, ok := st.(storage.Searchable); ok {
		must(t, index.WriteIndex(ctx, key("a"), storage.IndexWrite{To: 3, Put: []storage.IndexPage{page(1, 1, "words")}}))
	}
	clean(t, st)
	stats, err := checker.Stats(ctx)
	must(t, err)
	if stats.Sessions != 2 || stats.Records != 2*int64(len(records)) || stats.Messages != 2*messages || stats.MessageBytes != 2*size {
		t.Errorf("the store has %+v, want 2 sessions of %d records, %d messages, %d bytes", stats, len(records), messages, size)
	}
	if stats.Format < 1 || stats.Place == "" || stats.Total < stats.Bodies+stats.Index || stats.Bodies == 0 {
		t.Errorf("sizes and place are %+v", stats)
	}
}

// clean fails the test if a check finds a problem.
func clean(t tb, st storage.Store) {
	t.Helper()
	checker, ok := st.(storage.Checker)
	if !ok {
		return
	}
	for _, mend := range []bool{false, true} {
		for _, p := range collect(t, checker.Check(context.Background(), mend)) {
			t.Errorf("check (mend %v) found: %+v", mend, p)
		}
	}
}
