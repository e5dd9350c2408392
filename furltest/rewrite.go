package furltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
)

// rewritten returns a record with other texts, its digests unchanged.
func rewritten(r furl.Record, text string) furl.Record {
	m := *r.Body.(*furl.Message)
	m.Raw = fmt.Appendf(nil, `{"role":%q,"content":%q}`, m.Role, text)
	m.Blocks = []furl.Block{{Kind: furl.KindText, Text: text}}
	r.Body = &m
	return r
}

// A rewrite replaces records, contents and metadata, all or nothing, and what was
// derived from them is dropped. Nothing else changes.
func (s *suite) testRewrite(t *testing.T) {
	st, reopen := s.lasting(t)
	rw, ok := st.(storage.Rewriter)
	if !ok {
		return
	}
	ctx := context.Background()
	records := say(1, 6, "a")
	long := rewritten(records[3], strings.Repeat("a long text, stored apart. ", 4000))
	records[3].Body = long.Body
	records[4] = rewritten(records[4], "as before")
	keep, drop, fresh := []byte("kept"), []byte("dropped"), []byte("fresh")
	meta := storage.Meta{Title: "before"}
	batch := storage.Batch{Records: records, Meta: &meta, Contents: [][]byte{keep, drop}}
	must(t, st.Append(ctx, key("a"), batch))
	must(t, st.Append(ctx, key("b"), batch))

	must(t, rw.Rewrite(ctx, key("b"), storage.Rewrite{Records: 6})) // nothing
	same := func(id string, want []furl.Record, title string, contents ...[]byte) {
		t.Helper()
		got := collect(t, st.Read(ctx, key(id), 0))
		if !slices.EqualFunc(got, want, equalRecords) {
			t.Errorf("session %s has %d records, or others than expected", id, len(got))
		}
		info := collect(t, st.Sessions(ctx, key(id).Tenant, storage.SessionQuery{Prefix: id}))
		if len(info) != 1 || info[0].Title != title || int(info[0].Records) != len(want) {
			t.Errorf("session %s is %+v", id, info)
		}
		ids, err := st.(storage.Rewriter).ContentIDs(ctx, key(id))
		if err != nil || len(ids) != len(contents) {
			t.Errorf("session %s has %d contents, %v; want %d", id, len(ids), err, len(contents))
		}
		for _, c := range contents {
			got, err := st.(storage.ContentStore).Content(ctx, key(id), furl.DigestOf(c))
			if err != nil || !bytes.Equal(got, c) || !slices.Contains(ids, furl.DigestOf(c)) {
				t.Errorf("session %s: content %q is %q, %v", id, c, got, err)
			}
		}
	}
	same("b", records, "before", keep, drop)

	// What does not fit changes nothing.
	put := []furl.Record{rewritten(records[0], "after"), rewritten(records[3], "short now")}
	after := storage.Meta{Title: "after"}
	notYet := storage.Meta{Title: "not yet"}
	for name, w := range map[string]storage.Rewrite{
		"other number of records": {Records: 5, Put: put},
		"other metadata":          {Records: 6, Put: put, Meta: &after, MetaWas: &notYet},
	} {
		if err := rw.Rewrite(ctx, key("a"), w); !errors.Is(err, furl.ErrConflict) {
			t.Errorf("%s: %v, want a conflict", name, err)
		}
	}
	exchange := furl.Record{Seq: 2, Parent: 1, Body: &furl.Exchange{Model: "m"}}
	if err := rw.Rewrite(ctx, key("a"), storage.Rewrite{Records: 6, Put: []furl.Record{put[0], exchange}}); err == nil {
		t.Error("a message was replaced by an exchange")
	}
	if err := rw.Rewrite(ctx, key("none"), storage.Rewrite{}); !errors.Is(err, storage.ErrNoSession) {
		t.Errorf("a session that does not exist: %v", err)
	}
	if _, err := rw.ContentIDs(ctx, key("none")); !errors.Is(err, storage.ErrNoSession) {
		t.Errorf("contents of a session that does not exist: %v", err)
	}
	same("a", records, "before", keep, drop)

	if index, ok := st.(storage.Searchable); ok {
		must(t, index.WriteIndex(ctx, key("a"), storage.IndexWrite{To: 6, Put: []storage.IndexPage{{Bucket: 1, Segment: 1, Data: []byte("page")}}}))
	}
	must(t, rw.Rewrite(ctx, key("a"), storage.Rewrite{Records: 6, Put: put, DropContents: []furl.Digest{furl.DigestOf(drop)},
		Contents: [][]byte{fresh}, Meta: &after, MetaWas: &meta}))
	must(t, rw.Scrub(ctx))
	want := slices.Clone(records)
	want[0], want[3] = put[0], put[1]
	for range 2 {
		same("a", want, "after", keep, fresh)
		same("b", records, "before", keep, drop)
		var chain furl.Digest
		for _, r := range records {
			if !r.Chain.IsZero() {
				chain = r.Chain
			}
		}
		if found, err := st.Match(ctx, key("a").Tenant, []furl.Digest{chain}, 10); err != nil || len(found) < 2 {
			t.Errorf("matched %v, %v", found, err)
		}
		if index, ok := st.(storage.Searchable); ok {
			at, err := index.Indexed(ctx, key("a"))
			if pages := collect(t, index.Pages(ctx, key("a"), 1)); err != nil || at != 0 || len(pages) != 0 {
				t.Errorf("indexed up to %d with %d pages, %v", at, len(pages), err)
			}
		}
		if c, ok := st.(storage.Checker); ok {
			for p, err := range c.Check(ctx, false) {
				t.Errorf("check: %+v, %v", p, err)
			}
		}
		st = reopen()
	}
	must(t, st.Append(ctx, key("a"), storage.Batch{Records: say(7, 1, "a")}))
}

