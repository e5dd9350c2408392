package sqlite_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

var newFormat = flag.Bool("new-format", false, "write testdata/format-N.db and .want of the newest format, if they are not there")

// Stores of every released format open, return their content, and accept
// appends. Their files are never rewritten: a new format gets a new file,
// with go test ./sqlite -run TestFormats -new-format.
func TestFormats(t *testing.T) {
	if *newFormat {
		writeFormat(t)
	}
	for n := 1; n <= sqlite.Format; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			base := filepath.Join("testdata", fmt.Sprintf("format-%d", n))
			data, err := os.ReadFile(base + ".db")
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(base + ".want")
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "furl.db")
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			s := openAt(t, path, nil)
			defer closeStore(t, s)
			if diff := cmp.Diff(string(want), contents(t, s)); diff != "" {
				t.Errorf("the content of the store differs (-want +got):\n%s", diff)
			}
			sound(t, s)
			put(t, s, "new", some(5))
			for _, id := range []string{"coding", "codecs"} {
				if err := s.Delete(context.Background(), key(id)); err != nil {
					t.Error(err)
				}
			}
			sound(t, s)
		})
	}
}

// writeFormat writes the files of the newest format.
func writeFormat(t *testing.T) {
	base := filepath.Join("testdata", fmt.Sprintf("format-%d", sqlite.Format))
	if _, err := os.Stat(base + ".db"); err == nil {
		t.Fatalf("%s.db is there already, and stays as it is", base)
	}
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, base+".db", nil)
	ctx := context.Background()
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	coding := furltest.Session(furltest.SessionOptions{Seed: 11, Messages: 40, MessageBytes: 700, Exchanges: true, Reductions: true})
	meta := &storage.Meta{Title: "A coding session", Client: "an agent", Hint: "hint-1", Model: "model-1",
		Format: furl.FormatAnthropic, Policy: "auto", Settings: map[string]string{"key": "value"}}
	do(s.Append(ctx, key("coding"), storage.Batch{Records: coding, Meta: meta}))
	do(s.Append(ctx, furl.SessionKey{Tenant: "tenant\x00", Session: "coding"}, storage.Batch{Records: coding[:7]}))
	do(s.Append(ctx, key("codecs"), storage.Batch{Records: everyCodec(t), Contents: keptContents, Meta: &storage.Meta{ForkOf: "coding", ForkAt: 3, Source: "a file"}}))
	do(s.WriteIndex(ctx, key("coding"), storage.IndexWrite{To: 9, Put: []storage.IndexPage{{Bucket: 3, Segment: 1, Data: []byte("a page")}, {Bucket: 1 << 31, Segment: 2, Data: []byte{}}}}))
	do(s.PutVectors(ctx, key("coding"), "model-e", []storage.Vector{{Content: furl.Digest{1}, Data: []byte{1, 2, 3}}}))
	want := contents(t, s)
	closeStore(t, s)
	do(os.WriteFile(base+".want", []byte(want), 0o644))
}

// keptContents are contents of a session in the file of format 3.
var keptContents = [][]byte{[]byte("a short one"), []byte(strings.Repeat("a tool, and ", 500))}

