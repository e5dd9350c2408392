package recall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/storage"
)

// pagesOf collects the pages of a session.
func pagesOf(t testing.TB, s storage.Searchable, key furl.SessionKey) []storage.IndexPage {
	t.Helper()
	var all []storage.IndexPage
	for bucket := range firstTermBucket(maxLevel + 1) {
		for p, err := range s.Pages(t.Context(), key, bucket) {
			if err != nil {
				t.Fatal(err)
			}
			p.Data = slices.Clone(p.Data)
			all = append(all, p)
		}
	}
	return all
}

// Whatever happens to a page, searches have the same hits as before: the index of
// the session is rebuilt, and the search returns a warning.
func TestDamagedPages(t *testing.T) {
	v := wordMaker{rand.New(rand.NewPCG(5, 5))}
	store := inmem.New()
	key := furl.SessionKey{Session: "s"}
	put(t, store, key, randomSession(v, 300))
	x := NewIndexer(store, nil)
	if err := x.Catchup(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	s := NewSearcher(store, nil)
	req := Request{Session: "s", Text: "sessi store", Limit: 50}
	want := search(t, s, req)
	if len(want) != 50 {
		t.Fatalf("%d hits", len(want))
	}
	cursor, _ := store.Indexed(t.Context(), key)
	warned := 0
	for i, page := range pagesOf(t, store, key) {
		if i%7 != 0 && page.Bucket >= bucketTerms {
			continue
		}
		switch v.IntN(4) {
		case 0:
			page.Data[v.IntN(len(page.Data))] ^= 1 << v.IntN(8)
		case 1:
			page.Data = page.Data[:v.IntN(len(page.Data))]
		case 2:
			page.Data = nil
		case 3:
			page.Data[0]++ // of a later version
		}
		// A write that leaves the cursor where it is.
		if err := store.WriteIndex(t.Context(), key, storage.IndexWrite{After: cursor, To: cursor, Put: []storage.IndexPage{page}}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			res, err := s.Search(t.Context(), req)
			if err != nil {
				t.Fatalf("bucket %d: %v", page.Bucket, err)
			}
			if d := cmp.Diff(want, res.Hits); d != "" {
				t.Fatalf("bucket %d: %s", page.Bucket, d)
			}
			if len(res.Warnings) > 0 && res.Warnings[0].Code == WarnIndex {
				warned++
			}
		}
		// The indexer or the next merge would find damage that the search did
		// not read.
		if err := x.Rebuild(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	if warned < 4 {
		t.Errorf("%d searches met a damaged page", warned)
	}
}

// frozen is a store whose index cannot be written.
type frozen struct{ *inmem.Store }

func (frozen) WriteIndex(context.Context, furl.SessionKey, storage.IndexWrite) error {
	return errors.New("read-only")
}

// Pages of another version are rebuilt without a warning, those of any number of
// sessions in one search. In a read-only store searches have the same hits, and
// a warning.
func TestOtherVersion(t *testing.T) {
	v := wordMaker{rand.New(rand.NewPCG(9, 9))}
	store := inmem.New()
	const sessions = 2 * maxStale
	for n := range sessions {
		put(t, store, furl.SessionKey{Session: furl.SessionID(fmt.Sprint("s", n))}, randomSession(v, 40))
	}
	if err := NewIndexer(store, nil).CatchupTenant(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	requests := []Request{{Text: "log of store_token", Limit: 30}, {Text: "tok", Limit: 30}, {Session: "s3", Text: "store", Limit: 30}}
	var want [][]Hit
	for _, req := range requests {
		want = append(want, search(t, NewSearcher(store, nil), req))
	}
	for n := range sessions {
		key := furl.SessionKey{Session: furl.SessionID(fmt.Sprint("s", n))}
		cursor, _ := store.Indexed(t.Context(), key)
		pages := pagesOf(t, store, key)
		for i := range pages {
			pages[i].Data[0]--
		}
		if err := store.WriteIndex(t.Context(), key, storage.IndexWrite{After: cursor, To: cursor, Put: pages}); err != nil {
			t.Fatal(err)
		}
	}
	for i, req := range requests {
		res, err := NewSearcher(frozen{store}, nil).Search(t.Context(), req)
		if err != nil || len(res.Warnings) == 0 || res.Warnings[0].Code != WarnIndex {
			t.Errorf("read-only, %q: %v, %+v", req.Text, err, res)
			continue
		}
		if d := cmp.Diff(want[i], res.Hits); d != "" {
			t.Errorf("read-only, %q: %s", req.Text, d)
		}
	}
	for i, req := range requests {
		if d := cmp.Diff(want[i], search(t, NewSearcher(store, nil), req)); d != "" {
			t.Errorf("%q: %s", req.Text, d)
		}
	}
}

// An indexer rebuilds damaged pages that it has to merge, and pages that do not
// fit the cursor.
func TestIndexerMends(t *testing.T) {
	for name, harm := range map[string]func(p *storage.IndexPage) storage.IndexWrite{
		"flipped": func(p *storage.IndexPage) storage.IndexWrite {
			p.Data[len(p.Data)-1] ^= 1
			return storage.IndexWrite{Put: []storage.IndexPage{*p}}
		},
		"gone": func(p *storage.IndexPage) storage.IndexWrite { return storage.IndexWrite{Drop: []uint64{p.Segment}} },
		"strange": func(p *storage.IndexPage) storage.IndexWrite {
			return storage.IndexWrite{Put: []storage.IndexPage{{Bucket: bucketHead, Segment: p.Segment + 1, Data: p.Data}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := wordMaker{rand.New(rand.NewPCG(6, 6))}
			store := inmem.New()
			key := furl.SessionKey{Session: "s"}
			records := randomSession(v, 120)
			put(t, store, key, records[:100])
			x := NewIndexer(store, nil)
			if err := x.Catchup(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			pages := pagesOf(t, store, key)
			w := harm(&pages[0])
			w.After, w.To = 100, 100
			if err := store.WriteIndex(t.Context(), key, w); err != nil {
				t.Fatal(err)
			}
			put(t, store, key, records[100:])
			if err := x.Catchup(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			fresh := inmem.New()
			put(t, fresh, key, records)
			req := Request{Session: "s", Text: "log of store_token", Limit: 30}
			if d := cmp.Diff(search(t, NewSearcher(fresh, nil), req), search(t, NewSearcher(store, nil), req)); d != "" {
				t.Error(d)
			}
		})
	}
}

// No bytes make the readers of pages panic or return documents that do not exist.
func FuzzPages(f *testing.F) {
	v := wordMaker{rand.New(rand.NewPCG(8, 8))}
	store := inmem.New()
	key := furl.SessionKey{Session: "s"}
	put(f, store, key, randomSession(v, 150))
	if err := NewIndexer(store, nil).Catchup(f.Context(), key); err != nil {
		f.Fatal(err)
	}
	for i, p := range pagesOf(f, store, key) {
		if i < 8 {
			f.Add(p.Data[pageHeader:], uint16(300))
		}
	}
	f.Add([]byte{0, 0}, uint16(1))
	f.Fuzz(func(t *testing.T, payload []byte, docs uint16) {
		if seg, err := decodeHead(payload, 7); err == nil {
			if lens, err := seg.appendLengths(nil); err == nil && len(lens) != seg.docs {
				t.Errorf("%d lengths of %d documents", len(lens), seg.docs)
			}
		}
		if d, err := decodeDocuments(payload, int(docs)); err == nil && len(d) != int(docs) {
			t.Errorf("%d documents, want %d", len(d), docs)
		}
		for level := range uint8(maxLevel + 1) {
			bucket := firstTermBucket(level)
			read := func() termReader { return newTermReader(payload, level, bucket, int(docs)) }
			lists := make(map[termHash]postings)
			e := read()
			for e.next() {
				n := 0
				for doc := range e.list.each {
					if doc >= uint32(docs) {
						t.Fatalf("document %d of %d", doc, docs)
					}
					n++
				}
				if n != int(e.list.docs) {
					t.Errorf("%d documents of %d", n, e.list.docs)
				}
				lists[e.hash] = e.list
			}
			for hash, want := range lists {
				one := read()
				if got, ok := one.find(hash); ok && !bytes.Equal(got.buf, want.buf) || !ok && e.err == nil {
					t.Errorf("term %x: found %v %v, want %v", hash, got, ok, want)
				}
			}
		}
		terms := func(base uint32) termReader {
			return segmentTerms(&segment{terms: payload, docs: int(docs)}, base)
		}
		if joined, err := mergeTerms([]termReader{terms(0), terms(uint32(docs))}); err == nil {
			again := segmentTerms(&segment{terms: joined, docs: 2 * int(docs)}, 0)
			for again.next() {
			}
			if again.err != nil {
				t.Errorf("joined terms: %v", again.err)
			}
		}
		r := vocabularyReader{buf: payload}
		if _, err := r.containing([]string{"abc", "b"}); err == nil {
			if _, err := newGramFilters(payload); err != nil {
				t.Error(err)
			}
		}
		mayContain(payload, []uint32{1, 2})
		_, _ = pagePayload(&storage.IndexPage{Data: payload})
	})
}
