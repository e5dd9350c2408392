package postgres

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/storage"
)

// Stores written by earlier versions open with all their content. Each file
// is a dump of the store that fixture makes:
//
//	pg_dump --schema=furl --inserts --no-owner URL | grep -v '^\\'
func TestFormats(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "v*.sql"))
	if err != nil || len(files) < version {
		t.Fatalf("there are %d dumps of %d versions: %v", len(files), version, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			testFormat(t, file, pgtest.URL(t), nil)
		})
	}
}

// testFormat opens a dump in a database and compares its content.
func testFormat(t *testing.T, file, url string, o *Options) {
	t.Helper()
	dump, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	restore(t, url, string(dump))
	s := reopen(t, url, o)
	want := fixture(t, file)
	got := read(t, s, furl.SessionKey{Tenant: "t", Session: "fixture"}, 0)
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i := range got {
		if encoded(t, got[i]) != encoded(t, want[i]) {
			t.Errorf("record %d differs", i+1)
		}
	}
	healthy(t, s)
	for info, err := range s.Sessions(t.Context(), "t", storage.SessionQuery{Hint: "the client's"}) {
		if err != nil || info.Title != "A fixture" || info.Records != furl.Seq(len(want)) {
			t.Errorf("the session is %+v, %v", info, err)
		}
	}
	for _, content := range fixtureContents {
		_, err := s.Content(t.Context(), furl.SessionKey{Tenant: "t", Session: "fixture"}, furl.DigestOf(content))
		if old := strings.Compare(filepath.Base(file), "v3.sql") < 0; old != errors.Is(err, storage.ErrNoContent) || !old && err != nil {
			t.Errorf("a content: %v", err)
		}
	}
	found, err := s.Match(t.Context(), "t", []furl.Digest{want[1].Chain}, 5)
	if err != nil || len(found) != 1 || found[0].Seq != 2 {
		t.Errorf("matched %+v, %v", found, err)
	}
	appendAll(t, s, furl.SessionKey{Tenant: "t", Session: "fixture"}, []furl.Record{{
		Seq: furl.Seq(len(want)) + 1, Parent: furl.Seq(len(want)), Body: &furl.Head{From: 1},
	}})
}

// fixture is the session in a dump: every kind of record of its version, a
// body that two records share, a compressed body and an uncompressed one.
func fixture(t testing.TB, file string) []furl.Record {
	records := talk(t, "fixture", 4, 60)
	add := func(body furl.Body) {
		n := furl.Seq(len(records))
		records = append(records, furl.Record{Seq: n + 1, Parent: n, Body: body})
	}
	add(&furl.Exchange{Model: "m", Usage: furl.Usage{Input: 7}})
	add(&furl.Reduction{Stage: "mask", Items: []furl.Item{{Spans: []furl.Span{{First: furl.Pos{Msg: 2}, Last: furl.Pos{Msg: 2}}}, Show: furl.In{Text: "hidden"}}}})
	add(&furl.Restoration{Of: 6})
	long := furl.TextMessage(furl.RoleUser, strings.Repeat("long ", 100))
	long.Raw = []byte(`{"role":"user","content":"` + strings.Repeat("long ", 100) + `"}`)
	add(long)
	add(long)
	add(&furl.Head{From: 9})
	if filepath.Base(file) != "v1.sql" {
		add(&furl.Takeover{Branch: 9, Moved: []furl.Moved{{Old: 2, New: 300, Messages: 4}}})
		if filepath.Base(file) != "v2.sql" {
			add(&furl.Exchange{Model: "m", Request: furl.RequestParts{
				Frame: furl.DigestOf(fixtureContents[0]), Tools: furl.DigestOf(fixtureContents[1]), Received: "\x00\xff", Sent: "s"}})
		}
	}
	return records
}

// fixtureContents are the contents in a dump of version 3 or newer.
var fixtureContents = [][]byte{[]byte("a short one"), []byte(strings.Repeat("a tool, and ", 500))}

// restore runs a dump.
func restore(t *testing.T, url, dump string) {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), dump).ReadAll(); err != nil {
		t.Fatal(err)
	}
}