// everyCodec returns bodies in every stored encoding, and bodies of records
// of every kind.
func everyCodec(t *testing.T) []furl.Record {
	words := strings.Repeat("words that repeat, ", 400)
	at := time.Date(2026, 2, 3, 4, 5, 6, 789, time.FixedZone("", 7200))
	span := []furl.Span{{First: furl.Pos{Msg: 1}, Last: furl.Pos{Msg: 2}}}
	raw := func(text string) *furl.Message {
		return &furl.Message{Role: furl.RoleUser, Format: furl.FormatChat, Raw: fmt.Appendf(nil, `{"role":"user","content":%q}`, text), Blocks: []furl.Block{{Text: text}}}
	}
	bodies := []furl.Body{
		raw("hi"), raw(words[:300]), raw(words), raw(words), // plain, s2, zstd, and zstd again
		secret(t, rand.New(rand.NewPCG(3, 3)), 3000), // uncompressed, in its own row in the kept files
		furl.TextMessage(furl.RoleUser, "no bytes of its own"),
		&furl.Message{Role: furl.RoleTool, Raw: []byte{}},
		&furl.Reduction{Stage: "compact", Reason: "why", Before: 9, After: 5, Scale: 1.5, Copy: 2,
			Summary: &furl.Summary{Number: 1, Text: "sum", Model: "m"},
			Items:   []furl.Item{{Spans: span, Show: furl.Mark{At: at, Messages: []*furl.Message{raw("mark")}}}, {Spans: span, Show: furl.In{Text: "in", Tokens: 2, Note: "old"}}, {Spans: span, Show: furl.Gone{}}}},
		&furl.Restoration{Of: 8, Open: true, Spans: span, Hold: furl.Pin},
		&furl.Exchange{Model: "m", ResponseID: "r", Stop: "end_turn", Usage: furl.Usage{Input: 3, Output: 4}, Plan: []furl.PlanStep{{Stage: "mask", Skipped: "small"}}},
		&furl.Head{From: 10},
		&furl.Takeover{Branch: 9, Moved: []furl.Moved{{Old: 3, New: 12, Messages: 2}, {Old: 7, New: 300, Messages: 1}}},
		&furl.Exchange{Model: "m", Request: furl.RequestParts{
			Frame: furl.DigestOf(keptContents[0]), Tools: furl.DigestOf(keptContents[1]), Received: "\x00\xff", Sent: "s"}},
	}
	records := make([]furl.Record, len(bodies))
	for i, b := range bodies {
		records[i] = furl.Record{Seq: furl.Seq(i + 1), Parent: furl.Seq(i), At: at.Add(time.Duration(i) * time.Hour), By: furl.Actor(i % 5), Body: b}
		if _, ok := b.(*furl.Message); ok {
			records[i].Chain = furl.DigestOf([]byte{byte(i)})
		}
	}
	return records
}

// contents describes the content of a store of writeFormat.
func contents(t *testing.T, s *sqlite.Store) string {
	t.Helper()
	ctx := context.Background()
	var out strings.Builder
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tenant := range []furl.Tenant{"", "tenant\x00"} {
		for info, err := range s.Sessions(ctx, tenant, storage.SessionQuery{}) {
			check(err)
			cursor, err := s.Indexed(ctx, info.SessionKey)
			check(err)
			fmt.Fprintf(&out, "session %q of %q, created %s, updated %s: %d records, %d messages, %d bytes, indexed to %d\n  %q %q %q %q %q %q %q %q %d %v\n",
				info.Session, info.Tenant, info.Created.Format(time.RFC3339Nano), info.Updated.Format(time.RFC3339Nano), info.Records, info.Messages, info.Bytes, cursor,
				info.Title, info.Client, info.Hint, info.Model, info.Format, info.Policy, info.Source, info.ForkOf, info.ForkAt, info.Settings)
			for r, err := range s.Read(ctx, info.SessionKey, 0) {
				check(err)
				fmt.Fprintf(&out, "  %s\n", describe(r))
				if x, ok := r.Body.(*furl.Exchange); ok && x.Request.Received != "" {
					for _, digest := range []furl.Digest{x.Request.Frame, x.Request.Tools} {
						content, err := s.Content(ctx, info.SessionKey, digest)
						check(err)
						fmt.Fprintf(&out, "    content %v: %d bytes\n", digest, len(content))
					}
				}
				if r.Chain.IsZero() {
					continue
				}
				found, err := s.Match(ctx, tenant, []furl.Digest{r.Chain}, 10)
				check(err)
				fmt.Fprintf(&out, "    found by its chain: %d\n", len(found))
			}
		}
	}
	for _, bucket := range []uint32{3, 1 << 31} {
		for p, err := range s.Pages(ctx, furl.SessionKey{}, bucket) {
			check(err)
			fmt.Fprintf(&out, "page %d %d of %q: %q\n", p.Bucket, p.Segment, p.Session, p.Data)
		}
	}
	for v, err := range s.Vectors(ctx, furl.SessionKey{}, "model-e") {
		check(err)
		fmt.Fprintf(&out, "vector %v: %v\n", v.Content, v.Data)
	}
	return out.String()
}

