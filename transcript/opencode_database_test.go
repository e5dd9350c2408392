package transcript

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// newDatabase makes a database with statements, and keeps it open, as the agent does.
func newDatabase(t *testing.T, path, statements string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path+"?_pragma=journal_mode(wal)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Exec(statements); err != nil {
		t.Fatal(err)
	}
	return db
}

// opencodeStatements makes a database of opencode 1.18.34, of which long texts and other tables were
// removed: a session of two tasks and a third in place of the second, which was reverted, and a fork.
func opencodeStatements(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/opencode-database.sql")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// currentBranch returns the messages of a session's current branch.
func currentBranch(s *Session) (list []*furl.Message) {
	st := s.Log.State()
	for i := range st.Len() {
		_, m := st.Message(i)
		list = append(list, m)
	}
	return list
}

func walked(t *testing.T, paths ...string) (list []*Recording) {
	t.Helper()
	for rec, err := range Walk(paths...) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, rec)
	}
	return list
}

func TestOpencodeDatabase(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a b%20c") // a URI must escape it
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "opencode.db")
	db := newDatabase(t, path, opencodeStatements(t))
	list := walked(t, folder)
	if len(list) != 2 {
		t.Fatalf("%d recordings, want a session and its fork", len(list))
	}
	first, fork := list[0].Sessions[0], list[1].Sessions[0]
	if list[0].Agent != "opencode" || list[0].Format != "opencode" || first.Project != "/home/user/project" || !strings.Contains(fork.Title, "(fork #1)") {
		t.Errorf("agent %q, format %q, project %q, fork %q", list[0].Agent, list[0].Format, first.Project, fork.Title)
	}
	var shown, asked []string
	for _, m := range currentBranch(first) {
		if m.Role == furl.RoleUser && m.Blocks[0].Kind == furl.KindText {
			shown = append(shown, m.Blocks[0].Text)
		}
	}
	for _, r := range first.Log.Records(0) {
		if m, ok := r.Body.(*furl.Message); ok && m.Role == furl.RoleUser && m.Blocks[0].Kind == furl.KindText {
			asked = append(asked, m.Blocks[0].Text)
		}
	}
	const task1, task2, task3 = "First task: read notes.txt", "Second task: list files.", "Third task after the revert."
	if got := strings.Join(shown, "|"); got != task1+"|"+task3 {
		t.Errorf("the current branch asks %q", got)
	}
	if got := strings.Join(asked, "|"); got != task1+"|"+task2+"|"+task3 {
		t.Errorf("the log asks %q; what was undone is a branch", got)
	}
	// The sums of all messages that assistants wrote, by a query of the original database.
	var sum furl.Usage
	ex, _ := exchanges(fork)
	for _, x := range ex {
		sum = sum.Add(x.Usage)
	}
	if want := (furl.Usage{Output: 832, CacheRead: 201276, CacheWrite: 42045}); sum != want {
		t.Errorf("usage of the fork %+v, want %+v", sum, want)
	}
	checkRequests(t, first, true)

	// What the agent adds is seen, though it is only in the write-ahead log.
	if _, err := db.Exec(`insert into message values ('msg_zz', ?1, 1, 1, '{"role":"user","time":{"created":1795798785261}}'), ('msg_zzz', ?1, 1, 1, '{broken');
		insert into part values ('prt_zz', 'msg_zz', ?1, 1, 1, '{"type":"text","text":"Fourth task."}')`, string(first.ID)); err != nil {
		t.Fatal(err)
	}
	rec, err := ReadFile(path)
	if err != nil || len(rec.Sessions) != 2 {
		t.Fatal(err, rec)
	}
	msgs := currentBranch(rec.Sessions[0])
	if last := msgs[len(msgs)-1]; last.Blocks[0].Text != "Fourth task." {
		t.Errorf("the last message is %q", last.Blocks[0].Text)
	}
}

// A revert that the user may still take back is a branch too.
func TestOpencodeDatabaseReverted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kilo.db")
	db := newDatabase(t, path, opencodeStatements(t))
	if _, err := db.Exec(`drop table event; update session set revert = json_object('messageID', (select max(id) from message where session_id = session.id and json_extract(data, '$.role') = 'user'))`); err != nil {
		t.Fatal(err)
	}
	rec, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if rec.Agent != "Kilo" {
		t.Errorf("agent %q", rec.Agent)
	}
	for _, s := range rec.Sessions {
		msgs := currentBranch(s)
		said := 0
		for _, r := range s.Log.Records(0) {
			if _, ok := r.Body.(*furl.Message); ok {
				said++
			}
		}
		if last := msgs[len(msgs)-1]; said == len(msgs) || last.Role != furl.RoleAssistant {
			t.Errorf("%s: the current branch ends with %+v", s.ID, last.Blocks[0])
		}
	}
}

