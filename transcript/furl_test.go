package transcript

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
)

// export returns what Export writes.
func export(t testing.TB, format string, s *Session, opts *ExportOptions) ([]byte, *Exported) {
	t.Helper()
	var out bytes.Buffer
	done, err := Export(context.Background(), &out, format, s, opts)
	if err != nil {
		t.Fatalf("export %s: %v", s.ID, err)
	}
	if done.Bytes != int64(out.Len()) {
		t.Errorf("Exported.Bytes is %d, want %d", done.Bytes, out.Len())
	}
	return out.Bytes(), done
}

// encoded is a log as a store would keep it.
func encoded(t testing.TB, log *furl.Log) []string {
	t.Helper()
	var all []string
	for _, r := range log.Records(0) {
		head, body, err := record.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%x %x", head, body))
	}
	return all
}

// checkFurlTrip checks that a session is imported from the furl format with
// the same bytes in a store, and exported again to the same bytes.
func checkFurlTrip(t testing.TB, s *Session) {
	t.Helper()
	data, done := export(t, "furl", s, nil)
	if len(done.Notes) > 0 {
		t.Errorf("notes %q", done.Notes)
	}
	rec, err := Read("own", bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v", s.ID, err)
	}
	if rec.Format != "furl" || len(rec.Sessions) != 1 || len(rec.Skipped) > 0 || len(rec.Notes) > 0 && !strings.Contains(rec.Notes[0], "the digest of") {
		t.Fatalf("%s: read as %s, %d sessions, skipped %v, notes %v", s.ID, rec.Format, len(rec.Sessions), rec.Skipped, rec.Notes)
	}
	back := rec.Sessions[0]
	want, got := encoded(t, s.Log), encoded(t, back.Log)
	if len(want) != len(got) {
		t.Fatalf("%s: %d records, want %d", s.ID, len(got), len(want))
	}
	for i := range want {
		if want[i] != got[i] {
			t.Fatalf("%s: record %d came back as %s, want %s", s.ID, i+1, got[i], want[i])
		}
	}
	if back.Log.Head() != s.Log.Head() {
		t.Errorf("%s: the head is %d, want %d", s.ID, back.Log.Head(), s.Log.Head())
	}
	if back.ID != s.ID && s.ID != "" || back.Parent != s.Parent || back.Title != s.Title || back.Wire != s.Wire {
		t.Errorf("%s of %s %q in %s came back as %s of %s %q in %s", s.ID, s.Parent, s.Title, s.Wire, back.ID, back.Parent, back.Title, back.Wire)
	}
	if diff := cmp.Diff(s.Preamble, back.Preamble, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s: the preamble (-want +got):\n%s", s.ID, diff)
	}
	again, _ := export(t, "furl", back, nil)
	if s.ID != "" && s.Model == back.Model && !bytes.Equal(data, again) {
		t.Errorf("%s: the second export differs from the first", s.ID)
	}
}

func TestFurlRoundTripOfFixtures(t *testing.T) {
	for name, data := range fixtures(t) {
		rec, err := Read(name, bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range rec.Sessions {
			checkFurlTrip(t, s)
		}
	}
}

func TestFurlRoundTripOfRandomSessions(t *testing.T) {
	for _, wire := range []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses} {
		for seed := range uint64(20) {
			checkFurlTrip(t, randomSession(t, wire, seed, 60))
		}
	}
}

// A session with takeovers survives export and import in the furl format, in
// version 2, and each view is unchanged.
func TestFurlRoundTripOfTakeovers(t *testing.T) {
	log := furl.NewLog()
	records := furltest.Session(furltest.SessionOptions{Seed: 3, Messages: 400, MessageBytes: 200, Exchanges: true, Reductions: true})
	if err := log.Load(records); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(records, func(r furl.Record) bool { _, ok := r.Body.(*furl.Takeover); return ok }) {
		t.Fatal("the session has no takeover")
	}
	s := &Session{ID: "s", Wire: furl.FormatAnthropic, Log: log}
	checkFurlTrip(t, s)
	data, _ := export(t, "furl", s, nil)
	if header, _, _ := bytes.Cut(data, []byte("\n")); !bytes.Contains(header, []byte(`"version":2`)) {
		t.Errorf("the header is %s, want version 2", header)
	}
}

