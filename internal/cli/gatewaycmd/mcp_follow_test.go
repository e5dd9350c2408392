package gatewaycmd

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/internal/follow"
	"github.com/furlhq/furl/internal/recorded"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/token"
	"github.com/furlhq/furl/transcript"
)

// following is furl mcp --follow without its server.
type following struct {
	folder, data, place string
	store               storage.Store
	log                 heardLines
	stop                func()
	follower            *follow.Follower
}

// heardLines are log lines.
type heardLines struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (h *heardLines) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lines.Write(p)
}

func (h *heardLines) count(words string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Count(h.lines.String(), words)
}

func newFollowing(t *testing.T) *following {
	t.Helper()
	f := &following{folder: t.TempDir(), data: t.TempDir()}
	t.Setenv("FURL_DATA", f.data)
	f.place = filepath.Join(f.data, "furl.db")
	var err error
	if f.store, err = sqlite.Open(f.place, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.stop(); f.store.Close() })
	f.stop = func() {}
	return f
}

// start follows the folder.
func (f *following) start(t *testing.T, settle time.Duration) {
	t.Helper()
	flags := mcpFlags{StoreFlags: cmdline.StoreFlags{Workspace: workspace.Workspace{Place: f.place, Log: slog.New(slog.NewTextHandler(&f.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}}, folders: []string{f.folder}}
	flags.interval, flags.settle, flags.pause = 20*time.Millisecond, settle, 1
	ctx, cancel := context.WithCancel(context.Background())
	var err error
	if f.follower, err = flags.follower(ctx, f.store, &config.Config{}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- f.follower.Run(ctx) }()
	f.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		f.stop = func() {}
	}
}

// records waits until a session has as many records as wanted, and returns them.
func (f *following) records(t *testing.T, id furl.SessionID, want int) (got []furl.Record) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		got = nil
		for r, err := range f.store.Read(t.Context(), furl.SessionKey{Session: id}, 0) {
			if err != nil {
				break // not yet
			}
			got = append(got, r)
		}
		if len(got) == want {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatalf("session %s has %d records, want %d\n%s", id, len(got), want, f.log.lines.String())
		}
	}
}

// sameAs compares stored records with those of a recording that is read at once.
func sameAs(t *testing.T, got []furl.Record, s *transcript.Session) {
	t.Helper()
	want := s.Log.Records(0)
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i := range want {
		if !recorded.EqualRecords(got[i], want[i]) || got[i].Chain != want[i].Chain {
			t.Fatalf("record %d differs:\n%+v %+v\n%+v %+v", i+1, got[i], got[i].Body, want[i], want[i].Body)
		}
	}
}

// claudeLines is a recording of Claude Code with steps of about 2 kB.
func claudeLines(id string, steps int) (lines []string) {
	at := time.Date(2026, 10, 1, 8, 0, 0, 0, time.UTC)
	parent := "null"
	add := func(typ, message string) {
		uuid := fmt.Sprintf("%s-%d", id, len(lines))
		at = at.Add(time.Second)
		lines = append(lines, fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%s,"sessionId":%q,"cwd":"/src/app","timestamp":%q,"message":%s}`, typ, uuid, parent, id, at.Format(time.RFC3339), message))
		parent = fmt.Sprintf("%q", uuid)
	}
	add("user", `{"role":"user","content":"Count the zebras."}`)
	for i := range steps {
		reply := fmt.Sprintf(`"id":"msg_%d","type":"message","role":"assistant","model":"claude-sonnet-4-5","usage":{"input_tokens":%d,"output_tokens":40}`, i, 100+i)
		add("assistant", fmt.Sprintf(`{%s,"content":[{"type":"text","text":"I look at herd %d."}]}`, reply, i))
		add("assistant", fmt.Sprintf(`{%s,"content":[{"type":"tool_use","id":"toolu_%d","name":"Bash","input":{"command":"herd %d"}}]}`, reply, i, i))
		result, _ := json.Marshal(strings.Repeat(fmt.Sprintf("zebra%d grazes. ", i), 120))
		add("user", fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":%s}]}`, i, result))
	}
	return lines
}

