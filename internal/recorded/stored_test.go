package recorded_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/recorded"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/transcript"
)

// A store of another machine is joined without any loss, and again when it has more.
func TestStoresAreJoined(t *testing.T) {
	ctx := t.Context()
	file := filepath.Join(t.TempDir(), "other.db")
	other, err := sqlite.Open(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := transcript.Read("x", bytes.NewReader([]byte(`{"model":"claude-opus-4-6","messages":[{"role":"user","content":"one"},{"role":"assistant","content":"two"},{"role":"user","content":"three"}]}`)))
	if err != nil {
		t.Fatal(err)
	}
	im := &recorded.Importer{Store: other, Project: "/home/me/p"}
	line, err := im.Session(ctx, rec, rec.Sessions[0])
	if err != nil || line.Result != recorded.ImportedNew {
		t.Fatalf("%+v, %v", line, err)
	}
	key := furl.SessionKey{Session: line.Session}
	all := recordsOf(t, other, key)
	last := all[len(all)-1]
	pin := furl.Record{Seq: last.Seq + 1, Parent: last.Seq, At: last.At, By: furl.Person, Body: &furl.Restoration{Spans: []furl.Span{{First: furl.Pos{Msg: 1}, Last: furl.Pos{Msg: 1}}}, Hold: furl.Pin}}

	mine := inmem.New()
	join := func() (results []string) {
		for rec, err := range recorded.Stored(ctx, file, other) {
			if err != nil {
				t.Fatal(err)
			}
			line, err := (&recorded.Importer{Store: mine}).Session(ctx, rec, rec.Sessions[0])
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, line.Result)
		}
		return results
	}
	if got := join(); !slices.Equal(got, []string{recorded.ImportedNew}) {
		t.Errorf("the first time: %v", got)
	}
	if err := other.Append(ctx, key, storage.Batch{Records: []furl.Record{pin}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{recorded.ImportedMore, recorded.ImportedNothing} {
		if got := join(); !slices.Equal(got, []string{want}) {
			t.Errorf("again: %v, want %s", got, want)
		}
	}
	theirs, ours := recordsOf(t, other, key), recordsOf(t, mine, key)
	if len(theirs) != len(ours) {
		t.Fatalf("%d records became %d", len(theirs), len(ours))
	}
	for i := range theirs {
		head, body, err := record.Encode(theirs[i])
		head2, body2, err2 := record.Encode(ours[i])
		if err != nil || err2 != nil || !bytes.Equal(head, head2) || !bytes.Equal(body, body2) {
			t.Errorf("record %d differs: %v, %v", theirs[i].Seq, err, err2)
		}
	}
	for info, err := range mine.Sessions(ctx, "", storage.SessionQuery{}) {
		if err != nil || info.Project != "/home/me/p" {
			t.Errorf("project %q, %v", info.Project, err)
		}
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if !sqlite.IsStore(file) || sqlite.IsStore("stored_test.go") || sqlite.IsStore(filepath.Dir(file)) {
		t.Error("a store is known by its header")
	}
}

func recordsOf(t *testing.T, store storage.Store, key furl.SessionKey) (records []furl.Record) {
	t.Helper()
	for r, err := range store.Read(t.Context(), key, 0) {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	return records
}
