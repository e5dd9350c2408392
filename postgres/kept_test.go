package postgres

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/internal/rebuild"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

var newSessions = flag.Bool("new-sessions", false, "write testdata/sessions-vN.sql of the newest version, if it is not there")

// Sessions that clients have used over earlier versions of the tables are read
// as they were, and can be continued. The dumps have the sessions that package
// sqlite keeps in its file of the format of that time.
func TestKeptSessions(t *testing.T) {
	if *newSessions {
		dumpSessions(t)
	}
	files, err := filepath.Glob(filepath.Join("testdata", "sessions-v*.sql"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			dump, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			number := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "sessions-v"), ".sql")
			url := pgtest.URL(t)
			restore(t, url, string(dump))
			s := reopen(t, url, nil)
			healthy(t, s)
			for key, b := range keptSessions(t, number) {
				got := read(t, s, key, 0)
				if len(got) != len(b.Records) {
					t.Fatalf("session %s has %d records, want %d", key.Session, len(got), len(b.Records))
				}
				for i := range got {
					if encoded(t, got[i]) != encoded(t, b.Records[i]) {
						t.Errorf("record %d of session %s differs", i+1, key.Session)
					}
				}
				for _, c := range b.Contents {
					if _, err := s.Content(t.Context(), key, furl.DigestOf(c)); err != nil {
						t.Error(err)
					}
				}
				n := furl.Seq(len(got))
				appendAll(t, s, key, []furl.Record{{Seq: n + 1, Parent: n, Body: &furl.Exchange{Model: "m"}}})
				if err := s.Delete(t.Context(), key); err != nil {
					t.Error(err)
				}
			}
			healthy(t, s)
		})
	}
}

// keptSessions reads the sessions that package sqlite keeps of a format.
func keptSessions(t *testing.T, number string) map[furl.SessionKey]storage.Batch {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "sqlite", "testdata", "sessions-"+number+".db"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "furl.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	from, err := sqlite.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	out := make(map[furl.SessionKey]storage.Batch)
	for info, err := range from.Sessions(t.Context(), "", storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		b := storage.Batch{Meta: &info.Meta}
		for r, err := range from.Read(t.Context(), info.SessionKey, 0) {
			if err != nil {
				t.Fatal(err)
			}
			b.Records = append(b.Records, r)
		}
		if b.Contents, err = rebuild.ContentsOf(b.Records, func(d furl.Digest) ([]byte, error) {
			return from.Content(t.Context(), info.SessionKey, d)
		}); err != nil {
			t.Fatal(err)
		}
		out[info.SessionKey] = b
	}
	return out
}

// dumpSessions writes the dump of the newest version.
func dumpSessions(t *testing.T) {
	file := filepath.Join("testdata", fmt.Sprintf("sessions-v%d.sql", version))
	if _, err := os.Stat(file); err == nil {
		t.Fatalf("%s is there already, and stays as it is", file)
	}
	url := pgtest.URL(t)
	s := reopen(t, url, nil)
	for key, b := range keptSessions(t, fmt.Sprint(version)) {
		if err := s.Append(t.Context(), key, b); err != nil {
			t.Fatal(err)
		}
	}
	dump, err := exec.CommandContext(t.Context(), "pg_dump", "--schema=furl", "--inserts", "--no-owner", url).Output()
	if err != nil {
		t.Fatal(err)
	}
	// Commands of psql, comments and empty lines are not for the server.
	dump = regexp.MustCompile(`(?m)^(\\.*|--.*)?\n`).ReplaceAll(dump, nil)
	if err := os.WriteFile(file, dump, 0o644); err != nil {
		t.Fatal(err)
	}
}