func equalRecords(x, y furl.Record) bool {
	head, body, err := record.Encode(x)
	head2, body2, err2 := record.Encode(y)
	return err == nil && err2 == nil && bytes.Equal(head, head2) && bytes.Equal(body, body2)
}

// The keys of tenants are stored by compare-and-swap, apart from sessions.
func (s *suite) testKeys(t *testing.T) {
	st, reopen := s.lasting(t)
	if _, ok := st.(storage.KeyStore); !ok {
		return
	}
	ctx := context.Background()
	const one, two = furl.Tenant("tenant one"), furl.Tenant("tenant two")
	keys := func(tenant furl.Tenant) []byte {
		t.Helper()
		data, err := st.(storage.KeyStore).TenantKeys(ctx, tenant)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	set := func(tenant furl.Tenant, was, is string) error {
		bytesOf := func(s string) []byte {
			if s == "" {
				return nil
			}
			return []byte(s)
		}
		return st.(storage.KeyStore).SetTenantKeys(ctx, tenant, bytesOf(was), bytesOf(is))
	}
	if keys(one) != nil {
		t.Error("a tenant without keys has some")
	}
	must(t, set(one, "", "first"))
	must(t, set(two, "", "of two"))
	for _, was := range []string{"", "other"} {
		if err := set(one, was, "second"); !errors.Is(err, furl.ErrConflict) {
			t.Errorf("replaced keys that are not %q: %v", was, err)
		}
	}
	must(t, set(one, "first", "second"))
	st = reopen()
	if got := keys(one); string(got) != "second" {
		t.Errorf("the keys are %q", got)
	}
	list := func(want ...furl.Tenant) {
		t.Helper()
		if got, err := st.(storage.KeyStore).KeyTenants(ctx); err != nil || !slices.Equal(got, want) {
			t.Errorf("tenants with keys: %q, %v; want %q", got, err, want)
		}
	}
	list(one, two)
	must(t, set(one, "second", ""))
	if keys(one) != nil {
		t.Error("removed keys are still there")
	}
	list(two)
	must(t, set(one, "", "again"))
}
