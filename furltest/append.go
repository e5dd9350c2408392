package furltest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Appended records are read back unchanged, in batches of any size, also
// after reopening.
func (s *suite) testAppend(t *testing.T) {
	st, reopen := s.lasting(t)
	records := Session(SessionOptions{Seed: 1, Messages: 120, Exchanges: true, Reductions: true})
	for i, n := range []int{1, 7, len(records)} {
		k := key("session-" + string(rune('a'+i)))
		appendAll(t, st, k, records, n)
		holds(t, st, k, records)
	}
	st = reopen()
	for _, id := range []string{"session-a", "session-b", "session-c"} {
		holds(t, st, key(id), records)
	}
	more := say(furl.Seq(len(records))+1, 2, "later")
	appendAll(t, st, key("session-b"), more, 2)
	holds(t, st, key("session-b"), append(records[:len(records):len(records)], more...))
	holds(t, st, key("session-c"), records)
}

// Appending the same batch again succeeds and changes nothing, so that an
// append whose response was lost can be repeated.
func (s *suite) testRepeated(t *testing.T) {
	st, reopen := s.lasting(t)
	ctx := context.Background()
	k := key("s")
	records := say(1, 6, "a")
	must(t, st.Append(ctx, k, storage.Batch{Records: records[:3], Meta: &storage.Meta{Title: "first"}}))
	must(t, st.Append(ctx, k, storage.Batch{Records: records[:3], Meta: &storage.Meta{Title: "again"}}))
	if got := info(t, st, k); got.Title != "first" || got.Records != 3 || got.Messages != 3 {
		t.Errorf("after a repetition the session is %+v, want 3 records and the first title", got)
	}
	must(t, st.Append(ctx, k, storage.Batch{Records: records[3:]}))
	st = reopen()
	before := info(t, st, k)
	for _, part := range [][]furl.Record{records, records[:1], records[2:5], records[5:]} {
		if err := st.Append(ctx, k, storage.Batch{Records: part}); err != nil {
			t.Errorf("records %d to %d again: %v", part[0].Seq, part[len(part)-1].Seq, err)
		}
	}
	holds(t, st, k, records)
	if diff := cmp.Diff(before, info(t, st, k)); diff != "" {
		t.Errorf("repetitions changed the session's metadata:\n%s", diff)
	}
}

// committed is called when an append is visible, and never for a refused one.
func (s *suite) testEarly(t *testing.T) {
	st, reopen := s.lasting(t)
	early, ok := st.(storage.EarlyAppender)
	if !ok {
		return // it acknowledges when it commits
	}
	t.Run("at once", func(t *testing.T) { s.testCommitted(t, st, reopen, early.AppendEarly) })
	if _, ok := st.(storage.Stager); !ok {
		return
	}
	st, reopen = s.lasting(t)
	stager := st.(storage.Stager)
	t.Run("staged", func(t *testing.T) {
		s.testCommitted(t, st, reopen, func(ctx context.Context, k furl.SessionKey, b storage.Batch, committed func()) error {
			discarded := b
			discarded.Records = say(b.Records[0].Seq, 1, "discarded")
			if _, err := stager.Stage(context.Background(), k, discarded); err != nil {
				t.Error(err)
			}
			staged, err := stager.Stage(context.Background(), k, b)
			if err != nil {
				return err
			}
			return staged.Append(ctx, committed)
		})
		if _, err := stager.Stage(context.Background(), key("latest"), storage.Batch{Records: say(1, 1, "a")}); err == nil {
			t.Error("a batch for a reserved id was staged")
		}
	})
}

