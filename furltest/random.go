package furltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/storage"
)

// testRandom applies the same random operations to the store and to the model
// and compares the results. All runs share a store, each with its own
// tenants.
func (s *suite) testRandom(t *testing.T) {
	st, reopen := s.lasting(t)
	var runs atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{st: st, inmem: inmem.New(), run: runs.Add(1)}
		actions := map[string]func(*rapid.T){
			"":         m.compareLast,
			"append":   m.append,
			"append 2": m.append,
			"old":      m.appendOld,
			"meta":     m.meta,
			"match":    m.match,
			"reopen": func(rt *rapid.T) {
				if rapid.IntRange(0, 3).Draw(rt, "now") == 0 { // it is slow
					st = reopen()
					m.st = st
				}
			},
		}
		if _, ok := st.(storage.Searchable); ok {
			actions["index"] = m.index
		}
		if _, ok := st.(storage.VectorStore); ok {
			actions["vectors"] = m.vectors
		}
		if _, ok := st.(storage.Deleter); ok {
			actions["delete"] = m.delete
		}
		rt.Repeat(actions)
		m.compare(rt)
	})
	clean(t, st)
}

// model is one random run.
type model struct {
	st    storage.Store
	inmem *inmem.Store
	run   int64
	last  furl.SessionKey // of the last operation
}

var (
	someIDs     = []furl.SessionID{"a", "b", "ab"}
	someBuckets = []uint32{0, 1, 1 << 31}
)

func (m *model) key(t *rapid.T) furl.SessionKey {
	m.last = furl.SessionKey{Tenant: m.tenant(t), Session: rapid.SampledFrom(someIDs).Draw(t, "session")}
	return m.last
}

func (m *model) tenant(t *rapid.T) furl.Tenant {
	return m.tenants()[rapid.IntRange(0, 1).Draw(t, "tenant")]
}

func (m *model) tenants() []furl.Tenant {
	return []furl.Tenant{furl.Tenant(fmt.Sprint("run ", m.run)), furl.Tenant(fmt.Sprintf("run %d\x00", m.run))}
}

// both applies an operation to the store and to the model; both must return
// the same.
func (m *model) both(t *rapid.T, what string, do func(storage.Store) error) {
	t.Helper()
	got, want := do(m.st), do(m.inmem)
	if kindOf(got) != kindOf(want) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

// kindOf returns the kind of an error, as far as callers can distinguish it.
func kindOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, furl.ErrConflict):
		return "conflict"
	case errors.Is(err, storage.ErrNoSession):
		return "no session"
	default:
		return "another"
	}
}

// has is the number of records of a session in the model.
func (m *model) has(k furl.SessionKey) furl.Seq {
	for i := range m.inmem.Sessions(context.Background(), k.Tenant, storage.SessionQuery{Prefix: string(k.Session)}) {
		if i.SessionKey == k {
			return i.Records
		}
	}
	return 0
}

// some are n records from seq on, of a few different contents, so that places
// repeat.
func some(t *rapid.T, seq furl.Seq, n int) []furl.Record {
	var records []furl.Record
	for i := range furl.Seq(n) {
		r := furl.Record{Seq: seq + i, Parent: seq + i - 1}
		about := rapid.IntRange(0, 3).Draw(t, "about")
		switch {
		case about == 3:
			r.Body = &furl.Exchange{Model: "m"}
		default:
			size := rapid.SampledFrom([]int{1, 40, 40, 900, 900, 5000}).Draw(t, "size")
			r.Body = message(fmt.Sprint(about, " ", seq+i, longText(size)))
			r.Chain = furl.DigestOf([]byte{byte(about)})
		}
		records = append(records, r)
	}
	return records
}

// longText is n bytes of varied text.
func longText(n int) string { return varied()[:n] }

var varied = sync.OnceValue(func() string {
	var b []byte
	for i := 0; len(b) < 9000; i++ {
		b = fmt.Appendf(b, " %x", i*2654435761)
	}
	return string(b)
})

