package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/furlhq/furl/internal/dev/needs"
)

func TestEdit(t *testing.T) {
	for _, c := range []struct {
		name, file, old, new string
		all                  bool
		want, err            string
	}{
		{name: "one line", file: "a\nb\nc\n", old: "b", new: "x", want: "a\nx\nc\n"},
		{name: "delete", file: "a\nb\nc\n", old: "b\n", new: "", want: "a\nc\n"},
		{name: "all", file: "a a a", old: "a", new: "bb", all: true, want: "bb bb bb"},
		{name: "all overlaps", file: "aaaaa", old: "aa", new: "b", all: true, want: "bba"},
		{name: "several", file: "a\na\nb a", old: "a", new: "b", err: "occurs 3 times, in lines 1, 2, 3"},
		{name: "overlap", file: "aaa", old: "aa", new: "b", err: "occurs 2 times, in lines 1, 1"},
		{name: "many", file: strings.Repeat("a\n", 50), old: "a", new: "b", err: "occurs 50 times, in lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …"},
		{name: "none", file: "a\n", old: "b", new: "c", err: "does not occur"},
		{name: "other spaces", file: "\n\nfunc a() {\n\treturn  1\n}\n", old: "func a() {\n    return 1\n}", new: "c", err: "line 3 has the same words with other spaces"},
		{name: "same", file: "a\n", old: "a", new: "a", err: "has no effect"},
		{name: "CRLF", file: "a\r\nb\r\nc\r\n", old: "a\nb\n", new: "x\ny\nz\n", want: "x\r\ny\r\nz\r\nc\r\n"},
		{name: "CRLF in the call", file: "a\r\nb\r\n", old: "a\r\nb", new: "x\r\ny", want: "x\r\ny\r\n"},
		{name: "CRLF from a line end", file: "a\r\nb\r\nc", old: "\nb", new: "\nx", want: "a\r\nx\r\nc"},
		{name: "CRLF in the call only", file: "a\nb\n", old: "a\r\nb", new: "x\r\ny", want: "x\ny\n"},
		{name: "mixed", file: "a\r\nb\nc\r\nd\r\n", old: "b\nc\n", new: "x\ny\n", want: "a\r\nx\r\ny\r\nd\r\n"},
		{name: "lone return", file: "a\rb\r\nc\r\n", old: "b", new: "x", want: "a\rx\r\nc\r\n"},
		{name: "no line", file: "a", old: "a", new: "b\r\nc", want: "b\r\nc"},
		{name: "byte order mark", file: "\xef\xbb\xbfa\n", old: "a\n", new: "b\n", want: "\xef\xbb\xbfb\n"},
		{name: "Latin-1", file: "caf\xe9\nb\n", old: "b", new: "ä", want: "caf\xe9\nä\n"},
		{name: "to nothing", file: "a", old: "a", new: "", want: ""},
		{name: "exists", file: "a", old: "", new: "b", err: "already exists"},
		{name: "empty file", file: "", old: "", new: "b", want: "b"},
		{name: "binary", file: "a\x00", old: "a", new: "b", err: "binary"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := openFolder(t, Options{}, map[string]string{"f": c.file})
			in := args{"path": "f", "old": c.old, "new": c.new, "all": c.all}
			if c.err != "" {
				refuse(t, f, "edit_file", in, c.err)
				c.want = c.file
			} else if _, err := call(t, f, "edit_file", in); err != nil {
				t.Error(err)
			}
			if got := get(t, f, "f"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if list, _ := os.ReadDir(f.dir); len(list) != 1 {
				t.Errorf("files %v", list)
			}
		})
	}
}

