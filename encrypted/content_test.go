package encrypted_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/encrypted"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/postgres"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// Texts that must not be in an encrypted store, beside those of the messages.
const (
	title   = "A title with a customer's name, Grete Hermann"
	project = "/home/grete/projects/quantum-contradiction"
	hint    = "client-session-id-0123456789"
	tools   = `[{"name":"read_the_secret_plans","description":"Reads the secret plans of the company"}]`
	pageOf  = "posting of the unusual identifier frobnicateTheWidget"
	vector  = "an embedding, as if it were text"
)

func key(id string) furl.SessionKey {
	return furl.SessionKey{Tenant: "0123456789abcdef", Session: furl.SessionID(id)}
}

// fill stores everything that a store can have in two sessions, and returns the
// texts in it.
func fill(t testing.TB, st storage.Store) (records []furl.Record, texts []string) {
	t.Helper()
	ctx := context.Background()
	records = furltest.Session(furltest.SessionOptions{Seed: 7, Messages: 60, Exchanges: true, MessageBytes: 1500})
	n := furl.Seq(len(records))
	add := func(parent furl.Seq, body furl.Body) {
		n++
		records = append(records, furl.Record{Seq: n, Parent: parent, Body: body})
	}
	add(n, &furl.Reduction{Stage: "compact", Reason: "because of the unusual reason number nine",
		Summary: &furl.Summary{Text: "a summary that mentions the launch date", Request: "what to mention in it"},
		Items: []furl.Item{{Spans: []furl.Span{{First: furl.Pos{Msg: 1}, Last: furl.Pos{Msg: 1}}},
			Show: furl.In{Text: "placeholder text with the name Hermann", Note: "a note of the stage"}}}})
	add(n, &furl.Exchange{Model: "a-model-with-a-name", ResponseID: "response-id-of-the-provider",
		Request: furl.RequestParts{Frame: furl.DigestOf([]byte(tools)), Received: "an edit script with literal words", Sent: "another script with other words"}})
	meta := storage.Meta{Title: title, Project: project, Hint: hint, Model: "a-model-with-a-name", Source: "/tmp/recordings/of/grete.jsonl"}
	for _, id := range []string{"first", "second"} {
		for i := 0; i < len(records); i += 16 {
			b := storage.Batch{Records: records[i:min(i+16, len(records))], Meta: &meta}
			if i == 0 {
				b.Contents = [][]byte{[]byte(tools)}
			}
			if err := st.Append(ctx, key(id), b); err != nil {
				t.Fatal(err)
			}
		}
		index := st.(storage.Searchable)
		err := index.WriteIndex(ctx, key(id), storage.IndexWrite{To: 3, Put: []storage.IndexPage{{Bucket: 1, Segment: 1, Data: []byte(pageOf)}}})
		if err != nil {
			t.Fatal(err)
		}
		err = st.(storage.VectorStore).PutVectors(ctx, key(id), "model", []storage.Vector{{Content: furl.DigestOf([]byte("x")), Data: []byte(vector)}})
		if err != nil {
			t.Fatal(err)
		}
	}
	texts = []string{title, project, hint, tools, pageOf, vector, "because of the unusual reason number nine", "a summary that mentions the launch date",
		"what to mention in it", "placeholder text with the name Hermann", "a note of the stage", "a-model-with-a-name", "response-id-of-the-provider",
		"an edit script with literal words", "another script with other words", "/tmp/recordings/of/grete.jsonl"}
	for _, r := range records {
		m, ok := r.Body.(*furl.Message)
		if !ok {
			continue
		}
		texts = append(texts, string(m.Raw))
		for i := range m.Blocks {
			texts = append(texts, m.Blocks[i].Text, m.Blocks[i].ID, m.Blocks[i].Name, string(m.Blocks[i].Args))
		}
	}
	return records, texts
}