func (s *suite) testCommitted(t *testing.T, st storage.Store, reopen func() storage.Store, appendEarly func(context.Context, furl.SessionKey, storage.Batch, func()) error) {
	ctx := context.Background()
	k := key("s")
	records := say(1, 4, "a")
	for _, tt := range []struct {
		what    string
		records []furl.Record
		has     int // records at that time; 0: a conflict
	}{
		{"the first two", records[:2], 2}, {"two more", records[2:], 4}, {"a repetition", records[1:3], 4},
		{"a conflict", say(2, 1, "b"), 0}, {"a gap", say(6, 1, "a"), 0},
	} {
		called := 0
		err := appendEarly(ctx, k, storage.Batch{Records: tt.records}, func() {
			called++
			holds(t, st, k, records[:tt.has])
		})
		switch {
		case tt.has > 0 && (err != nil || called != 1):
			t.Errorf("%s: %v, committed called %d times", tt.what, err, called)
		case tt.has == 0 && (!errors.Is(err, furl.ErrConflict) || called != 0):
			t.Errorf("%s: %v, committed called %d times, want a conflict and no call", tt.what, err, called)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := appendEarly(ended, k, storage.Batch{Records: say(5, 1, "a")}, func() { t.Error("committed called for a cancelled append") }); err == nil {
		t.Error("an append with a cancelled context must fail")
	}
	holds(t, reopen(), k, records)
}

// An append that does not continue the session is a conflict and changes
// nothing.
func (s *suite) testRefused(t *testing.T) {
	st := s.store(t)
	ctx := context.Background()
	k := key("s")
	records := say(1, 4, "a")
	must(t, st.Append(ctx, k, storage.Batch{Records: records, Meta: &storage.Meta{Title: "kept"}}))
	changed := say(3, 1, "a")
	changed[0].At = changed[0].At.Add(time.Nanosecond)
	otherBody := say(4, 1, "b")
	otherBody[0].Chain = records[3].Chain
	for _, tt := range []struct {
		name    string
		records []furl.Record
	}{
		{"another record in the same place", say(4, 1, "b")},
		{"the same head and another body", otherBody},
		{"another time", changed},
		{"the last again and one more", say(4, 2, "a")},
		{"one that exists and one that differs", append(say(3, 1, "a"), say(4, 1, "b")...)},
		{"a gap", say(6, 1, "a")},
		{"a gap in the batch", append(say(5, 1, "a"), say(7, 1, "a")...)},
	} {
		err := st.Append(ctx, k, storage.Batch{Records: tt.records, Meta: &storage.Meta{Title: "lost"}})
		if !errors.Is(err, furl.ErrConflict) {
			t.Errorf("%s: %v, want ErrConflict", tt.name, err)
		}
	}
	holds(t, st, k, records)
	if got := info(t, st, k); got.Title != "kept" || got.Records != 4 {
		t.Errorf("refused appends changed the session to %+v", got)
	}
	if err := st.Append(ctx, key("new"), storage.Batch{Records: say(2, 1, "a")}); !errors.Is(err, furl.ErrConflict) {
		t.Errorf("a session that begins with record 2: %v, want ErrConflict", err)
	}
	for name, b := range map[string]storage.Batch{
		"no number":                  {Records: []furl.Record{{Body: &furl.Head{}}}},
		"no body":                    {Records: []furl.Record{{Seq: 1}}},
		"a parent that is not below": {Records: []furl.Record{{Seq: 1, Parent: 1, Body: &furl.Head{}}}},
	} {
		if err := st.Append(ctx, key("new"), b); err == nil {
			t.Errorf("%s: appended, want an error", name)
		}
	}
	for _, id := range []string{"", "a/b", "a b", "ü", "a\x00", "..\\x", strings.Repeat("a", 129)} {
		if err := st.Append(ctx, key(id), storage.Batch{Records: say(1, 1, "a")}); err == nil {
			t.Errorf("session id %q: appended, want an error", id)
		}
	}
	if got := collect(t, st.Sessions(ctx, "", storage.SessionQuery{})); len(got) != 1 {
		t.Errorf("%d sessions after appends that were refused, want 1", len(got))
	}
}

// Metadata is replaced as a whole.
func (s *suite) testMeta(t *testing.T) {
	st, reopen := s.lasting(t)
	ctx := context.Background()
	k := key("s")
	if err := st.Append(ctx, k, storage.Batch{Meta: &storage.Meta{Title: "none"}}); !errors.Is(err, storage.ErrNoSession) {
		t.Errorf("metadata of an unknown session: %v, want ErrNoSession", err)
	}
	full := storage.Meta{
		Title: "a title", TitleBy: storage.TitleByPerson, Client: "codex", Hint: "h-1", Parent: "h-0", Project: "/a folder", Model: "m", Format: furl.FormatChat, Policy: "auto",
		Source: "a file", ForkOf: "other", ForkAt: 7, Window: 64_000, Windows: map[string]int{"m": 200_000}, Answered: map[string]int{"m": 215_000}, Settings: map[string]string{"b": "2", "a": "1", "": ""},
	}
	must(t, st.Append(ctx, k, storage.Batch{Records: say(1, 1, "a"), Meta: &full}))
	first := info(t, st, k)
	if diff := cmp.Diff(full, first.Meta); diff != "" {
		t.Errorf("the metadata has changed:\n%s", diff)
	}
	must(t, st.Append(ctx, k, storage.Batch{Records: say(2, 1, "a")}))
	st = reopen()
	if diff := cmp.Diff(full, info(t, st, k).Meta); diff != "" {
		t.Errorf("an append without meta changed it:\n%s", diff)
	}
	before := info(t, st, k).Updated
	must(t, st.Append(ctx, k, storage.Batch{Meta: &storage.Meta{Title: "new"}}))
	got := info(t, st, k)
	if diff := cmp.Diff(storage.Meta{Title: "new"}, got.Meta); diff != "" {
		t.Errorf("the meta was not replaced:\n%s", diff)
	}
	if !got.Updated.Equal(before) || !got.Created.Equal(first.Created) {
		t.Errorf("the meta moved the times: created %v, updated %v; were %v, %v", got.Created, got.Updated, first.Created, before)
	}
	must(t, st.Append(ctx, k, storage.Batch{}))
	if got := info(t, st, k); got.Title != "new" {
		t.Errorf("an empty batch changed the title to %q", got.Title)
	}
	s.testMetaWas(t, st)
}

// Metadata made from other metadata than the session's is a conflict, with records and
// without. The session keeps its own. Bytes of other versions do not count.
func (s *suite) testMetaWas(t *testing.T, st storage.Store) {
	ctx := context.Background()
	k := key("meta-was")
	odd := storage.Meta{Title: "a \xff b", Settings: map[string]string{"k": "1"}}
	must(t, st.Append(ctx, k, storage.Batch{Records: say(1, 1, "a"), Meta: &odd}))
	read := info(t, st, k).Meta
	next := storage.Meta{Title: "next"}
	for name, b := range map[string]storage.Batch{
		"metadata": {Meta: &next, MetaWas: &storage.Meta{Title: "other"}},
		"records":  {Records: say(2, 1, "b"), Meta: &next, MetaWas: &storage.Meta{Title: "other"}},
	} {
		if err := st.Append(ctx, k, b); !errors.Is(err, furl.ErrConflict) {
			t.Errorf("%s after other metadata: %v, want ErrConflict", name, err)
		}
	}
	if got := info(t, st, k); got.Records != 1 || !cmp.Equal(got.Meta, read) {
		t.Errorf("a conflict changed the session: %+v", got)
	}
	must(t, st.Append(ctx, k, storage.Batch{Records: say(2, 1, "b"), Meta: &next, MetaWas: &read}))
	must(t, st.Append(ctx, k, storage.Batch{Records: say(2, 1, "b"), Meta: &next, MetaWas: &read})) // repeated
	must(t, st.Append(ctx, k, storage.Batch{Meta: &odd, MetaWas: &next}))
	must(t, st.Append(ctx, k, storage.Batch{Meta: &odd, MetaWas: &next})) // repeated
	must(t, st.Append(ctx, k, storage.Batch{Records: say(3, 1, "c"), Meta: &next, MetaWas: &odd}))
	if got := info(t, st, k); got.Records != 3 || got.Title != "next" {
		t.Errorf("the session is %+v, want 3 records and the title next", got)
	}
}

// Tenants are isolated, whatever their names are.
func (s *suite) testTenants(t *testing.T) {
	st, reopen := s.lasting(t)
	ctx := context.Background()
	tenants := []furl.Tenant{"", "a", "A", "a\x00", "a%", "'; --", "\xff\xfe", furl.Tenant(strings.Repeat("t", 256))}
	for i, tenant := range tenants {
		k := furl.SessionKey{Tenant: tenant, Session: "s"}
		appendAll(t, st, k, say(1, i+1, "same words"), 1)
	}
	st = reopen()
	for i, tenant := range tenants {
		holds(t, st, furl.SessionKey{Tenant: tenant, Session: "s"}, say(1, i+1, "same words"))
		got := collect(t, st.Sessions(ctx, tenant, storage.SessionQuery{}))
		if len(got) != 1 || got[0].Tenant != tenant || int(got[0].Records) != i+1 {
			t.Errorf("tenant %q has the sessions %+v, want its own", tenant, got)
		}
		matched, err := st.Match(ctx, tenant, []furl.Digest{say(1, 1, "same words")[0].Chain}, 10)
		if err != nil || len(matched) != 1 {
			t.Errorf("tenant %q: matched %v, %v; want its own message", tenant, matched, err)
		}
	}
	if lister, ok := st.(storage.TenantLister); ok {
		deleter, ok := st.(storage.Deleter)
		if ok {
			must(t, deleter.Delete(ctx, furl.SessionKey{Tenant: "A", Session: "s"}))
			tenants = slices.DeleteFunc(tenants, func(tenant furl.Tenant) bool { return tenant == "A" })
		}
		slices.Sort(tenants)
		if got, err := lister.Tenants(ctx); err != nil || !slices.Equal(got, tenants) {
			t.Errorf("the tenants with sessions are %q, %v, want %q", got, err, tenants)
		}
	}
	if _, err := gather(st.Read(ctx, furl.SessionKey{Tenant: "b", Session: "s"}, 0)); !errors.Is(err, storage.ErrNoSession) {
		t.Errorf("another tenant's session: %v, want ErrNoSession", err)
	}
	long := furl.SessionKey{Tenant: furl.Tenant(strings.Repeat("t", 257)), Session: "s"}
	if err := st.Append(ctx, long, storage.Batch{Records: say(1, 1, "a")}); err == nil {
		t.Error("a tenant of 257 bytes: appended, want an error")
	}
}

// info finds a session in the list of sessions.
func info(t tb, st storage.Store, k furl.SessionKey) storage.SessionInfo {
	t.Helper()
	for _, i := range collect(t, st.Sessions(context.Background(), k.Tenant, storage.SessionQuery{Prefix: string(k.Session)})) {
		if i.SessionKey == k {
			return i
		}
	}
	t.Fatalf("session %s is not listed", k.Session)
	return storage.SessionInfo{}
}