// grow adds lines to a recording, some at a time and with a line in parts. Then the file
// is old, so that its end is imported too.
func (f *following) grow(t *testing.T, name string, lines []string, from, steps int) *transcript.Session {
	t.Helper()
	path := filepath.Join(f.folder, name)
	w, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for n := range steps {
		to := from + (len(lines)-from)*(n+1)/steps
		if to == from {
			continue
		}
		text := strings.Join(lines[from:to], "\n") + "\n"
		reads := f.log.count("read a recording")
		for _, part := range []string{text[:len(text)/2], text[len(text)/2:]} {
			if _, err := w.WriteString(part); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(20 * time.Second); f.log.count("read a recording") == reads && time.Now().Before(deadline); {
				time.Sleep(5 * time.Millisecond)
			}
			reads = f.log.count("read a recording")
		}
		from = to
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	rec, err := (&transcript.Reader{Counter: token.O200k()}).ReadFile(path)
	if err != nil || len(rec.Sessions) == 0 {
		t.Fatal(err)
	}
	return rec.Sessions[0]
}

// A file that grows is imported as if it had been imported once, and of a large one
// only the end is read.
func TestFollowGrowingFile(t *testing.T) {
	f := newFollowing(t)
	lines := claudeLines("5e55", 400)
	if err := os.WriteFile(filepath.Join(f.folder, "5e55.jsonl"), []byte(strings.Join(lines[:900], "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.start(t, time.Minute)
	s := f.grow(t, "5e55.jsonl", lines, 900, 12)
	sameAs(t, f.records(t, "5e55", s.Log.Len()), s)
	if n := f.log.count("end_only=true"); n < 12 {
		t.Errorf("the end alone was read %d times:\n%s", n, f.log.lines.String())
	}
	if n := f.log.count("end_only=false"); n > 3 {
		t.Errorf("the file was read %d times from its start:\n%s", n, f.log.lines.String())
	}
	if all, err := session.New(f.store, nil); err != nil {
		t.Error(err)
	} else if hits, err := all.Search(t.Context(), "zebra399", session.SearchOptions{}); err != nil || len(hits) == 0 {
		t.Errorf("search: %v, %v", hits, err)
	}

	// A restart reads nothing again.
	f.stop()
	reads := f.log.count("read a recording")
	f.start(t, time.Minute)
	for !f.follower.Status().First {
		time.Sleep(5 * time.Millisecond)
	}
	if n := f.log.count("read a recording") - reads; n > 1 { // one if the last message was held back
		t.Errorf("after a restart, %d files were read", n)
	}
}

// A message that is pinned does not end the import of a growing session.
func TestFollowPinnedSession(t *testing.T) {
	f := newFollowing(t)
	lines := claudeLines("5e55", 10)
	if err := os.WriteFile(filepath.Join(f.folder, "5e55.jsonl"), []byte(strings.Join(lines[:16], "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.start(t, time.Nanosecond)
	f.records(t, "5e55", 16)
	all, err := session.New(f.store, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := all.Open(t.Context(), "5e55")
	if err != nil {
		t.Fatal(err)
	}
	spans, err := s.Spans("furl:1")
	if err == nil {
		err = s.Hold(t.Context(), furl.Pin, spans...)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.grow(t, "5e55.jsonl", lines, 16, 1)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		hits, err := all.Search(t.Context(), "zebra9", session.SearchOptions{})
		if err == nil && len(hits) > 0 && !hits[0].OffPath {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v, %v\n%s", hits, err, f.log.lines.String())
		}
	}
}

// Real recordings of each agent grow as if the agent wrote them.
func TestFollowRecordings(t *testing.T) {
	dir := recordings.Dir(t)
	for _, name := range []string{"agentv/26-9e1b9e5502-0.copilot.jsonl.gz", "agentv/1f-4427577930-0.codex.jsonl.gz", "pi-mono/large-session.jsonl.gz", "entire-cli/*.jsonl*"} {
		found, err := filepath.Glob(filepath.Join(dir, name))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", name, err)
		}
		t.Run(filepath.Base(found[0]), func(t *testing.T) {
			data, err := os.ReadFile(found[0])
			if err != nil {
				t.Fatal(err)
			}
			if z, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
				if data, err = io.ReadAll(z); err != nil {
					t.Fatal(err)
				}
			}
			f := newFollowing(t)
			lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
			from := len(lines) * 9 / 10
			if err := os.WriteFile(filepath.Join(f.folder, "a.jsonl"), []byte(strings.Join(lines[:from], "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			f.start(t, time.Minute)
			s := f.grow(t, "a.jsonl", lines, from, 2)
			got := f.records(t, recorded.SessionID(s), s.Log.Len())
			sameAs(t, got, s)
			t.Logf("%d bytes: %d times the end, %d times the whole", len(data), f.log.count("end_only=true"), f.log.count("end_only=false"))
		})
	}
}

// A database of an agent is followed too: each session of it is imported.
func TestFollowDatabase(t *testing.T) {
	f := newFollowing(t)
	statements, err := os.ReadFile(filepath.Join("..", "..", "..", "transcript", "testdata", "opencode-agents.sql"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(f.folder, "opencode.db")
	db, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = db.Exec(string(statements))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	hourAgo := time.Now().Add(-time.Hour) // its last steps are complete
	if err := os.Chtimes(path, hourAgo, hourAgo); err != nil {
		t.Fatal(err)
	}
	rec, err := (&transcript.Reader{Counter: token.O200k()}).ReadFile(path)
	if err != nil || len(rec.Sessions) != 3 {
		t.Fatal(rec, err)
	}
	f.start(t, time.Second)
	for _, s := range rec.Sessions {
		sameAs(t, f.records(t, furl.SessionID(s.ID), s.Log.Len()), s)
	}
}