// holds fails the test if the sessions that fill stored differ.
func holds(t testing.TB, st storage.Store, records []furl.Record) {
	t.Helper()
	ctx := context.Background()
	for _, id := range []string{"first", "second"} {
		n := 0
		for r, err := range st.Read(ctx, key(id), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprintf("%#v", r.Body) == "" || r.Seq != records[n].Seq || r.Parent != records[n].Parent || r.Chain != records[n].Chain {
				t.Fatalf("session %s: record %d differs", id, r.Seq)
			}
			if m, ok := r.Body.(*furl.Message); ok && !bytes.Equal(m.Raw, records[n].Body.(*furl.Message).Raw) {
				t.Fatalf("session %s: message %d differs", id, r.Seq)
			}
			n++
		}
		if n != len(records) {
			t.Fatalf("session %s has %d records, want %d", id, n, len(records))
		}
		content, err := st.(storage.ContentStore).Content(ctx, key(id), furl.DigestOf([]byte(tools)))
		if err != nil || string(content) != tools {
			t.Fatalf("session %s: content %q, %v", id, content, err)
		}
	}
	found := 0
	for info, err := range st.Sessions(ctx, key("").Tenant, storage.SessionQuery{Hint: hint}) {
		if err != nil || info.Title != title || info.Project != project {
			t.Fatalf("%+v, %v", info, err)
		}
		found++
	}
	var chain furl.Digest
	for _, r := range records {
		if !r.Chain.IsZero() {
			chain = r.Chain
		}
	}
	matched, err := st.Match(ctx, key("").Tenant, []furl.Digest{chain}, 10)
	if err != nil || found != 2 || len(matched) < 2 || matched[0].Chain != chain {
		t.Fatalf("found %d sessions by hint, matched %v, %v", found, matched, err)
	}
	for p, err := range st.(storage.Checker).Check(ctx, false) {
		t.Errorf("check: %+v, %v", p, err)
	}
}

// scan fails the test if any 12 bytes of the texts are in data.
func scan(t testing.TB, data []byte, texts []string) {
	t.Helper()
	const size = 12
	pieces := make(map[string]bool)
	for _, text := range texts {
		for i := 0; i+size <= len(text); i++ {
			pieces[text[i:i+size]] = true
		}
	}
	if len(pieces) < 100 {
		t.Fatalf("only %d pieces to look for", len(pieces))
	}
	for i := 0; i+size <= len(data); i++ {
		if pieces[string(data[i:i+size])] {
			t.Fatalf("%q is in the store", data[i:i+size])
		}
	}
}

// files returns the bytes of a SQLite store with its log.
func files(t testing.TB, path string) (all []byte) {
	t.Helper()
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		all = append(all, data...)
	}
	return all
}

// TestNoPlainText scans the files of a store for anything that was recorded.
func TestNoPlainText(t *testing.T) {
	m := master(t)
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "furl.db")
		st := openSQLite(t, path, m)
		records, texts := fill(t, st)
		holds(t, st, records)
		scan(t, files(t, path), texts)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		scan(t, files(t, path), texts)
		st = openSQLite(t, path, m)
		defer st.Close()
		holds(t, st, records)
	})
	t.Run("postgres", func(t *testing.T) {
		url := pgtest.URL(t)
		inner, err := postgres.Open(context.Background(), url, nil)
		if err != nil {
			t.Fatal(err)
		}
		st := encrypted.New(inner, m)
		defer st.Close()
		records, texts := fill(t, st)
		holds(t, st, records)
		dump, err := exec.Command(pgtest.Tool(t, "pg_dump"), "--dbname="+url).Output()
		if err != nil {
			t.Fatal(err)
		}
		var data []byte
		for word := range strings.FieldsSeq(string(dump)) {
			data = append(data, unhex(word)...)
		}
		if len(data) < 10_000 {
			t.Fatalf("the dump has %d bytes of data", len(data))
		}
		scan(t, data, texts)
		scan(t, dump, texts)
	})
}

// unhex decodes a bytea of a dump.
func unhex(word string) []byte {
	digits, ok := strings.CutPrefix(word, `\\x`)
	if !ok {
		return nil
	}
	var out []byte
	if _, err := fmt.Sscanf(digits, "%x", &out); err != nil {
		return nil
	}
	return append(out, 0)
}

// enableEnv makes the test binary a process that encrypts a store.
const enableEnv = "FURL_TEST_ENABLE"

