package furltest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

func (s *suite) testRead(t *testing.T) {
	st := s.store(t)
	ctx := context.Background()
	records := say(1, 5, "a")
	appendAll(t, st, key("s"), records, 5)
	appendAll(t, st, key("s2"), say(1, 3, "b"), 3)
	for after := range furl.Seq(8) {
		got := collect(t, st.Read(ctx, key("s"), after))
		want := records[min(int(after), len(records)):]
		if diff := cmp.Diff(want, got, cmp.Transformer("stored", func(r furl.Record) string { return stored(t, r) })); diff != "" && len(want)+len(got) > 0 {
			t.Errorf("read after %d (-want +got):\n%s", after, diff)
		}
	}
	for _, after := range []furl.Seq{1<<63 - 1, 1<<64 - 1} {
		if got := collect(t, st.Read(ctx, key("s"), after)); len(got) != 0 {
			t.Errorf("read after %d returned %d records", after, len(got))
		}
	}
	for _, id := range []string{"none", "", "s\x00", "%", "a/b"} {
		if _, err := gather(st.Read(ctx, key(id), 0)); !errors.Is(err, storage.ErrNoSession) {
			t.Errorf("read session %q: %v, want ErrNoSession", id, err)
		}
	}
	// A reader may change the records it received without affecting the
	// store.
	for r := range st.Read(ctx, key("s"), 0) {
		clear(r.Body.(*furl.Message).Raw)
	}
	holds(t, st, key("s"), records)
	// A reader may stop early, and a sequence can be read twice.
	seq := st.Read(ctx, key("s"), 2)
	for range seq {
		break
	}
	if got := collect(t, seq); len(got) != 3 {
		t.Errorf("the second read of a sequence returned %d records, want 3", len(got))
	}
}

// ReadInfo returns what Sessions and Read return, also for records that are larger than
// what a store reads at once.
func (s *suite) testReadInfo(t *testing.T) {
	st := s.store(t)
	ctx := context.Background()
	records := append(say(1, 3, "a"), say(4, 1, strings.Repeat("a long text ", 100_000))...)
	records = append(records, say(5, 300, "b")...)
	appendAll(t, st, key("s"), records, 100)
	appendAll(t, st, key("s2"), say(1, 3, "b"), 3)
	for _, after := range []furl.Seq{0, 2, 3, 4, 303, 304, 305, 1<<64 - 1} {
		info, seq, err := storage.ReadInfo(ctx, st, key("s"), after)
		if err != nil {
			t.Fatalf("read after %d: %v", after, err)
		}
		for want, err := range st.Sessions(ctx, "", storage.SessionQuery{Prefix: "s", Limit: 2}) {
			if diff := cmp.Diff(want, info); want.Session == "s" && diff != "" || err != nil {
				t.Errorf("the description after %d (-want +got): %v\n%s", after, err, diff)
			}
		}
		for range 2 { // a sequence can be read twice
			got, want := collect(t, seq), records[min(after, furl.Seq(len(records))):]
			if diff := cmp.Diff(want, got, cmp.Transformer("stored", func(r furl.Record) string { return stored(t, r) })); diff != "" && len(want)+len(got) > 0 {
				t.Errorf("read after %d (-want +got):\n%.2000s", after, diff)
			}
		}
	}
	for _, id := range []string{"none", "", "s\x00"} {
		if _, _, err := storage.ReadInfo(ctx, st, key(id), 0); !errors.Is(err, storage.ErrNoSession) {
			t.Errorf("read session %q: %v, want ErrNoSession", id, err)
		}
	}
}

