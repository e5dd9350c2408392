package recorded_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/recorded"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/transcript"
)

// OpenClaw sends no id of its session, and the ids of its calls without their underscores. Its file belongs to the
// session that the gateway has recorded nevertheless, also when it is imported again; a session of another
// agent, project or time does not.
func TestJoinWithoutID(t *testing.T) {
	text, err := os.ReadFile("../../transcript/testdata/openclaw.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		client, project string
		change          func(text string) string
		join            bool
	}{
		"call ids":     {"OpenClaw", "/home/user/project", func(s string) string { return strings.ReplaceAll(s, `"responseId"`, `"other"`) }, true},
		"response ids": {"OpenClaw", "", func(s string) string { return strings.ReplaceAll(s, `call_`, `other_`) }, true},
		"texts only": {"OpenClaw", "", func(s string) string {
			return strings.NewReplacer(`call_`, `other_`, `"responseId"`, `"other"`).Replace(s)
		}, false},
		"other agent":   {"pi", "", nil, false},
		"other project": {"OpenClaw", "/home/user/other", nil, false},
		"other day":     {"OpenClaw", "", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			today := stamp.ReplaceAllStringFunc(string(text), func(at string) string {
				recorded, err := time.Parse(time.RFC3339, at)
				if err != nil {
					t.Fatal(err)
				}
				return time.Now().Add(-20 * time.Minute).Add(recorded.Sub(time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC))).UTC().Format(time.RFC3339)
			})
			rec := read(t, today)
			if tt.change != nil {
				today = tt.change(today)
			}
			if name == "other day" {
				rec = read(t, string(text))
			}
			sent := read(t, strings.ReplaceAll(today, "call_", "call")).Sessions[0]
			store, err := sqlite.Open(filepath.Join(t.TempDir(), "furl.db"), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			key := furl.SessionKey{Session: "live"}
			// The last question was asked without the gateway.
			records := sent.Log.Records(0)[:21]
			if err := store.Append(t.Context(), key, storage.Batch{Records: records, Meta: &storage.Meta{Client: tt.client, Project: tt.project, Format: sent.Wire}}); err != nil {
				t.Fatal(err)
			}
			for i := range 2 {
				im := &recorded.Importer{Store: store}
				line, err := im.Session(context.Background(), rec, rec.Sessions[0])
				if err != nil {
					t.Fatal(err)
				}
				if joined := line.Session == key.Session; joined != tt.join {
					t.Fatalf("import %d: session %q, %s", i+1, line.Session, line.Result)
				}
				if tt.join && (i == 0) != (line.Added > 0) {
					t.Errorf("import %d added %d records, %s", i+1, line.Added, line.Result)
				}
			}
		})
	}
}

var stamp = regexp.MustCompile(`2026-11-29T[0-9:.]+Z`)

func read(t *testing.T, text string) *transcript.Recording {
	t.Helper()
	rec, err := transcript.Read("session.jsonl", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	rec.Agent = "OpenClaw"
	return rec
}
