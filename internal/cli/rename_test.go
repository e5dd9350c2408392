package cli_test

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/cli"
	"github.com/furlhq/furl/storage"
)

// A store of an earlier version may have a session with the id latest. The first command
// that opens the store reports its new id.
func TestRenamedSessionsAreTold(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile("../../sqlite/testdata/format-1.db")
	if err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(dir, "furl.db")
	if err := os.WriteFile(store, data, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", store)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("UPDATE sessions SET name = 'latest' WHERE name = 'coding' AND tenant = (SELECT tenant FROM sessions WHERE name = 'codecs')"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FURL_CONFIG", filepath.Join(dir, "none.yaml"))
	if err := os.WriteFile(filepath.Join(dir, "none.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	is := string(storage.UnreservedID("latest", 0))
	var out, notes bytes.Buffer
	if code := cli.Main([]string{"sessions", "--store", store}, nil, strings.NewReader(""), &out, &notes); code != 0 {
		t.Fatalf("code %d: %s", code, notes.String())
	}
	if want := "furl: note: session latest is now " + is + ": the id latest is reserved\n"; notes.String() != want {
		t.Errorf("notes are %q, want %q", notes.String(), want)
	}
	if !strings.Contains(out.String(), is[:len("session-")+8]) { // ids are shortened
		t.Errorf("sessions lists\n%s", out.String())
	}
	notes.Reset()
	if code := cli.Main([]string{"sessions", "--store", store}, nil, strings.NewReader(""), &out, &notes); code != 0 || notes.Len() > 0 {
		t.Errorf("the second time: code %d, %s", code, notes.String())
	}
}

// A recording may have any session id.
func TestImportOfReservedID(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("FURL_CONFIG", filepath.Join(dir, "none.yaml"))
	if err := os.WriteFile(filepath.Join(dir, "none.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"latest", "..", "--yes"} {
		file := filepath.Join(dir, "session.jsonl")
		line := `{"type":"user","sessionId":"` + id + `","uuid":"u` + string(rune('1'+i)) + `","timestamp":"2026-01-02T03:04:05Z","message":{"role":"user","content":"hello ` + id + `"}}` + "\n"
		if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, notes bytes.Buffer
		store := filepath.Join(dir, "furl.db")
		if code := cli.Main([]string{"import", "--json", "--store", store, file}, nil, strings.NewReader(""), &out, &notes); code != 0 {
			t.Fatalf("import of %s: code %d: %s", id, code, notes.String())
		}
		if strings.Contains(out.String(), `"session": "`+id+`"`) || !strings.Contains(out.String(), `"session": "s`) {
			t.Errorf("import of %s says %s", id, out.String())
		}
	}
}