func (m *model) append(t *rapid.T) {
	k := m.key(t)
	b := storage.Batch{Records: some(t, m.has(k)+1, rapid.IntRange(1, 4).Draw(t, "records"))}
	if rapid.Bool().Draw(t, "with meta") {
		b.Meta = &storage.Meta{Title: rapid.StringN(0, 10, -1).Draw(t, "title"), Hint: rapid.SampledFrom([]string{"", "h", "i"}).Draw(t, "hint")}
	}
	m.both(t, "append", func(st storage.Store) error { return st.Append(context.Background(), k, b) })
	if rapid.IntRange(0, 3).Draw(t, "reply lost") == 0 {
		m.both(t, "append again", func(st storage.Store) error { return st.Append(context.Background(), k, b) })
	}
}

// appendOld appends at a place that may be taken, or beyond the end.
func (m *model) appendOld(t *rapid.T) {
	k := m.key(t)
	at := furl.Seq(rapid.IntRange(1, int(m.has(k))+2).Draw(t, "at"))
	b := storage.Batch{Records: some(t, at, rapid.IntRange(1, 2).Draw(t, "records"))}
	m.both(t, "append in an odd place", func(st storage.Store) error { return st.Append(context.Background(), k, b) })
}

func (m *model) meta(t *rapid.T) {
	k := m.key(t)
	b := storage.Batch{Meta: &storage.Meta{Title: "t", Settings: map[string]string{"k": rapid.StringN(0, 5, -1).Draw(t, "value")}}}
	m.both(t, "meta", func(st storage.Store) error { return st.Append(context.Background(), k, b) })
}

func (m *model) match(t *rapid.T) {
	tenant := m.tenant(t)
	chains := []furl.Digest{furl.DigestOf([]byte{0}), furl.DigestOf([]byte{1}), {}, {1}}[rapid.IntRange(0, 1).Draw(t, "from"):]
	limit := rapid.IntRange(0, 8).Draw(t, "limit")
	got, err := m.st.Match(context.Background(), tenant, chains, limit)
	want, _ := m.inmem.Match(context.Background(), tenant, chains, limit) // it cannot fail
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("matched %v, %v; want %v", got, err, want)
	}
}

func (m *model) index(t *rapid.T) {
	k := m.key(t)
	cursor, _ := m.inmem.Indexed(context.Background(), k) // no session: 0
	w := storage.IndexWrite{
		After:   cursor,
		To:      furl.Seq(rapid.IntRange(0, int(m.has(k))+1).Draw(t, "to")),
		DropAll: rapid.IntRange(0, 5).Draw(t, "drop all") == 0,
		Drop:    rapid.SliceOfN(rapid.Uint64Range(0, 3), 0, 2).Draw(t, "drop"),
	}
	if rapid.IntRange(0, 5).Draw(t, "stale") == 0 {
		w.After++
	}
	for range rapid.IntRange(0, 3).Draw(t, "puts") {
		data := longText(rapid.SampledFrom([]int{0, 10, 5000}).Draw(t, "size"))
		w.Put = append(w.Put, page(rapid.SampledFrom(someBuckets).Draw(t, "bucket"), rapid.Uint64Range(0, 3).Draw(t, "segment"), data))
	}
	m.both(t, "write index", func(st storage.Store) error { return st.(storage.Searchable).WriteIndex(context.Background(), k, w) })
}

func (m *model) vectors(t *rapid.T) {
	k := m.key(t)
	var v []storage.Vector
	for range rapid.IntRange(0, 3).Draw(t, "vectors") {
		content := furl.Digest{rapid.Byte().Draw(t, "content") % 4}
		v = append(v, storage.Vector{Content: content, Data: []byte{content[0], 1, 2}})
	}
	name := rapid.SampledFrom([]string{"m", "n"}).Draw(t, "model")
	m.both(t, "put vectors", func(st storage.Store) error {
		return st.(storage.VectorStore).PutVectors(context.Background(), k, name, v)
	})
}

func (m *model) delete(t *rapid.T) {
	k := m.key(t)
	m.both(t, "delete", func(st storage.Store) error { return st.(storage.Deleter).Delete(context.Background(), k) })
}

// compareLast compares the session of the last operation with the model.
func (m *model) compareLast(t *rapid.T) {
	if m.last.Session != "" {
		has := m.has(m.last)
		m.compareSession(t, m.last, has-min(has, 3))
		m.compareList(t, m.last.Tenant, storage.SessionQuery{})
	}
}

