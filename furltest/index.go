package furltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

func page(bucket uint32, segment uint64, data string) storage.IndexPage {
	return storage.IndexPage{Bucket: bucket, Segment: segment, Data: []byte(data)}
}

// pages lists the pages of a bucket as text, those of each session in order.
func pages(t tb, st storage.Searchable, k furl.SessionKey, bucket uint32) []string {
	t.Helper()
	var got []string
	for p, err := range st.Pages(context.Background(), k, bucket) {
		if err != nil {
			t.Fatalf("pages of bucket %d: %v", bucket, err)
		}
		if p.Bucket != bucket {
			t.Errorf("a page of bucket %d among those of %d", p.Bucket, bucket)
		}
		got = append(got, fmt.Sprintf("%s %d %s", p.Session, p.Segment, p.Data))
	}
	return got
}

// Pages are stored by bucket, session and segment, together with the cursor.
func (s *suite) testIndex(t *testing.T) {
	st, reopen := s.lasting(t)
	index, ok := st.(storage.Searchable)
	if !ok {
		return
	}
	ctx := context.Background()
	for _, id := range []string{"a", "b"} {
		appendAll(t, st, key(id), say(1, 9, id), 9)
	}
	appendAll(t, st, furl.SessionKey{Tenant: "other", Session: "a"}, say(1, 1, "a"), 1)
	write := func(id string, w storage.IndexWrite) {
		t.Helper()
		must(t, index.WriteIndex(ctx, key(id), w))
	}
	write("a", storage.IndexWrite{To: 3, Put: []storage.IndexPage{page(7, 2, "a-7-2"), page(7, 1, "a-7-1"), page(8, 1, "a-8-1"), page(1<<32-1, 1<<63-1, "max")}})
	write("b", storage.IndexWrite{To: 9, Put: []storage.IndexPage{page(7, 5, "b-7-5"), page(0, 0, "")}})
	must(t, index.WriteIndex(ctx, furl.SessionKey{Tenant: "other", Session: "a"}, storage.IndexWrite{To: 1, Put: []storage.IndexPage{page(7, 1, "other's")}}))
	cursor := func(id string, want furl.Seq) {
		t.Helper()
		if got, err := index.Indexed(ctx, key(id)); err != nil || got != want {
			t.Errorf("the cursor of %s is at %d, %v; want %d", id, got, err, want)
		}
	}
	same := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	sorted := func(k furl.SessionKey, bucket uint32) []string {
		got := pages(t, index, k, bucket)
		grouped(t, got)
		slices.Sort(got)
		return got
	}
	cursor("a", 3)
	cursor("b", 9)
	same("one session", pages(t, index, key("a"), 7), "a 1 a-7-1", "a 2 a-7-2")
	same("the tenant", sorted(furl.SessionKey{}, 7), "a 1 a-7-1", "a 2 a-7-2", "b 5 b-7-5")
	same("an empty page", pages(t, index, key("b"), 0), "b 0 ")
	same("the largest numbers", pages(t, index, key("a"), 1<<32-1), "a 9223372036854775807 max")
	same("an unknown bucket", pages(t, index, key("a"), 9))
	same("an unknown session", pages(t, index, key("none"), 7))
	same("an unknown tenant", pages(t, index, furl.SessionKey{Tenant: "x"}, 7))

	// Drops are applied before puts; a put replaces an existing page.
	write("a", storage.IndexWrite{After: 3, To: 5, Drop: []uint64{1, 77}, Put: []storage.IndexPage{page(7, 1, "new"), page(7, 2, "replaced")}})
	st = reopen()
	index = st.(storage.Searchable)
	cursor("a", 5)
	same("after a drop", pages(t, index, key("a"), 7), "a 1 new", "a 2 replaced")
	same("the dropped segment's other bucket", pages(t, index, key("a"), 8))
	same("another session", pages(t, index, key("b"), 7), "b 5 b-7-5")
	unindexed := collect(t, index.Unindexed(ctx, ""))
	if len(unindexed) != 1 || unindexed[0].Session != "a" || unindexed[0].Records != 9 {
		t.Errorf("sessions to index: %+v, want session a", unindexed)
	}
	appendAll(t, st, key("b"), say(10, 1, "b"), 1)
	if unindexed := collect(t, index.Unindexed(ctx, "")); len(unindexed) != 2 {
		t.Errorf("%d sessions to index after an append, want 2", len(unindexed))
	}

	// The whole index is rebuilt.
	write("a", storage.IndexWrite{After: 4, To: 9, DropAll: true, Put: []storage.IndexPage{page(8, 3, "rebuilt")}})
	cursor("a", 9)
	same("after dropping all", pages(t, index, key("a"), 7))
	same("after dropping all, the new", pages(t, index, key("a"), 8), "a 3 rebuilt")
	same("after dropping all, the tenant", pages(t, index, furl.SessionKey{}, 7), "b 5 b-7-5")
	write("a", storage.IndexWrite{To: 0, DropAll: true})
	cursor("a", 0)

	big := bytes.Repeat([]byte{0, 1, 2, 255}, 100_000)
	write("a", storage.IndexWrite{To: 1, Put: []storage.IndexPage{{Bucket: 1, Segment: 1, Data: big}}})
	for p, err := range index.Pages(ctx, key("a"), 1) {
		if err != nil || !bytes.Equal(p.Data, big) {
			t.Errorf("a page of %d bytes was read with %d, %v", len(big), len(p.Data), err)
		}
	}
}

