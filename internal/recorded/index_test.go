package recorded

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl/internal/index"
	"github.com/furlhq/furl/internal/packed"
	"github.com/furlhq/furl/replay"
)

// replayed replays a folder and returns all of the report, and how many recordings were read.
func replayed(t *testing.T, dir string, x *index.Index, filter Filter, windows ...int) (report string, read int) {
	t.Helper()
	source, err := Sources(nil, []string{dir})
	if err != nil {
		t.Error(err)
		return "", 0
	}
	source.Index, source.Filter = x, filter
	candidates, err := replay.Candidates(nil, "none", "rolling-mask-5")
	if err != nil {
		t.Error(err)
		return "", 0
	}
	inputs := source.Inputs(fmt.Sprint(windows))
	rep, err := replay.RunInputs(context.Background(), func(yield func(replay.Input) bool) {
		for in := range inputs {
			if in.Recording != nil {
				read++
			}
			if !yield(in) {
				return
			}
		}
	}, replay.Options{Candidates: candidates, Windows: windows})
	if err != nil {
		t.Error(err)
		return "", 0
	}
	x.Close()
	var out strings.Builder
	for i := range rep.Recordings {
		fmt.Fprintf(&out, "%s %q\n", filepath.Base(rep.Recordings[i].File), packed.Marshal(rep.Recordings[i]))
	}
	fmt.Fprintf(&out, "%q\n%d repeated\n%q\n%q\n%v", packed.Marshal(rep.Totals), rep.Repeated, rep.Notes, source.Unknown, source.Failed)
	return out.String(), read
}