// describe describes a record by fields that will always exist.
func describe(r furl.Record) string {
	head := fmt.Sprintf("%d<%d %s %s", r.Seq, r.Parent, r.By, r.At.Format(time.RFC3339Nano))
	switch b := r.Body.(type) {
	case *furl.Message:
		var texts []byte
		for i := range b.Blocks {
			texts = fmt.Appendf(texts, "%s %q %q %q %s\n", b.Blocks[i].Kind, b.Blocks[i].ID, b.Blocks[i].Name, b.Blocks[i].Text, b.Blocks[i].Args)
		}
		return fmt.Sprintf("%s message of %s, %s, chain %v: %d bytes %v, %d blocks %v", head, b.Role, b.Format, r.Chain, len(b.Raw), furl.DigestOf(b.Raw), len(b.Blocks), furl.DigestOf(texts))
	case *furl.Reduction:
		var items []string
		for _, it := range b.Items {
			text := fmt.Sprintf("%T", it.Show)
			if in, ok := it.Show.(furl.In); ok {
				text += fmt.Sprintf(" %q", in.Text)
			}
			items = append(items, fmt.Sprintf("%v %s", it.Spans, text))
		}
		return fmt.Sprintf("%s reduction %s %q %d to %d, copy of %d: %s", head, b.Stage, b.Reason, b.Before, b.After, b.Copy, strings.Join(items, "; "))
	case *furl.Restoration:
		return fmt.Sprintf("%s restoration of %d, open %v, hold %d: %v", head, b.Of, b.Open, b.Hold, b.Spans)
	case *furl.Exchange:
		text := fmt.Sprintf("%s exchange %s %s %s, %d tokens in, %d out, %d steps", head, b.Model, b.ResponseID, b.Stop, b.Usage.Prompt(), b.Usage.Output, len(b.Plan))
		if r := b.Request; r.Received != "" {
			text += fmt.Sprintf(", body of %v, %v, %v, %q and %q", r.Frame, r.System, r.Tools, r.Received, r.Sent)
		}
		return text
	case *furl.Takeover:
		return fmt.Sprintf("%s takeover of %d: %v", head, b.Branch, b.Moved)
	case *furl.Head:
		return fmt.Sprintf("%s head from %d", head, b.From)
	}
	return head
}

// Earlier versions accepted ids that are now reserved. Such sessions get
// another id when the store is opened for writing; forks are updated, and
// nothing is lost.
func TestRenamesReserved(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "format-1.db"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "furl.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	// The file has the session coding of two tenants, and codecs, a fork of
	// it.
	taken := storage.UnreservedID("-h", 0)
	edit(t, path,
		"UPDATE sessions SET name = 'latest' WHERE name = 'coding' AND id = (SELECT min(id) FROM sessions)",
		"UPDATE sessions SET name = '..' WHERE name = 'coding'",
		`UPDATE sessions SET meta = CAST(replace(CAST(meta AS TEXT), '"fork_of":"coding"', '"fork_of":"latest"') AS BLOB) WHERE name = 'codecs'`,
		"INSERT INTO sessions (tenant, name, records, messages, bytes, created, updated) SELECT tenant, '-h', 0, 0, 0, 1, 1 FROM sessions WHERE name = 'codecs'",
		"INSERT INTO sessions (tenant, name, records, messages, bytes, created, updated) SELECT tenant, '"+string(taken)+"', 0, 0, 0, 2, 2 FROM sessions WHERE name = 'codecs'")

	// A read-only store changes nothing.
	reader, err := sqlite.Open(path, &sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if renamed := reader.Renamed(); len(renamed) != 0 {
		t.Errorf("a reader renamed %v", renamed)
	}
	closeStore(t, reader)

	s := openAt(t, path, nil)
	defer closeStore(t, s)
	want := []storage.Renamed{
		{Was: "latest", Is: storage.UnreservedID("latest", 0)},
		{Tenant: "tenant\x00", Was: "..", Is: storage.UnreservedID("..", 0)},
		{Was: "-h", Is: storage.UnreservedID("-h", 1)},
	}
	if diff := cmp.Diff(want, s.Renamed()); diff != "" {
		t.Errorf("renamed (-want +got):\n%s", diff)
	}
	ids := make(map[furl.SessionID]storage.SessionInfo)
	for _, tenant := range []furl.Tenant{"", "tenant\x00"} {
		for info, err := range s.Sessions(t.Context(), tenant, storage.SessionQuery{}) {
			if err != nil {
				t.Fatal(err)
			}
			if !storage.ValidID(info.Session) {
				t.Errorf("there is still a session %s", info.Session)
			}
			ids[info.Session] = info
		}
	}
	if n := count(t, s, string(want[0].Is)); n == 0 || ids["codecs"].ForkOf != want[0].Is || ids["codecs"].ForkAt != 3 {
		t.Errorf("the session has %d records, and its fork says %+v", n, ids["codecs"].Meta)
	}
	sound(t, s)
	again := openAt(t, path, nil)
	defer closeStore(t, again)
	if renamed := again.Renamed(); len(renamed) != 0 {
		t.Errorf("opened again, it renamed %v", renamed)
	}
}

// edit changes a file without the store.
func edit(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, st := range statements {
		if _, err := db.Exec(st); err != nil {
			t.Fatalf("%s: %v", st, err)
		}
	}
}