func TestUnknownDatabases(t *testing.T) {
	folder := t.TempDir()
	newDatabase(t, filepath.Join(folder, "other.db"), `create table session (id text)`)
	newDatabase(t, filepath.Join(folder, "views.db"), `create view session as select 1; create view message as select 1; create view part as select 1`)
	if err := os.WriteFile(filepath.Join(folder, "broken.db"), append(sqliteMagic, "and nothing more"...), 0o600); err != nil {
		t.Fatal(err)
	}
	var failed []string
	for rec, err := range Walk(folder) {
		unknown, ok := errors.AsType[*UnknownFilesError](err)
		switch {
		case rec != nil:
			t.Errorf("read %s", rec.File)
		case ok:
			if len(unknown.Files) != 2 {
				t.Errorf("unknown: %v", unknown.Files)
			}
		default:
			failed = append(failed, err.Error())
		}
	}
	if len(failed) != 1 || !strings.Contains(failed[0], "broken.db") {
		t.Errorf("failed: %q", failed)
	}
}

// What cannot be read of a database of a known agent is named once, with the reason. The other sessions are read.
func TestDamagedDatabases(t *testing.T) {
	for name, tt := range map[string]struct {
		damage func(t *testing.T, path string, db *sql.DB)
		read   int
		want   string
	}{
		"a newer schema": {func(t *testing.T, _ string, db *sql.DB) {
			execute(t, db, `alter table message rename column data to body`)
		}, 0,
			"its tables are not those that furl knows; perhaps the agent is newer: SQL logic error: no such column: data (1)"},
		"a table less": {func(t *testing.T, _ string, db *sql.DB) { execute(t, db, `drop table part`) }, 0, "unknown SQLite database"},
		"locked": {func(t *testing.T, _ string, db *sql.DB) {
			execute(t, db, `pragma journal_mode = delete`)
			execute(t, db, `begin exclusive`)
		}, 0, "another program locks it; try again later: database is locked (5) (SQLITE_BUSY)"},
		"truncated": {func(t *testing.T, path string, db *sql.DB) {
			db.Close()
			if err := os.Truncate(path, 20_000); err != nil {
				t.Fatal(err)
			}
		}, 0, "the file is damaged: database disk image is malformed (11)"},
		"cut before the first page": {func(t *testing.T, path string, db *sql.DB) {
			db.Close()
			if err := os.Truncate(path, 50); err != nil {
				t.Fatal(err)
			}
		}, 0, "the file is damaged: "},
		"one session without its row": {func(t *testing.T, _ string, db *sql.DB) {
			execute(t, db, `update session set title = null where title like '%fork%'`)
		}, 1, "converting NULL to string is unsupported"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // a lock is waited for
			path := filepath.Join(t.TempDir(), "opencode.db")
			db := newDatabase(t, path, strings.ReplaceAll(opencodeStatements(t), "`title` text NOT NULL", "`title` text"))
			db.SetMaxOpenConns(1)
			tt.damage(t, path, db)
			var failed []string
			read := 0
			for rec, err := range Walk(path) {
				if err != nil {
					failed = append(failed, err.Error())
				} else if rec != nil {
					read++
				}
			}
			if len(failed) != 1 || !strings.Contains(failed[0], path) || !strings.Contains(failed[0], tt.want) || read != tt.read {
				t.Errorf("read %d sessions, failed: %q; want %q", read, failed, tt.want)
			}
		})
	}
}

func execute(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.Exec(query); err != nil {
		t.Fatal(err)
	}
}

