package transcript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// openclawFile makes a database of OpenClaw 2026.9.6, of which other tables and long texts were removed.
func openclawFile(t *testing.T, statements string) (path string, exec func(query string, args ...any)) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", statements))
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "openclaw-agent.sqlite")
	db := newDatabase(t, path, string(text))
	return path, func(query string, args ...any) {
		t.Helper()
		if _, err := db.Exec(query, args...); err != nil {
			t.Fatal(err)
		}
	}
}

// contents is what the tests count in a session.
type contents struct {
	asked, shown                   []string // by people: in all branches, and in the current one
	requests, calls, images, error int
	usage                          furl.Usage
}

func contentsOf(s *Session) (c contents) {
	for _, r := range s.Log.Records(0) {
		switch b := r.Body.(type) {
		case *furl.Exchange:
			c.requests++
			c.usage = c.usage.Add(b.Usage)
		case *furl.Message:
			for _, block := range b.Blocks {
				c.images += len(block.Media)
				switch {
				case block.Kind == furl.KindCall:
					c.calls++
				case block.Error:
					c.error++
				case block.Kind == furl.KindText && b.Role == furl.RoleUser:
					c.asked = append(c.asked, block.Text)
				}
			}
		}
	}
	for _, m := range currentBranch(s) {
		for _, block := range m.Blocks {
			if block.Kind == furl.KindText && m.Role == furl.RoleUser {
				c.shown = append(c.shown, block.Text)
			}
		}
	}
	return c
}

// A conversation with two tasks, a compaction, a third task that was rewound, another in its place, and a reset.
// OpenClaw copies the transcript for a rewind, so there are two of it. The numbers are those of the provider,
// whose requests were recorded; that of the compaction is not in the database.
func TestOpenclawDatabase(t *testing.T) {
	path, exec := openclawFile(t, "openclaw-database.sql")
	list := walked(t, filepath.Dir(path))
	if len(list) != 2 {
		t.Fatalf("%d recordings, want a conversation and its fork", len(list))
	}
	for i, want := range []contents{
		{
			asked:    []string{"First task: look around and read notes.txt", "Second task: read missing.txt and dot.png", "Third task: spawn a helper", "Third task in other words", "Fourth task"},
			shown:    []string{"Fourth task"},
			requests: 9, calls: 6, images: 1, error: 3,
			usage: furl.Usage{Input: 549, Output: 260, CacheRead: 132559, CacheWrite: 26939},
		}, {
			asked: []string{"First task: look around and read notes.txt"}, shown: []string{"First task: look around and read notes.txt"},
			requests: 3, calls: 3, error: 1,
			usage: furl.Usage{Input: 183, Output: 128, CacheRead: 33698, CacheWrite: 19967},
		},
	} {
		s := list[i].Sessions[0]
		got := contentsOf(s)
		if strings.Join(got.asked, "|") != strings.Join(want.asked, "|") || strings.Join(got.shown, "|") != strings.Join(want.shown, "|") {
			t.Errorf("session %d: asked %q, shown %q", i, got.asked, got.shown)
		}
		if got.requests != want.requests || got.calls != want.calls || got.images != want.images || got.error != want.error || got.usage != want.usage {
			t.Errorf("session %d: %+v, want %+v", i, got, want)
		}
		if s.Project != "/home/user/project" || s.Model != "claude-sonnet-4-5" || s.Wire != furl.FormatAnthropic || list[i].Agent != "OpenClaw" || s.Compactions != 1-i {
			t.Errorf("session %d: project %q, model %q, wire %q, agent %q, %d compactions", i, s.Project, s.Model, s.Wire, list[i].Agent, s.Compactions)
		}
		if d := list[i].Damage(); d != "" {
			t.Errorf("session %d: %s", i, d)
		}
		checkRequests(t, s, true)
	}

	if main, fork := list[0].Sessions[0], list[1].Sessions[0]; fork.ForkOf != main.ID || main.ForkOf != "" {
		t.Errorf("forks of %q and %q", main.ForkOf, fork.ForkOf)
	}

	// What the agent adds is seen, though it is only in the write-ahead log.
	exec(`insert into transcript_events (session_id, seq, event_json, created_at) values ('58941738-9b68-4acb-9155-05369d6a94b2', 100, ?1, 1)`,
		`{"type":"message","id":"x","parentId":"9a0587cb-77ed-472d-9395-49bf7c197fcb","timestamp":"2026-11-29T09:00:00.000Z","message":{"role":"user","content":"Fifth task","timestamp":1795942800000}}`)
	rec, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if shown := contentsOf(rec.Sessions[0]).shown; strings.Join(shown, "|") != "Fourth task|Fifth task" {
		t.Errorf("shown %q", shown)
	}
}

// A conversation with a sub-agent. Its large events are compressed.
func TestOpenclawDatabaseAgents(t *testing.T) {
	path, exec := openclawFile(t, "openclaw-agents.sql")
	rec, err := ReadFile(path)
	if err != nil || len(rec.Sessions) != 2 {
		t.Fatal(err, rec)
	}
	main, helper := rec.Sessions[0], rec.Sessions[1]
	if helper.Parent != main.ID || helper.Title != "helper" || main.Parent != "" {
		t.Errorf("parent %q of %q, title %q", helper.Parent, main.ID, helper.Title)
	}
	for s, want := range map[*Session]contents{
		main:   {requests: 8, calls: 4, usage: furl.Usage{Input: 1159, Output: 227, CacheRead: 140557, CacheWrite: 127039}},
		helper: {requests: 1, usage: furl.Usage{Input: 61, Output: 11, CacheWrite: 9935}},
	} {
		if got := contentsOf(s); got.requests != want.requests || got.calls != want.calls || got.error != 0 || got.usage != want.usage {
			t.Errorf("%s: %+v, want %+v", s.ID, got, want)
		}
		checkRequests(t, s, true)
	}
	if len(rec.Skipped) > 0 {
		t.Errorf("skipped %v", rec.Skipped)
	}

	// An event that cannot be unpacked is named, and the others are read.
	for what, query := range map[string]string{
		"broken":       `update transcript_events set event_zstd = substr(event_zstd, 1, 50) where seq = 9 and event_zstd is not null`,
		"another size": `update transcript_events set event_utf8_bytes = 5 where seq = 9 and event_zstd is not null`,
	} {
		exec(query)
		again, err := ReadFile(path)
		if err != nil {
			t.Fatal(what, err)
		}
		if len(again.Skipped) != 1 || len(again.Sessions) != 2 || contentsOf(again.Sessions[0]).requests != 8 {
			t.Errorf("%s: skipped %v", what, again.Skipped)
		}
	}
}