func TestMain(m *testing.M) {
	if path := os.Getenv(enableEnv); path != "" {
		enableAndRotate(path)
		return
	}
	os.Exit(m.Run())
}

// enableAndRotate encrypts a store, makes a new data key, and wraps it with a new
// master key. It prints a line after each step.
func enableAndRotate(path string) {
	ctx := context.Background()
	keys, err := encrypted.ParseMaster(os.Getenv("FURL_TEST_MASTER"))
	must(err)
	inner, err := sqlite.Open(path, nil)
	must(err)
	l := encrypted.New(inner, keys)
	tenant := key("").Tenant
	must(encrypted.Enable(ctx, l, tenant, false, func(furl.SessionID, int) { fmt.Println("session") }))
	fmt.Println("enabled")
	_, err = encrypted.RotateKey(ctx, l, tenant)
	must(err)
	fmt.Println("rotated")
	must(encrypted.Enable(ctx, l, tenant, true, func(furl.SessionID, int) { fmt.Println("session again") }))
	fmt.Println("enabled again")
	must(l.Close())
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A conversion and a rotation that are killed after each of their steps go on when
// they are repeated, lose nothing, and leave no plain text.
func TestKilledConversion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "furl.db")
	plain := openSQLite(t, path, nil)
	records, texts := fill(t, plain)
	holds(t, plain, records)
	if err := plain.Close(); err != nil {
		t.Fatal(err)
	}
	old, fresh := encrypted.NewMasterKey(), encrypted.NewMasterKey()
	for killAt := 1; ; killAt++ {
		master := old
		if killAt > 3 {
			master = fresh + "\n" + old
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), enableEnv+"="+path, "FURL_TEST_MASTER="+master)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 1)
		lines := 0
		for lines < killAt {
			if n, err := out.Read(buf); err != nil || n == 0 {
				break
			}
			if buf[0] == '\n' {
				lines++
			}
		}
		_ = cmd.Process.Kill() // it may have ended
		err = cmd.Wait()
		m, e := encrypted.ParseMaster(fresh + "\n" + old)
		if e != nil {
			t.Fatal(e)
		}
		st := openSQLite(t, path, m)
		holds(t, st, records)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		if err == nil && lines < killAt { // it ended by itself
			break
		}
		if killAt > 30 {
			t.Fatalf("still not finished: %v", err)
		}
	}
	scan(t, files(t, path), texts)
	m, err := encrypted.ParseMaster(fresh)
	if err != nil {
		t.Fatal(err)
	}
	st := openSQLite(t, path, m)
	defer st.Close()
	if _, err := encrypted.RotateMaster(context.Background(), st, key("").Tenant); err != nil {
		t.Fatal(err)
	}
	holds(t, st, records)
	list, err := encrypted.Statuses(context.Background(), st)
	if err != nil || len(list) != 1 || !list[0].Encrypted || list[0].Plain || list[0].Keys < 2 || list[0].Master != m.ID() {
		t.Errorf("the status is %+v, %v", list, err)
	}
}