func TestEditKeepsMode(t *testing.T) {
	f := openFolder(t, Options{}, map[string]string{"run.sh": "#!/bin/sh\n", "locked": "a"})
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such permissions")
	}
	for name, mode := range map[string]fs.FileMode{"run.sh": 0o751, "locked": 0o444} {
		if err := os.Chmod(filepath.Join(f.dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, f, "edit_file", args{"path": "run.sh", "old": "/bin/sh", "new": "/bin/bash"}, "Edited run.sh: replaced 1 occurrence, line 1.")
	if info, err := os.Stat(filepath.Join(f.dir, "run.sh")); err != nil || info.Mode() != 0o751 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	refuse(t, f, "write_file", args{"path": "locked", "text": "b"}, "read-only")
}

// A file with a hard link outside of the folder, or in a folder of version control, can be
// read. A change replaces the file, so the other name keeps the old content.
func TestHardLinks(t *testing.T) {
	f := openFolder(t, Options{}, map[string]string{".git/config": "[core]\n"})
	outside := filepath.Join(t.TempDir(), "store.js")
	if err := os.WriteFile(outside, []byte("a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(f.dir, ".git/config")
	for from, to := range map[string]string{outside: "dep.js", config: "settings"} {
		if err := os.Link(from, filepath.Join(f.dir, to)); err != nil {
			t.Skip("the file system has no hard links: ", err)
		}
	}
	expect(t, f, "read_file", args{"path": "dep.js"}, "a\n")
	expect(t, f, "edit_file", args{"path": "dep.js", "old": "a", "new": "b"}, "Edited dep.js: replaced 1 occurrence, line 1.")
	expect(t, f, "write_file", args{"path": "settings", "text": "[core]\nfsmonitor = x\n"}, "Replaced settings: 21 bytes.")
	for name, want := range map[string]string{outside: "a\n", config: "[core]\n", filepath.Join(f.dir, "dep.js"): "b\n"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v; want %q", name, got, err, want)
		}
	}
}

// Files that make version control run commands are changed with run_command only, by which
// name ever they are reached.
func TestVersionControl(t *testing.T) {
	f := openFolder(t, Options{}, map[string]string{".git/config": "[core]\n", "sub/.git": "gitdir: x\n", "a/.github/x.yml": "a\n", ".gitignore": "a\n"})
	if err := os.Symlink(".git", filepath.Join(f.dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{".git/config", ".git/hooks/post-checkout", ".GIT/config", "link/config", "sub/.git", "new/.git", "a/.hg/hgrc", ".jj/repo/config.toml", "./a/../.git/config"} {
		refuse(t, f, "write_file", args{"path": path, "text": "[core]\nfsmonitor = x\n"}, "run_command")
		refuse(t, f, "edit_file", args{"path": path, "old": "", "new": "x"}, "run_command")
	}
	expect(t, f, "read_file", args{"path": ".git/config"}, "[core]\n")
	expect(t, f, "edit_file", args{"path": ".gitignore", "old": "a", "new": "b"}, "Edited .gitignore: replaced 1 occurrence, line 1.")
	expect(t, f, "edit_file", args{"path": "a/.github/x.yml", "old": "a", "new": "b"}, "Edited a/.github/x.yml: replaced 1 occurrence, line 1.")
	if text, err := os.ReadFile(filepath.Join(f.dir, ".git", "config")); err != nil || string(text) != "[core]\n" {
		t.Errorf(".git/config has %q, %v", text, err)
	}
}

func TestPreview(t *testing.T) {
	f := openFolder(t, Options{}, map[string]string{"f": "a\r\nb\r\n", "image": "\x89PNG\r\n\x1a\n\x00", ".git/hooks/x": "a"})
	preview := func(name string, in args) Preview {
		t.Helper()
		input, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		tools := f.Tools()
		p, err := tools[slices.IndexFunc(tools, func(t Tool) bool { return t.Name == name })].Preview(t.Context(), input)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := preview("edit_file", args{"path": "f", "old": "b", "new": "c"}); p.Title != "Edit f" || p.Diff != "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n" || p.Note != "" {
		t.Errorf("%+v", p)
	}
	if p := preview("edit_file", args{"path": "new/f", "old": "", "new": "c\n"}); p.Title != "Create new/f" || p.Diff != "--- /dev/null\n+++ new/f\n@@ -0,0 +1,1 @@\n+c\n" {
		t.Errorf("%+v", p)
	}
	if p := preview("write_file", args{"path": "f", "text": "c\n"}); p.Title != "Replace f" || !strings.Contains(p.Diff, "+c\n") {
		t.Errorf("%+v", p)
	}
	if p := preview("write_file", args{"path": "long", "text": strings.Repeat("line\n", 1<<19)}); len(p.Diff) > maxDiff+100 || !strings.HasSuffix(p.Diff, "more bytes.]\n") {
		t.Errorf("a diff of %d bytes", len(p.Diff))
	}
	if p := preview("run_command", args{"command": "go test ./..."}); p.Title != "Run a command" || p.Command != "go test ./..." || !strings.Contains(p.Note, "not confined") {
		t.Errorf("%+v", p)
	}
	refuse(t, f, "write_file", args{"path": "image", "text": "x"}, "binary")
	if list, _ := os.ReadDir(f.dir); len(list) != 3 {
		t.Errorf("a preview has changed files: %v", list)
	}
}

// After any edits, restoring gives the bytes that the files had, and restoring again
// what they had before that.
func TestRestoreProperty(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, copies := t.TempDir(), t.TempDir()
		record := uint64(0)
		f, err := Open(dir, &Options{Copies: copies, Record: func() uint64 { return record }})
		if err != nil {
			r.Fatal(err)
		}
		defer f.Close()
		names := []string{"a", "dir/b", "dir/deep/c"}
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab\r\n"))).Filter(func(s string) bool { return len(s) < 40 })
		state := func() string {
			var all []string
			for _, name := range names {
				data, err := os.ReadFile(filepath.Join(dir, name))
				all = append(all, fmt.Sprintf("%s %q %v", name, data, errors.Is(err, fs.ErrNotExist)))
			}
			return strings.Join(all, "\n")
		}
		states := []string{state()}
		for range rapid.IntRange(1, 10).Draw(r, "steps") {
			record = uint64(len(states) - 1)
			name := rapid.SampledFrom(names).Draw(r, "name")
			tl, in := "write_file", any(writeInput{Path: name, Text: text.Draw(r, "text")})
			switch rapid.IntRange(0, 3).Draw(r, "kind") {
			case 0:
				tl, in = "edit_file", editInput{Path: name, Old: text.Draw(r, "old"), New: text.Draw(r, "new"), All: rapid.Bool().Draw(r, "all")}
			case 1: // restore an older state
				since := rapid.IntRange(0, len(states)-1).Draw(r, "since")
				restore(r, f, uint64(since))
				if got := state(); got != states[since] {
					r.Fatalf("restored to record %d:\n%s\nwant\n%s", since, got, states[since])
				}
				states = append(states, state())
				continue
			}
			input, err := json.Marshal(in)
			if err != nil {
				r.Fatal(err)
			}
			for _, tool := range f.Tools() {
				if tool.Name == tl {
					_, _ = tool.Run(t.Context(), input) // many have no effect
				}
			}
			states = append(states, state())
		}
	})
}

func restore(t interface{ Fatal(...any) }, f *Folder, record uint64) {
	changes, err := f.Changes(record)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if c.Others || c.Problem != "" {
			t.Fatal(fmt.Sprintf("%+v", c))
		}
	}
	skipped, err := f.Restore(changes, false)
	if err != nil || len(skipped) > 0 {
		t.Fatal(skipped, err)
	}
}

// Files that others have changed are reported, and not overwritten unless told.
func TestRestoreChangedByOthers(t *testing.T) {
	files := map[string]string{"mine": "1", "theirs": "1", "between": "1", "late": "1", "gone": "1", "folder": "1", "back": "1"}
	f := openFolder(t, Options{Copies: t.TempDir()}, files)
	for name := range files {
		expect(t, f, "write_file", args{"path": name, "text": "2"}, "Replaced")
	}
	expect(t, f, "write_file", args{"path": "new", "text": "2"}, "Created")
	put(t, filepath.Join(f.dir, "theirs"), "other")
	put(t, filepath.Join(f.dir, "between"), "other")
	expect(t, f, "write_file", args{"path": "between", "text": "3"}, "Replaced")
	put(t, filepath.Join(f.dir, "back"), "1")
	for _, name := range []string{"gone", "folder"} {
		if err := os.Remove(filepath.Join(f.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(f.dir, "folder", "x"), "")

	changes, err := f.Changes(0)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range changes {
		got[c.Path] = fmt.Sprint(c.Others, c.Problem != "", c.Remove, c.Diff != "")
	}
	want := map[string]string{
		"mine": "false false false true", "late": "false false false true", "theirs": "true false false true", "between": "true false false true",
		"gone": "true false false true", "folder": "true true false false", "new": "false false true true",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got %v\nwant %v", got, want)
	}
	put(t, filepath.Join(f.dir, "late"), "after the list")
	skipped, err := f.Restore(changes, false)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range skipped {
		names = append(names, c.Path)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "between folder gone late theirs" {
		t.Errorf("skipped %s", got)
	}
	if get(t, f, "mine") != "1" || get(t, f, "late") != "after the list" || get(t, f, "theirs") != "other" || get(t, f, "between") != "3" {
		t.Error("files were not restored, or overwritten")
	}
	if _, err := os.Stat(filepath.Join(f.dir, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a new file was not removed")
	}
	if changes, err = f.Changes(0); err != nil {
		t.Fatal(err)
	}
	if skipped, err = f.Restore(changes, true); err != nil || len(skipped) != 1 || skipped[0].Path != "folder" {
		t.Errorf("skipped %v, %v", skipped, err)
	}
	for _, name := range []string{"mine", "late", "theirs", "between", "gone"} {
		if get(t, f, name) != "1" {
			t.Errorf("%s was not restored", name)
		}
	}
}

// Copies are not visible to the tools if they are in the folder, have a limit, and are
// not used if they are damaged.
func TestCopies(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "f"), "a")
	store := filepath.Join(dir, "data", "copies")
	f := reopen(t, dir, Options{Copies: store, MaxCopies: 10})
	expect(t, f, "write_file", args{"path": "f", "text": "0123456789"}, "Replaced")
	refuse(t, f, "read_file", args{"path": "data/copies/journal.jsonl"}, "cannot be read or changed")
	refuse(t, f, "write_file", args{"path": "data/copies/files/x", "text": "x"}, "cannot be read or changed")
	if got, err := call(t, f, "list_files", args{"depth": 9}); err != nil || got != "data/\nf\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := call(t, f, "search_files", args{"pattern": "record"}); err != nil || !strings.HasPrefix(got, "No matches in 1 file.") {
		t.Errorf("got %q, %v", got, err)
	}
	input := []byte(`{"path":"f","text":"b"}`)
	if _, err := f.writeTool().Run(t.Context(), input); err == nil || !strings.Contains(err.Error(), "limit of 10 bytes") || get(t, f, "f") != "0123456789" {
		t.Errorf("a change without a copy: %v", err)
	}
	if err := os.WriteFile(filepath.Join(store, "files", digest([]byte("a"))), []byte("b"), 0o600); err != nil {
		t.Fatal(err)
	}
	changes, err := f.Changes(0)
	if err != nil || len(changes) != 1 || !strings.Contains(changes[0].Problem, "damaged") {
		t.Errorf("changes %+v, %v", changes, err)
	}
	if skipped, err := f.Restore(changes, true); err != nil || len(skipped) != 1 || get(t, f, "f") != "0123456789" {
		t.Errorf("restored a damaged copy: %v", err)
	}
	// A journal of another folder does not lead out of this one.
	journal := filepath.Join(store, "journal.jsonl")
	for line, want := range map[string]string{
		`{"path":"../x","old":"","new":"` + digest([]byte("b")) + `"}`:        "outside",
		`{"path":"f","old":"../../../f","new":"` + digest([]byte("b")) + `"}`: "invalid digest",
		"{}x": "line 1",
	} {
		if err := os.WriteFile(journal, []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		changes, err := reopen(t, dir, Options{Copies: store}).Changes(0)
		if got := fmt.Sprint(changes, err); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", line, got, want)
		}
	}
	// A line that was not written completely does not count.
	if err := os.WriteFile(journal, []byte(`{"path":"f","old":"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if changes, err := reopen(t, dir, Options{Copies: store}).Changes(0); err != nil || len(changes) != 0 {
		t.Errorf("changes %+v, %v", changes, err)
	}
}

// No input of a call makes a tool panic or changes anything outside of the folder.
func FuzzTools(f *testing.F) {
	for _, seed := range []string{
		`{"path":"in.txt"}`, `{"path":"link/x","old":"","new":"x"}`, `{"path":"../x","text":"x"}`, `{"pattern":"a","glob":"**/{a,b}"}`,
		`{"path":"in.txt","old":"a\r\n","new":"b","all":true}`, `{"path":"up/../link/out.txt","text":"x"}`, `{"path":"in.txt","offset":9223372036854775807,"limit":1}`,
		`{"depth":9223372036854775807}`, `{"path":"a/./b//c/","text":"x"}`, `null`, ``, `[]`, `{"path":"\u0000"}`,
	} {
		for i := range byte(5) {
			f.Add(i, []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, which byte, input []byte) {
		base := t.TempDir()
		out := filepath.Join(base, "outside")
		put(t, filepath.Join(out, "out.txt"), "out")
		dir := filepath.Join(base, "dir")
		put(t, filepath.Join(dir, "in.txt"), "a\r\nb\n")
		needs.Symlink(t, out, filepath.Join(dir, "link"))
		needs.Symlink(t, "..", filepath.Join(dir, "up"))
		folder := reopen(t, dir, Options{})
		tl := folder.Tools()[which%5] // not run_command
		if tl.Preview != nil {
			_, _ = tl.Preview(t.Context(), input)
		}
		_, _ = tl.Run(t.Context(), input)
		list, err := os.ReadDir(base)
		inside, err2 := os.ReadDir(out)
		data, err3 := os.ReadFile(filepath.Join(out, "out.txt"))
		if err := errors.Join(err, err2, err3); err != nil || len(list) != 2 || len(inside) != 1 || !bytes.Equal(data, []byte("out")) {
			t.Errorf("%s %s: changed files outside: %v, %v, %q, %v", tl.Name, input, list, inside, data, err)
		}
		if !tl.Changes && get(t, folder, "in.txt") != "a\r\nb\n" {
			t.Errorf("%s has changed a file", tl.Name)
		}
	})
}