// manyRecordings is a folder with recordings of many agents, forks, companions, databases and files of no agent, none
// of which has changed lately.
func manyRecordings(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	from := filepath.Join("..", "..", "transcript", "testdata")
	if err := os.CopyFS(filepath.Join(dir, "agents"), os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"opencode-agents", "openclaw-agents", "kilo"} {
		text, err := os.ReadFile(filepath.Join(from, name+".sql"))
		if err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("sqlite", filepath.Join(dir, name+".db"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(string(text)); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"forks/b.jsonl": claudeText("b", "c", 2, 2), "forks/c.jsonl": claudeText("c", "", 0, 4), "forks/copy.jsonl": claudeText("c", "", 0, 4),
		"forks/d.jsonl": claudeText("d", "b", 3, 1), "forks/orphan.jsonl": claudeText("o", "gone", 2, 1), "forks/x.txt": "no recording",
		"codex/f.jsonl": codexText("0f", "0p", 2, 1), "codex/p.jsonl": codexText("0p", "", 0, 3),
	} {
		write(t, filepath.Join(dir, name), text)
	}
	ageAll(t, dir, time.Hour)
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ageAll sets the times of all files that have changed lately.
func ageAll(t *testing.T, dir string, by time.Duration) {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && time.Since(info.ModTime()) < by {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		old := time.Now().Add(-by)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
}

// A report is the same with the index, whatever it has and whatever happens to it.
func TestIndexSameReport(t *testing.T) {
	if testing.Short() {
		t.Skip("replays many recordings many times")
	}
	dir, at := manyRecordings(t), filepath.Join(t.TempDir(), "index")
	none := 0
	same := func(what string, most int, filter Filter, windows ...int) {
		t.Helper()
		want, all := replayed(t, dir, nil, filter, windows...)
		got, read := replayed(t, dir, index.Open(at), filter, windows...)
		if got != want {
			t.Fatalf("%s: the report with the index is different:\n%s", what, difference(got, want))
		}
		if most == none && read == all {
			t.Errorf("%s: all of %d recordings were read", what, all)
		}
		if most > none && read > most {
			t.Errorf("%s: %d of %d recordings were read, want at most %d", what, read, all, most)
		}
	}
	first, all := replayed(t, dir, index.Open(at), Filter{})
	if without, _ := replayed(t, dir, nil, Filter{}); first != without {
		t.Fatalf("without entries the report is different:\n%s", difference(first, without))
	}
	if all < 60 {
		t.Fatalf("%d recordings", all)
	}
	// Recordings that are read each time: with records that cannot be read, and requests that a provider refuses.
	_, always := replayed(t, dir, index.Open(at), Filter{})
	if always > 20 {
		t.Errorf("%d of %d recordings were read again", always, all)
	}
	same("unchanged", always, Filter{})
	same("another option", all, Filter{}, 20_000)
	same("another option again", always, Filter{}, 20_000)
	project := Filter{InProject: func(p string) bool { return p == "/p" }, Project: "/p"}
	same("a project", all, project)
	same("a project again", always, project)
	same("an age", always+2, Filter{After: time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)})

	write(t, filepath.Join(dir, "forks", "c.jsonl"), claudeText("c", "", 0, 5))
	same("a parent is being written", none, Filter{})
	ageAll(t, dir, 30*time.Minute)
	same("a parent has changed", always+4, Filter{})
	same("unchanged since", always, Filter{})
	write(t, filepath.Join(dir, "forks", "z.jsonl"), claudeText("gone", "", 0, 3))
	ageAll(t, dir, 20*time.Minute)
	same("a parent is added", always+2, Filter{})
	if err := os.Remove(filepath.Join(dir, "forks", "c.jsonl")); err != nil {
		t.Fatal(err)
	}
	same("a parent is removed", always+4, Filter{})
	same("unchanged again", always, Filter{})
	for _, side := range []string{"agents/roo/ui_messages.json"} {
		if _, err := os.Stat(filepath.Join(dir, side)); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, side), "[]")
	}
	same("files beside a recording have changed", none, Filter{})
	rollouts, err := filepath.Glob(filepath.Join(dir, "agents", "rollout-*_*.jsonl"))
	if err != nil || len(rollouts) == 0 {
		t.Fatal(err, rollouts)
	}
	for _, name := range rollouts {
		if err := os.Rename(name, filepath.Join(dir, "forks", filepath.Base(name))); err != nil {
			t.Fatal(err)
		}
	}
	same("a rollout that others continue is elsewhere", none, Filter{})
	db, err := sql.Open("sqlite", filepath.Join(dir, "opencode-agents.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{`pragma journal_mode = wal`, `delete from message where rowid = (select max(rowid) from message)`} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	same("a database has a write-ahead log", none, Filter{})
	ageAll(t, dir, 15*time.Minute)
	same("it has it still", always+8, Filter{})
	same("it has it still, unchanged", always, Filter{})

	rng := rand.New(rand.NewPCG(3, 4))
	for range 3 {
		damage(t, at, rng)
		same("damaged", all, Filter{})
	}
	if err := os.RemoveAll(at); err != nil {
		t.Fatal(err)
	}
	ageAll(t, dir, 10*time.Minute)
	want, _ := replayed(t, dir, nil, Filter{})
	var at1 sync.WaitGroup
	for range 3 {
		at1.Go(func() {
			if got, _ := replayed(t, dir, index.Open(at), Filter{}); got != want {
				t.Error("a report of two at once is different")
			}
		})
	}
	at1.Wait()
	same("written by several", always+2, Filter{})
}

// difference returns the first lines that differ.
func difference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d:\n%.600s\nwant\n%.600s", i, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(a), len(b))
}

// damage truncates and changes entry files.
func damage(t *testing.T, dir string, rng *rand.Rand) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.idx"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		switch n := rng.IntN(len(data)); rng.IntN(4) {
		case 0:
			data = data[:n]
		case 1:
			data[n] ^= byte(1 + rng.IntN(255))
		case 2:
			data = append(bytes.Repeat([]byte{0}, n), data[n:]...)
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Nothing that a recording says can be read in the index.
func TestIndexHasNoText(t *testing.T) {
	dir, at := t.TempDir(), filepath.Join(t.TempDir(), "index")
	const secret = "Planted7Secret"
	text := claudeText("s-"+secret, "", 0, 3)
	text = strings.NewReplacer("Done.", "Done "+secret, "claude-opus-4-6", "claude-"+secret, `"cwd":"/p"`, `"cwd":"/`+secret+`"`, "end_turn", secret).Replace(text)
	text += `{"type":"summary","summary":"` + secret + `"}` + "\n"
	write(t, filepath.Join(dir, "a.jsonl"), text)
	write(t, filepath.Join(dir, "b.jsonl"), text+"{"+secret+"\n")
	write(t, filepath.Join(dir, "c.txt"), secret)
	tools := `{"type":"assistant","uuid":"z","sessionId":"t","timestamp":"2026-09-10T10:00:00Z","message":{"id":"m","role":"assistant","model":"claude-opus-4-6","content":[{"type":"tool_use","id":"` + secret + `","name":"` + secret + `","input":{"x":"` + secret + `"}}],"usage":{"input_tokens":10,"output_tokens":2}}}` + "\n"
	write(t, filepath.Join(dir, "d.jsonl"), claudeText("t", "", 0, 1)+tools)
	ageAll(t, dir, time.Hour)
	first, _ := replayed(t, dir, index.Open(at), Filter{})
	second, read := replayed(t, dir, index.Open(at), Filter{})
	if first != second || read != 1 {
		t.Errorf("%d recordings were read, want only the one with a damaged record:\n%s", read, difference(second, first))
	}
	if !strings.Contains(first, secret) {
		t.Error("the report does not name the model")
	}
	files, size := index.Files(at)
	if len(files) < 3 || size < 1000 {
		t.Fatalf("%d files with %d bytes", len(files), size)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(bytes.ToLower(data), bytes.ToLower([]byte(secret))) || bytes.Contains(data, []byte("Task ")) {
			t.Errorf("%s has text of a recording", name)
		}
	}
}