// compare compares everything readable with the model.
func (m *model) compare(t *rapid.T) {
	for _, tenant := range m.tenants() {
		for _, q := range []storage.SessionQuery{{}, {Prefix: "a"}, {Hint: "h"}, {Limit: 1}} {
			m.compareList(t, tenant, q)
		}
		for _, id := range someIDs {
			m.compareSession(t, furl.SessionKey{Tenant: tenant, Session: id}, 0)
		}
		m.compareIndex(t, tenant)
		m.compareVectors(t, tenant)
	}
}

func (m *model) compareList(t *rapid.T, tenant furl.Tenant, q storage.SessionQuery) {
	got, want := describe(t, m.st.Sessions(context.Background(), tenant, q)), describe(t, m.inmem.Sessions(context.Background(), tenant, q))
	if !slices.Equal(got, want) {
		t.Fatalf("sessions by %+v:\n%q, want\n%q", q, got, want)
	}
}

func (m *model) compareSession(t *rapid.T, k furl.SessionKey, after furl.Seq) {
	got, gotErr := gather(m.st.Read(context.Background(), k, after))
	want, wantErr := gather(m.inmem.Read(context.Background(), k, after))
	if kindOf(gotErr) != kindOf(wantErr) {
		t.Fatalf("read %q after %d: %v, want %v", k, after, gotErr, wantErr)
	}
	same(t, k, got, want)
}

func describe(t tb, seq func(func(storage.SessionInfo, error) bool)) []string {
	t.Helper()
	var all []string
	for _, i := range collect(t, seq) {
		all = append(all, fmt.Sprintf("%q %q %q %v records %d messages %d bytes %d", i.Session, i.Title, i.Hint, i.Settings, i.Records, i.Messages, i.Bytes))
	}
	return all
}

func (m *model) compareIndex(t *rapid.T, tenant furl.Tenant) {
	st, ok := m.st.(storage.Searchable)
	if !ok {
		return
	}
	ctx := context.Background()
	sorted := func(s []string) []string { slices.Sort(s); return s }
	got, want := sorted(describe(t, st.Unindexed(ctx, tenant))), sorted(describe(t, m.inmem.Unindexed(ctx, tenant)))
	if !slices.Equal(got, want) {
		t.Fatalf("sessions to index: %q, want %q", got, want)
	}
	for _, bucket := range someBuckets {
		for _, id := range append(someIDs, "") {
			k := furl.SessionKey{Tenant: tenant, Session: id}
			got, want := pages(t, st, k, bucket), pages(t, m.inmem, k, bucket)
			if id == "" {
				grouped(t, got)
				slices.Sort(got)
				slices.Sort(want)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("pages of %q, bucket %d: %q, want %q", k, bucket, got, want)
			}
		}
	}
	for _, id := range someIDs {
		k := furl.SessionKey{Tenant: tenant, Session: id}
		got, gotErr := st.Indexed(ctx, k)
		want, wantErr := m.inmem.Indexed(ctx, k)
		if got != want || kindOf(gotErr) != kindOf(wantErr) {
			t.Fatalf("the cursor of %q is at %d, %v; want %d, %v", k, got, gotErr, want, wantErr)
		}
	}
}

func (m *model) compareVectors(t *rapid.T, tenant furl.Tenant) {
	st, ok := m.st.(storage.VectorStore)
	if !ok {
		return
	}
	ctx := context.Background()
	list := func(st storage.VectorStore, k furl.SessionKey) (all []string) {
		for v, err := range st.Vectors(ctx, k, "m") {
			if err != nil {
				t.Fatalf("vectors: %v", err)
			}
			all = append(all, fmt.Sprintf("%x %x", v.Content[:1], v.Data))
		}
		return all
	}
	for _, id := range append(someIDs, "") {
		k := furl.SessionKey{Tenant: tenant, Session: id}
		if got, want := list(st, k), list(m.inmem, k); !slices.Equal(got, want) {
			t.Fatalf("vectors of %q: %q, want %q", k, got, want)
		}
	}
	contents := []furl.Digest{{0}, {1}, {2}, {3}, {4}}
	got, err := st.FindVectors(ctx, tenant, "n", contents)
	want, _ := m.inmem.FindVectors(ctx, tenant, "n", contents) // it cannot fail
	if err != nil || len(got) != len(want) {
		t.Fatalf("found %d vectors, %v; want %d", len(got), err, len(want))
	}
}