// Sessions whose parents form a circle are all read.
func TestTreesOf(t *testing.T) {
	got := treesOf([]storedSession{{"a", "", ""}, {"b", "a", ""}, {"c", "b", ""}, {"d", "gone", ""}, {"e", "f", ""}, {"f", "e", ""}})
	want := [][]storedSession{{{"a", "", ""}, {"b", "a", ""}, {"c", "b", ""}}, {{"d", "gone", ""}}, {{"e", "f", ""}, {"f", "e", ""}}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Another database of opencode 1.18.34: a sub-agent, an image, a failed call, a compaction, and a fork. For each
// session the usage of requests and compactions is the sum that its messages have.
func TestOpencodeDatabaseAgents(t *testing.T) {
	text, err := os.ReadFile("testdata/opencode-agents.sql")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "opencode.db")
	db := newDatabase(t, path, string(text))
	rec, err := ReadFile(path)
	if err != nil || len(rec.Sessions) != 3 {
		t.Fatal(rec, err)
	}
	for _, s := range rec.Sessions {
		var want furl.Usage
		if err := db.QueryRow(`
			select sum(json_extract(data, '$.tokens.input')), sum(json_extract(data, '$.tokens.output')),
				sum(json_extract(data, '$.tokens.cache.read')), sum(json_extract(data, '$.tokens.cache.write'))
			from message where session_id = ?1 and json_extract(data, '$.role') = 'assistant'`, s.ID).Scan(&want.Input, &want.Output, &want.CacheRead, &want.CacheWrite); err != nil {
			t.Fatal(err)
		}
		var sum furl.Usage
		images, failed := 0, 0
		for _, r := range s.Log.Records(0) {
			switch b := r.Body.(type) {
			case *furl.Exchange:
				sum = sum.Add(b.Usage)
			case *furl.Reduction:
				if b.Summary != nil {
					sum = sum.Add(b.Summary.Usage)
				}
			case *furl.Message:
				for _, block := range b.Blocks {
					images += len(block.Media)
					if block.Error {
						failed++
					}
				}
			}
		}
		if sum != want {
			t.Errorf("%s used %+v, want %+v", s.ID, sum, want)
		}
		if agent := s.Parent != ""; agent != strings.Contains(s.Title, "subagent") || !agent && (images == 0 || failed != 1 || s.Compactions != 1) {
			t.Errorf("%s: parent %q, %d images, %d failed results, %d compactions", s.ID, s.Parent, images, failed, s.Compactions)
		}
		checkRequests(t, s, true)
	}
}

// A database of Kilo 7.7.9: a sub-agent, an image, failed calls, a compaction, a revert, and a fork. The usage is that of
// the provider, whose requests were recorded.
func TestKiloDatabase(t *testing.T) {
	text, err := os.ReadFile("testdata/kilo.sql")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kilo.db")
	newDatabase(t, path, string(text))
	list := walked(t, path)
	if len(list) != 2 || len(list[0].Sessions) != 2 || len(list[1].Sessions) != 1 {
		t.Fatalf("%v, want a session with a sub-agent, and a fork", list)
	}
	main, helper, fork := list[0].Sessions[0], list[0].Sessions[1], list[1].Sessions[0]
	if list[0].Agent != "Kilo" || helper.Parent != main.ID || main.Compactions != 1 || main.Title != "Looking around" || fork.Title != "Looking around (fork #1)" {
		t.Errorf("agent %q, parent %q, %d compactions, titles %q and %q", list[0].Agent, helper.Parent, main.Compactions, main.Title, fork.Title)
	}
	for s, want := range map[*Session]contents{
		main: {
			asked:    []string{"First task: look around.", "Second task: read missing.txt", "Third task: spawn a helper", "Fourth task", "Last task"},
			requests: 9, calls: 6, images: 1, error: 2, usage: furl.Usage{Input: 280, Output: 238, CacheRead: 133075, CacheWrite: 17362},
		},
		helper: {asked: []string{"Sub task: read notes.txt"}, requests: 1, usage: furl.Usage{Input: 56, Output: 11, CacheWrite: 13830}},
		fork: {
			asked:    []string{"First task: look around.", "Fork task"},
			requests: 4, calls: 4, images: 1, error: 1, usage: furl.Usage{Input: 112, Output: 134, CacheRead: 49593, CacheWrite: 16677},
		},
	} {
		got := contentsOf(s)
		if strings.Join(got.asked, "|") != strings.Join(want.asked, "|") {
			t.Errorf("%s: asked %q", s.Title, got.asked)
		}
		if got.requests != want.requests || got.calls != want.calls || got.images != want.images || got.error != want.error || got.usage != want.usage {
			t.Errorf("%s: %+v, want %+v", s.Title, got, want)
		}
		if shown := strings.Join(contentsOf(s).shown, "|"); strings.Contains(shown, "Fourth") {
			t.Errorf("%s: the current branch has %q, which was reverted", s.Title, shown)
		}
		checkRequests(t, s, true)
	}
	for r := range main.Log.State().Reductions() {
		if want := (furl.Usage{Output: 12, CacheWrite: 1069}); r.Summary == nil || r.Summary.Usage != want {
			t.Errorf("compaction %+v, want one that cost %+v", r.Summary, want)
		}
	}
}