// A reader sees the records that existed at its start, even if it appends
// meanwhile.
func (s *suite) testSnapshot(t *testing.T) {
	st := s.store(t)
	ctx := context.Background()
	const n = 700
	appendAll(t, st, key("s"), say(1, n, "a"), n)
	next, read := furl.Seq(n+1), 0
	for r, err := range st.Read(ctx, key("s"), 0) {
		must(t, err)
		if read++; r.Seq != furl.Seq(read) {
			t.Fatalf("record %d was read as number %d", r.Seq, read)
		}
		if read%100 == 1 {
			appendAll(t, st, key("s"), say(next, 3, "a"), 3)
			next += 3
		}
	}
	if read != n {
		t.Errorf("read %d records, want the %d that existed at the start", read, n)
	}
	holds(t, st, key("s"), say(1, int(next)-1, "a"))
}

// Sequences can be read within sequences, more deeply than a store has
// connections.
func (s *suite) testNested(t *testing.T) {
	st := s.store(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, id := range []string{"a", "b", "c"} {
		appendAll(t, st, key(id), say(1, 3, id), 3)
	}
	var nest func(depth int) int
	nest = func(depth int) (n int) {
		for r, err := range st.Read(ctx, key("a"), 1) {
			must(t, err)
			if depth > 0 && r.Seq == 2 {
				n += nest(depth - 1)
			}
			n++
		}
		return n
	}
	if got := nest(40); got != 2*41 {
		t.Errorf("nested reads returned %d records, want %d", got, 2*41)
	}
	sessions := 0
	for i, err := range st.Sessions(ctx, "", storage.SessionQuery{}) {
		must(t, err)
		sessions++
		appendAll(t, st, i.SessionKey, say(i.Records+1, 1, "more"), 1)
		if got := collect(t, st.Read(ctx, i.SessionKey, 0)); len(got) != 4 {
			t.Errorf("session %s has %d records, want 4", i.Session, len(got))
		}
	}
	if sessions != 3 {
		t.Errorf("%d sessions while appending to them, want 3", sessions)
	}
}

// Texts of any kind are stored byte for byte.
func (s *suite) testHostile(t *testing.T) {
	st, reopen := s.lasting(t)
	ctx := context.Background()
	texts := []string{
		"\x00", "a\x00b", "'; DROP TABLE records; --", "%s%n", "\u202e\u0000\ufeff", strings.Repeat("\\\"", 500), "\xff\xfe\xfd", "\ud7ff\ue000\U0010ffff", "",
	}
	var records []furl.Record
	add := func(body furl.Body) {
		n := furl.Seq(len(records))
		records = append(records, furl.Record{Seq: n + 1, Parent: n, Body: body, By: furl.Actor(n % 5)})
	}
	for _, text := range texts {
		add(&furl.Message{Role: furl.RoleUser, Format: furl.FormatAnthropic, Raw: []byte(text), Blocks: []furl.Block{{Text: text, ID: text, Name: text}}})
		add(furl.TextMessage(furl.Role(text), text))
		add(&furl.Exchange{Model: text, ResponseID: text, Plan: []furl.PlanStep{{Stage: text, Before: -1}}})
		add(&furl.Reduction{Stage: text, Reason: text, Summary: &furl.Summary{Text: text}, Items: []furl.Item{{Show: furl.In{Text: text}}}})
	}
	records[1].At = time.Date(-4000, 1, 1, 0, 0, 0, 1, time.UTC)
	records[2].At = time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.FixedZone("", -12*3600))
	ids := []string{".a", "a..", "a-", "_", "CON", "a", "A", strings.Repeat("x", 128), "0", "1e5"}
	for _, id := range ids {
		appendAll(t, st, key(id), records, len(records))
	}
	// Ids with a special meaning on the command line are refused.
	for _, id := range []string{".", "..", "-", "-h", "--yes", "latest", "Latest"} {
		if err := st.Append(ctx, key(id), storage.Batch{Records: records[:1]}); err == nil {
			t.Errorf("the store accepted the session id %s", id)
		}
	}
	st = reopen()
	for _, id := range ids {
		holds(t, st, key(id), records)
	}
	if got := collect(t, st.Sessions(ctx, "", storage.SessionQuery{})); len(got) != len(ids) {
		t.Errorf("%d sessions, want %d: ids that differ are different sessions", len(got), len(ids))
	}
	// The metadata too; invalid UTF-8 becomes U+FFFD.
	for i, text := range texts {
		m := storage.Meta{Title: text, Hint: text, Client: text, Settings: map[string]string{text: text}}
		must(t, st.Append(ctx, key("a"), storage.Batch{Meta: &m}))
		want := text
		if i == 6 {
			want = "\ufffd\ufffd\ufffd"
		}
		got := info(t, st, key("a"))
		if got.Title != want || got.Hint != want || got.Settings[want] != want {
			t.Errorf("the metadata %q was read as %+v", text, got.Meta)
		}
		if want == "" {
			continue
		}
		if found := collect(t, st.Sessions(ctx, "", storage.SessionQuery{Hint: want})); len(found) != 1 || found[0].Session != "a" {
			t.Errorf("by the hint %q: %d sessions, want the one", want, len(found))
		}
	}
}