// grouped fails the test if pages of one session are not adjacent.
func grouped(t tb, got []string) {
	t.Helper()
	seen, last := make(map[string]bool), ""
	for _, line := range got {
		var id string
		_, _ = fmt.Sscan(line, &id) // every line has a session
		if id != last && seen[id] {
			t.Errorf("the pages of session %s are not together: %q", id, got)
		}
		seen[id], last = true, id
	}
}

// Only one of several concurrent writers can move a cursor.
func (s *suite) testIndexConflict(t *testing.T) {
	st := s.store(t)
	index, ok := st.(storage.Searchable)
	if !ok {
		return
	}
	ctx := context.Background()
	appendAll(t, st, key("s"), say(1, 4, "a"), 4)
	must(t, index.WriteIndex(ctx, key("s"), storage.IndexWrite{To: 2, Put: []storage.IndexPage{page(1, 1, "kept")}}))
	put := []storage.IndexPage{page(1, 2, "lost")}
	for _, after := range []furl.Seq{0, 1, 3} {
		w := storage.IndexWrite{After: after, To: 4, Drop: []uint64{1}, Put: put}
		if err := index.WriteIndex(ctx, key("s"), w); !errors.Is(err, furl.ErrConflict) {
			t.Errorf("a write after %d where the cursor is at 2: %v, want ErrConflict", after, err)
		}
	}
	if err := index.WriteIndex(ctx, key("s"), storage.IndexWrite{After: 2, To: 5, Put: put}); err == nil {
		t.Error("the cursor moved beyond the newest record")
	}
	if got := pages(t, index, key("s"), 1); !slices.Equal(got, []string{"s 1 kept"}) {
		t.Errorf("refused writes left %q", got)
	}
	if got, err := index.Indexed(ctx, key("s")); got != 2 || err != nil {
		t.Errorf("refused writes left the cursor at %d, %v", got, err)
	}
	for name, err := range map[string]error{
		"cursor": func() error { _, err := index.Indexed(ctx, key("none")); return err }(),
		"write":  index.WriteIndex(ctx, key("none"), storage.IndexWrite{Put: put}),
	} {
		if !errors.Is(err, storage.ErrNoSession) {
			t.Errorf("%s of an unknown session: %v, want ErrNoSession", name, err)
		}
	}
}

// Vectors are stored by content, once for all sessions of a tenant.
func (s *suite) testVectors(t *testing.T) {
	st, reopen := s.lasting(t)
	store, ok := st.(storage.VectorStore)
	if !ok {
		return
	}
	ctx := context.Background()
	other := furl.SessionKey{Tenant: "other", Session: "a"}
	for _, k := range []furl.SessionKey{key("a"), key("b"), other} {
		appendAll(t, st, k, say(1, 1, "a"), 1)
	}
	vector := func(first byte, data string) storage.Vector {
		return storage.Vector{Content: furl.Digest{first, 31: 1}, Data: []byte(data)}
	}
	must(t, store.PutVectors(ctx, key("a"), "m", []storage.Vector{vector(3, "three"), vector(1, "one"), vector(1, "one again")}))
	must(t, store.PutVectors(ctx, key("b"), "m", []storage.Vector{vector(2, "two"), vector(1, "other one")}))
	must(t, store.PutVectors(ctx, key("a"), "m\x00", []storage.Vector{vector(1, "another model")}))
	must(t, store.PutVectors(ctx, other, "m", []storage.Vector{vector(1, "other's")}))
	must(t, store.PutVectors(ctx, key("a"), "m", nil))
	st = reopen()
	store = st.(storage.VectorStore)
	list := func(vectors []storage.Vector) []string {
		var got []string
		for _, v := range vectors {
			got = append(got, fmt.Sprintf("%d %s", v.Content[0], v.Data))
		}
		return got
	}
	all := func(k furl.SessionKey, model string) (got []string) {
		for v, err := range store.Vectors(ctx, k, model) {
			must(t, err)
			got = append(got, list([]storage.Vector{v})...)
		}
		return got
	}
	for _, tt := range []struct {
		key   furl.SessionKey
		model string
		want  []string
	}{
		{key("a"), "m", []string{"1 one", "3 three"}},
		{key("b"), "m", []string{"1 one", "2 two"}},
		{furl.SessionKey{}, "m", []string{"1 one", "2 two", "3 three"}},
		{key("a"), "m\x00", []string{"1 another model"}},
		{key("b"), "m\x00", nil},
		{other, "m", []string{"1 other's"}},
		{key("none"), "m", nil},
		{key("a"), "", nil},
	} {
		if got := all(tt.key, tt.model); !slices.Equal(got, tt.want) {
			t.Errorf("vectors of %q by %q: %q, want %q", tt.key, tt.model, got, tt.want)
		}
	}
	contents := append(manyDigests(2000), vector(2, "").Content, vector(3, "").Content, vector(2, "").Content)
	found, err := store.FindVectors(ctx, "", "m", contents)
	must(t, err)
	got := list(found)
	slices.Sort(got)
	if want := []string{"2 two", "3 three"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if found, err := store.FindVectors(ctx, "nobody", "m", contents); err != nil || len(found) != 0 {
		t.Errorf("unknown tenant: %d vectors, %v", len(found), err)
	}
	if err := store.PutVectors(ctx, key("none"), "m", []storage.Vector{vector(1, "x")}); !errors.Is(err, storage.ErrNoSession) {
		t.Errorf("vectors of an unknown session: %v, want ErrNoSession", err)
	}
}