// Without the right key, an encrypted store gives errors that name the key, and
// changes nothing.
func TestMissingKey(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "furl.db")
	m := master(t)
	st := openSQLite(t, path, m)
	records, _ := fill(t, st)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]encrypted.Master{"none": nil, "another": master(t)} {
		t.Run(name, func(t *testing.T) {
			st := openSQLite(t, path, other)
			defer st.Close()
			n := len(records)
			for doing, err := range map[string]error{
				"append":   st.Append(ctx, key("first"), storage.Batch{Records: []furl.Record{{Seq: furl.Seq(n + 1), Parent: furl.Seq(n), Body: &furl.Head{}}}}),
				"begin":    st.Append(ctx, key("third"), storage.Batch{Records: records[:1]}),
				"read":     first(st.Read(ctx, key("first"), 0)),
				"sessions": first(st.Sessions(ctx, key("").Tenant, storage.SessionQuery{})),
				"pages":    first(st.Pages(ctx, key("first"), 1)),
				"match":    second(st.Match(ctx, key("").Tenant, []furl.Digest{{1}}, 1)),
				"enable":   encrypted.Enable(ctx, st, key("").Tenant, true, func(furl.SessionID, int) {}),
			} {
				if doing == "enable" && other == nil {
					continue
				}
				if e, ok := errors.AsType[*encrypted.KeyError](err); !ok || e.Master != m.ID() || !strings.Contains(err.Error(), "encryption.key_file") {
					t.Errorf("%s: %v", doing, err)
				}
			}
			problems := 0
			for p, err := range st.Check(ctx, true) {
				if problems++; err != nil || !strings.Contains(p.Text, m.ID()) {
					t.Errorf("check: %+v, %v", p, err)
				}
			}
			if problems != 1 {
				t.Errorf("%d problems", problems)
			}
			// Other tenants are not affected.
			other := furl.SessionKey{Tenant: "other" + furl.Tenant(name), Session: "a"}
			if err := st.Append(ctx, other, storage.Batch{Records: records[:1]}); err != nil {
				t.Error(err)
			}
			if err := st.Delete(ctx, other); err != nil {
				t.Error(err)
			}
		})
	}
	st = openSQLite(t, path, m)
	defer st.Close()
	holds(t, st, records)

	// The keys are stored apart, and come back.
	exported, err := encrypted.Export(ctx, st)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := st.TenantKeys(ctx, key("").Tenant)
	if err == nil {
		err = st.SetTenantKeys(ctx, key("").Tenant, raw, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := first(st.Read(ctx, key("first"), 0)); err == nil || !strings.Contains(err.Error(), "furl encryption import") {
		t.Errorf("without its keys: %v", err)
	}
	if n, err := encrypted.Import(ctx, st, exported); err != nil || n != 1 {
		t.Errorf("imported the keys of %d tenants, %v", n, err)
	}
	holds(t, st, records)

	// Destroyed keys take the content with them.
	if err := encrypted.Destroy(ctx, st, key("").Tenant); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(files(t, path), raw[len(raw)/2:]) {
		t.Error("the destroyed keys are still in the file")
	}
	if e, ok := errors.AsType[*encrypted.KeyError](first(st.Read(ctx, key("first"), 0))); !ok || e.Destroyed.IsZero() {
		t.Error("a session can be read after its keys were destroyed")
	}
	if _, err := encrypted.Import(ctx, st, exported); err == nil {
		t.Error("destroyed keys were imported again")
	}
	for info, err := range st.Sessions(ctx, key("").Tenant, storage.SessionQuery{}) {
		if err != nil || info.Title != encrypted.DestroyedTitle {
			t.Errorf("%+v, %v", info, err)
		}
		if err := st.Delete(ctx, info.SessionKey); err != nil {
			t.Error(err)
		}
	}
}

func first[T any](seq func(func(T, error) bool)) (err error) {
	for _, e := range seq {
		return e
	}
	return nil
}

func second[T any](_ T, err error) error { return err }

// Encrypted bytes open only where they belong.
func TestSwapped(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "furl.db")
	st := openSQLite(t, path, master(t))
	defer st.Close()
	records, _ := fill(t, st)
	inner := st.Inner().(*sqlite.Store)
	var all []furl.Record
	for r, err := range inner.Read(ctx, key("first"), 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	damage := func(what string, id string, r furl.Record) {
		t.Helper()
		n := furl.Seq(len(records))
		if err := inner.Rewrite(ctx, key(id), storage.Rewrite{Records: n, Put: []furl.Record{r}}); err != nil {
			t.Fatal(err)
		}
		if err := first(st.Read(ctx, key(id), r.Seq-1)); !errors.Is(err, furl.ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	kind := func(i, j int) bool { return all[i].Body.(*furl.Sealed).Message == all[j].Body.(*furl.Sealed).Message }
	j := 1
	for !kind(0, j) {
		j++
	}
	moved := all[j]
	moved.Seq, moved.Parent = all[0].Seq, all[0].Parent
	damage("of another record", "first", moved)
	damage("of another session", "second", all[0])
	damage("in plain form", "first", records[j])
	bent := *all[0].Body.(*furl.Sealed)
	bent.Data = bytes.Clone(bent.Data)
	bent.Data[len(bent.Data)-1] ^= 1
	changed := all[0]
	changed.Body = &bent
	damage("with a changed bit", "first", changed)
}