// Large messages are stored, together with small ones.
func (s *suite) testHuge(t *testing.T) {
	st := s.store(t)
	// Its start differs from all of its lines: the race detector makes
	// searching for one long text in another quadratic if its start recurs.
	big := "~!" + strings.Repeat("0123456789abcdefghijklmnopqrstuvwxyz\n", s.HugeBytes/37)
	records := say(1, 3, "a")
	records[1].Body = message(big)
	k := key("s")
	appendAll(t, st, k, records, 3)
	holds(t, st, k, records)
	if got := info(t, st, k); got.Bytes < int64(len(big)) {
		t.Errorf("the session has %d bytes, want more than %d", got.Bytes, len(big))
	}
	many := say(1, 3000, "many")
	appendAll(t, st, key("many"), many, len(many))
	holds(t, st, key("many"), many)
}

// An operation with a cancelled context has no effect and returns an error.
func (s *suite) testCancelled(t *testing.T) {
	st := s.store(t)
	appendAll(t, st, key("s"), say(1, 400, "a"), 400)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n := 0
	var last error
	for _, err := range st.Read(ctx, key("s"), 0) {
		if last = err; err == nil {
			n++
		}
		if n == 3 {
			cancel()
		}
	}
	if !errors.Is(last, context.Canceled) || n >= 400 {
		t.Errorf("a read cancelled at the third record returned %d records and %v, want Canceled", n, last)
	}
	_, readErr := gather(st.Read(ctx, key("s"), 0))
	_, matchErr := st.Match(ctx, "", []furl.Digest{{1}}, 1)
	_, listErr := gather(st.Sessions(ctx, "", storage.SessionQuery{}))
	for name, err := range map[string]error{
		"append":   st.Append(ctx, key("s"), storage.Batch{Records: say(401, 1, "a")}),
		"read":     readErr,
		"match":    matchErr,
		"sessions": listErr,
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s under a cancelled context: %v, want Canceled", name, err)
		}
	}
	holds(t, st, key("s"), say(1, 400, "a"))
}

// A closed store refuses operations with an error, and can be closed again.
func (s *suite) testClosed(t *testing.T) {
	st := s.open(t)
	ctx := context.Background()
	appendAll(t, st, key("s"), say(1, 1, "a"), 1)
	must(t, storage.Ping(ctx, st))
	must(t, st.Close())
	if err := storage.Ping(ctx, st); err == nil {
		t.Error("pinged a closed store")
	}
	if err := st.Append(ctx, key("s"), storage.Batch{Records: say(2, 1, "a")}); err == nil {
		t.Error("appended to a closed store")
	}
	if _, err := gather(st.Read(ctx, key("s"), 0)); err == nil {
		t.Error("read from a closed store")
	}
	if _, err := gather(st.Sessions(ctx, "", storage.SessionQuery{})); err == nil {
		t.Error("listed the sessions of a closed store")
	}
	if err := st.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
}