// Every recording survives export and import in the furl format.
func TestFurlRoundTripOfRecordings(t *testing.T) {
	dir := recordings.Dir(t)
	sessions, records, size, whole := 0, 0, 0, 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || isLarge(path) {
			return err
		}
		rec, err := (&Reader{Counter: byteCounter{}}).ReadFile(path)
		if err != nil {
			return nil // not a recording
		}
		if raceDetector && isLong(rec) {
			return nil
		}
		for _, s := range rec.Sessions {
			checkFurlTrip(t, s)
			data, _ := export(t, "furl", s, nil)
			sessions, records, size = sessions+1, records+s.Log.Len(), size+len(data)
			whole += bytes.Count(data, []byte(`"blocks":`))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d sessions with %d records in %d bytes, %d messages with blocks written out", sessions, records, size, whole)
}

// The contents that records refer to are exported and imported to the byte, in
// version 3.
func TestFurlContents(t *testing.T) {
	contents := [][]byte{[]byte("text with \"quotes\",\nlines, <tags> and \u2028"), {}, []byte("\x00\xff not UTF-8"), bytes.Repeat([]byte("x"), 5000)}
	log := furl.NewLog()
	for _, c := range contents {
		ex := &furl.Exchange{Model: "m", Request: furl.RequestParts{Frame: furl.DigestOf(c), Received: "\x00\xff", Sent: "sent"}}
		if _, err := log.Append(log.Head(), time.Time{}, furl.Furl, ex); err != nil {
			t.Fatal(err)
		}
	}
	s := &Session{ID: "s", Wire: furl.FormatChat, Log: log, Contents: contents}
	checkFurlTrip(t, s)
	data, _ := export(t, "furl", s, nil)
	if header, _, _ := bytes.Cut(data, []byte("\n")); !bytes.Contains(header, []byte(`"version":3`)) {
		t.Errorf("the header is %s, want version 3", header)
	}
	rec, err := Read("a file", bytes.NewReader(slices.Concat(data, data)))
	if err != nil || len(rec.Sessions) != 2 {
		t.Fatalf("%v, %v", rec, err)
	}
	for _, s := range rec.Sessions {
		if diff := cmp.Diff(contents, s.Contents, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the contents have changed (-want +got):\n%s", diff)
		}
	}
	large := fmt.Sprintf("%s{\"content\":%q}\n", data[:bytes.IndexByte(data, '\n')+1], strings.Repeat("x", storage.MaxContent+1))
	if _, err := Read("a file", strings.NewReader(large+"{}\n")); err == nil || !strings.Contains(err.Error(), "line 2: a content has 4194305 bytes") {
		t.Errorf("a content that is too large: %v", err)
	}
}

// Files of version 1 must stay readable for ever, and are exported byte for
// byte while version 1 is the version written. Do not change these files.
func TestFurlVersion1(t *testing.T) {
	data, err := os.ReadFile("testdata/furl-v1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	rec, err := Read("v1", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	again, _ := export(t, "furl", rec.Sessions[0], nil)
	if diff := cmp.Diff(string(data), string(again)); diff != "" {
		t.Errorf("the export differs from the file (-want +got):\n%s", diff)
	}
	blocks, err := ReadFile("testdata/furl-v1-blocks.jsonl") // the same session with all blocks written
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(encoded(t, rec.Sessions[0].Log), encoded(t, blocks.Sessions[0].Log)); diff != "" {
		t.Errorf("with blocks written out (-without +with):\n%s", diff)
	}
	for _, r := range rec.Sessions[0].Log.Records(0) {
		m, ok := r.Body.(*furl.Message)
		if !ok {
			continue
		}
		digest := m.Digest
		if m.Seal(); m.Digest != digest {
			t.Errorf("record %d has another digest than in the file: client histories would not match", r.Seq)
		}
	}
}

// A file may contain several sessions.
func TestFurlSeveralSessions(t *testing.T) {
	a, _ := export(t, "furl", randomSession(t, furl.FormatAnthropic, 1, 20), nil)
	b, _ := export(t, "furl", randomSession(t, furl.FormatChat, 2, 20), nil)
	rec, err := Read("two", bytes.NewReader(append(a, b...)))
	if err != nil || len(rec.Sessions) != 2 || rec.Sessions[1].ID != "random-2" {
		t.Fatalf("%+v, %v", rec, err)
	}
	want := storage.Meta{
		Title: "anything <may> happen", Client: "test", Hint: "h", Model: "a-model", Format: furl.FormatAnthropic,
		Policy: "auto", Source: "nowhere", ForkOf: "other", ForkAt: 3, Settings: map[string]string{"a": "b"},
	}
	if diff := cmp.Diff(want, rec.Sessions[0].Meta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

// If the last line is truncated, the records before it are imported. Every
// other fault is an error with its line.
func TestFurlFaults(t *testing.T) {
	data, _ := export(t, "furl", randomSession(t, furl.FormatChat, 3, 30), nil)
	lines := bytes.SplitAfter(data, []byte("\n"))
	join := func(list ...[]byte) string { return string(bytes.Join(list, nil)) }

	rec, err := Read("torn", strings.NewReader(string(data[:len(data)-20])))
	if err != nil || len(rec.Skipped) != 1 || len(rec.Notes) != 1 || rec.Sessions[0].Log.Len() != len(lines)-3 {
		t.Errorf("torn: %+v, %v", rec, err)
	}
	rec, err = Read("short", strings.NewReader(join(lines[:10]...)))
	if err != nil || len(rec.Skipped) != 0 || len(rec.Notes) != 1 || rec.Sessions[0].Log.Len() != 9 {
		t.Errorf("cut between lines: %+v, %v", rec, err)
	}
	v1, err := os.ReadFile("testdata/furl-v1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	rec, err = Read("edited", strings.NewReader(strings.Replace(string(v1), "Only the slow one.", "Only the [removed] one.", 1)))
	if err != nil || len(rec.Notes) != 1 || !strings.Contains(rec.Notes[0], "does not match the recorded one") {
		t.Errorf("edited: %+v, %v", rec, err)
	}
	for name, test := range map[string]struct{ data, want string }{
		"torn in the middle": {join(lines[0], lines[1], lines[2][:20], []byte("\n"), lines[3]), "line 3: "},
		"a gap":              {join(lines[0], lines[1], lines[3]), "line 3: record number 3: expected 2"},
		"not an object":      {join(lines[0], []byte("[]\n"), lines[1]), "line 2: "},
		"a wrong parent":     {join(lines[0], lines[1], []byte(`{"seq":2,"parent":0,"by":"client","kind":"message","role":"user","blocks":[]}`+"\n"), []byte(`{"seq":3,"parent":2,"by":"client","kind":"message","role":"user","blocks":[]}`+"\n")), "line 3: record 2 has the parent 0: expected 1"},
		"a lost reduction":   {join(lines[0], lines[1], []byte(`{"seq":2,"parent":1,"by":"furl","kind":"restoration","of":9}`+"\n"), []byte(`{"seq":3,"parent":2,"by":"client","kind":"message","role":"user","blocks":[]}`+"\n")), "line 3: record 2: lift reduction 9: not on this path"},
		"a lost branch":      {join(lines[0], lines[1], []byte(`{"seq":2,"parent":1,"by":"furl","kind":"takeover","branch":9}`+"\n"), []byte(`{"seq":3,"parent":2,"by":"client","kind":"message","role":"user","blocks":[]}`+"\n")), "line 3: record 2: take over branch 9: not on this path"},
		"moved out of range": {join(lines[0], lines[1], []byte(`{"seq":2,"parent":1,"by":"furl","kind":"takeover","branch":1,"moved":[{"old":1,"new":1,"messages":9000000000000000000}]}`+"\n"), []byte(`{"seq":3,"parent":2,"by":"client","kind":"message","role":"user","blocks":[]}`+"\n")), "line 3: record 2: take over branch 1: message 1 as 1: not on this path"},
		"a newer version":    {strings.Replace(string(data), `"version":1`, `"version":4`, 1), "line 1: version 4 of the furl format is not supported"},
		"no version":         {strings.Replace(string(data), `"version":1`, `"version":0`, 1), "line 1: invalid session header"},
	} {
		_, err := Read("FILE", strings.NewReader(test.data))
		if err == nil || !strings.Contains(err.Error(), "FILE") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		if newer := errors.Is(err, record.ErrNewerFormat); newer != (name == "a newer version") {
			t.Errorf("%s: ErrNewerFormat is %v", name, newer)
		}
	}
	if _, err := (&Reader{MaxLine: 100}).Read("long", bytes.NewReader(data)); err == nil || !strings.Contains(err.Error(), "line 1: the line has") {
		t.Errorf("a long line: %v", err)
	}
}

// "openai" selects the format of the session if it is one of OpenAI's,
// otherwise Chat Completions.
func TestExportOpenAI(t *testing.T) {
	for format, want := range map[furl.Format]string{
		furl.FormatChat: "openai-chat", furl.FormatResponses: "openai-responses", furl.FormatAnthropic: "openai-chat",
	} {
		var got, same bytes.Buffer
		s := randomSession(t, format, 4, 10)
		done, err := Export(context.Background(), &got, "openai", s, nil)
		if err != nil || done.Format != want {
			t.Fatalf("%s: %v, %v", format, done, err)
		}
		if _, err := Export(context.Background(), &same, want, s, nil); err != nil || !bytes.Equal(got.Bytes(), same.Bytes()) {
			t.Errorf("%s: %v: openai and %s differ", format, err, want)
		}
	}
}

func TestExportRefuses(t *testing.T) {
	s := randomSession(t, furl.FormatChat, 4, 10)
	var out bytes.Buffer
	_, err := Export(context.Background(), &out, "docx", s, nil)
	if _, ok := errors.AsType[*UnknownExportError](err); !ok {
		t.Errorf("an unknown format: %v", err)
	}
	if _, err = Export(context.Background(), &out, "furl", s, &ExportOptions{View: true}); err == nil {
		t.Error("an export of the view in the furl format must be refused")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, format := range exportNames() {
		if _, err = Export(ctx, &out, format, s, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: cancelled: %v", format, err)
		}
		full := errors.New("the disk is full")
		if _, err = Export(context.Background(), brokenWriter{full}, format, s, nil); !errors.Is(err, full) {
			t.Errorf("%s: a full disk: %v", format, err)
		}
		calls := 0
		opts := &ExportOptions{Progress: func(done, total int) {
			if calls++; done < 1 || done > total {
				t.Errorf("%s: %d of %d are done", format, done, total)
			}
		}}
		if _, err := Export(context.Background(), &out, format, s, opts); err != nil || calls == 0 {
			t.Errorf("%s: %d calls of Progress, %v", format, calls, err)
		}
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

// checkOwn checks what holds for every session in the furl format, however
// the file was made: it folds, it has a view, and it can be stored and
// exported.
func checkOwn(t *testing.T, s *Session) {
	t.Helper()
	st, err := furl.Fold(s.Log, s.Log.Head())
	if err != nil {
		t.Fatal(err)
	}
	// Blocks may be arbitrary and need not match the bytes.
	_, _ = requestBody(codecOf(s.Wire), st.View(furl.Model{}))
	for _, name := range exportNames() {
		view := name != "furl" && s.Log.Len()%2 == 0
		_, _ = Export(context.Background(), io.Discard, name, s, &ExportOptions{View: view})
	}
	encoded(t, s.Log)
	checkFurlTrip(t, s)
}

// Any bytes after a header give a session or an error.
func FuzzReadFurl(f *testing.F) {
	for _, wire := range []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses} {
		data, _ := export(f, "furl", randomSession(f, wire, 5, 3), nil)
		f.Add(data)
	}
	v1, err := os.ReadFile("testdata/furl-v1.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(v1)
	// Blocks that overlap and do not match the bytes.
	f.Add([]byte(ownHeader + "\n" + `{"seq":1,"kind":"message","by":"client","role":"user","format":"anthropic","blocks":[{"kind":"text","text":"a","start":5,"end":20},{"kind":"result","id":"x","start":2,"end":9}],"raw":{"role":"user","content":"hello"}}` + "\n" +
		`{"seq":2,"parent":1,"kind":"reduction","by":"furl","items":[{"spans":[{"first":{"msg":1,"block":0},"last":{"msg":1,"block":1}}],"show":"in","text":"y"}]}`))
	f.Add([]byte(`{"format":"furl-session","version":1,"records":1,"meta":{}}` + "\n" + `{"seq":1,"parent":0,"by":"furl","kind":"head","from":7}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := &input{bounds: unbounded, data: data, maxLine: defaultMaxLine, rec: &Recording{}}
		sessions, err := readFurl(in)
		if err != nil {
			return
		}
		for _, s := range sessions {
			checkOwn(t, s)
		}
	})
}

// ownSession is a session of about 10 MB, for benchmarks.
func ownSession(b *testing.B) *Session {
	log := furl.NewLog()
	words := strings.Repeat("a line of \"text\"\twith\\\\escapes and more\n", 50)
	for i := range 5000 {
		role := furl.RoleUser
		if i%2 == 1 {
			role = furl.RoleAssistant
		}
		m, err := codecOf(furl.FormatAnthropic).NewMessage(role, []furl.Block{{Kind: furl.KindText, Text: fmt.Sprint(i, words)}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := log.Append(log.Head(), time.Unix(int64(i), 0), furl.Client, m); err != nil {
			b.Fatal(err)
		}
	}
	return &Session{ID: "bench", Wire: furl.FormatAnthropic, Log: log}
}

func BenchmarkExportFurl(b *testing.B) {
	s := ownSession(b)
	data, _ := export(b, "furl", s, nil)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Export(context.Background(), io.Discard, "furl", s, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadFurl(b *testing.B) {
	data, _ := export(b, "furl", ownSession(b), nil)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read("bench", bytes.NewReader(data)); err != nil {
			b.Fatal(err)
		}
	}
}
