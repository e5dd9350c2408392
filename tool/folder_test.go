package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/furlhq/furl/internal/dev/needs"
)

// openFolder opens a folder with files.
func openFolder(t *testing.T, o Options, files map[string]string) *Folder {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		put(t, filepath.Join(dir, name), text)
	}
	return reopen(t, dir, o)
}

func reopen(t *testing.T, dir string, o Options) *Folder {
	t.Helper()
	f, err := Open(dir, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, f *Folder, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

type args map[string]any

// call makes a call, and the preview before it. A failed preview must predict a failed
// call.
func call(t *testing.T, f *Folder, name string, in any) (string, error) {
	t.Helper()
	input, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return callJSON(t, t.Context(), f, name, input)
}

func callJSON(t *testing.T, ctx context.Context, f *Folder, name string, input []byte) (string, error) {
	t.Helper()
	tools := f.Tools()
	i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == name })
	var previewed error
	if tools[i].Preview != nil {
		_, previewed = tools[i].Preview(ctx, input)
	}
	r, err := tools[i].Run(ctx, input)
	if (previewed != nil) != (err != nil) && tools[i].Changes && ctx.Err() == nil {
		t.Errorf("%s %s: the preview has error %v, the call %v", name, input, previewed, err)
	}
	return r.Text(), err
}

// expect makes a call that must succeed with a result that contains want.
func expect(t *testing.T, f *Folder, name string, in any, want string) {
	t.Helper()
	got, err := call(t, f, name, in)
	if err != nil || !strings.Contains(got, want) {
		t.Errorf("%s %v: got %q, %v; want %q", name, in, got, err, want)
	}
}

// refuse makes a call that must fail with an error that contains want.
func refuse(t *testing.T, f *Folder, name string, in any, want string) {
	t.Helper()
	got, err := call(t, f, name, in)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s %v: got %q, %v; want the error %q", name, in, got, err, want)
	}
}

func TestTools(t *testing.T) {
	f := openFolder(t, Options{}, nil)
	var names []string
	for _, tl := range f.Tools() {
		names = append(names, tl.Name)
		var schema struct {
			Type       string                    `json:"type"`
			Properties map[string]map[string]any `json:"properties"`
			Required   []string                  `json:"required"`
		}
		if err := json.Unmarshal(tl.Schema, &schema); err != nil || schema.Type != "object" || len(schema.Properties) == 0 {
			t.Errorf("%s: schema %s: %v", tl.Name, tl.Schema, err)
		}
		for name, p := range schema.Properties {
			if p["type"] == nil || p["description"] == nil {
				t.Errorf("%s: the property %s has no type or no description", tl.Name, name)
			}
		}
		for _, name := range schema.Required {
			if schema.Properties[name] == nil {
				t.Errorf("%s: unknown required property %s", tl.Name, name)
			}
		}
		if tl.Changes != (tl.Preview != nil) || tl.Description == "" {
			t.Errorf("%s: a preview is missing or not needed", tl.Name)
		}
	}
	if got := strings.Join(names, " "); got != "read_file list_files search_files edit_file write_file run_command" {
		t.Errorf("tools %s", got)
	}
}

func TestRead(t *testing.T) {
	long := strings.Repeat("0123456789abcde\n", 5000)
	f := openFolder(t, Options{}, map[string]string{
		"a.txt": "one\ntwo\nthree", "crlf.txt": "one\r\ntwo\r\n", "empty": "", "bom.txt": "\xef\xbb\xbfone\n", "long.txt": long,
		"wide.txt": strings.Repeat("ä", 5000) + "\nnext\n", "latin.txt": "caf\xe9\n", "nul": "a\x00b", "utf16": "\xff\xfea\x00",
		"late": strings.Repeat("x", sniffLength) + "\x00\n", "dir/x": "", "split.txt": strings.Repeat("x", 1999) + "\r\ny\n",
		"image.PNG": "\x89PNG\r\n\x1a\nrest", "big.gif": "GIF89a" + strings.Repeat("x", maxImage),
	})
	for _, c := range []struct {
		in   args
		want string
	}{
		{args{"path": "a.txt"}, "one\ntwo\nthree\n"},
		{args{"path": "a.txt", "numbers": true}, "     1\tone\n     2\ttwo\n     3\tthree\n"},
		{args{"path": "a.txt", "offset": 2, "limit": 1}, "two\n\n[Lines 2 to 2. The file continues: read it from offset 3.]"},
		{args{"path": "a.txt", "offset": 3, "limit": 1}, "three\n"},
		{args{"path": "a.txt", "limit": math.MaxInt64}, "one\ntwo\nthree\n"},
		{args{"path": filepath.Join(f.dir, "a.txt")}, "one\ntwo\nthree\n"},
		{args{"path": "./dir/../a.txt"}, "one\ntwo\nthree\n"},
		{args{"path": "crlf.txt"}, "one\ntwo\n"},
		{args{"path": "split.txt"}, strings.Repeat("x", 1999) + "\ny\n"},
		{args{"path": "empty"}, "(The file is empty.)"},
		{args{"path": "bom.txt"}, "one\n"},
		{args{"path": "latin.txt"}, "caf\uFFFD\n"},
		{args{"path": "wide.txt"}, strings.Repeat("ä", 1000) + " [8,000 more bytes]\nnext\n\n[Lines of more than 2,000 bytes are cut. search_files finds text in them.]"},
		{args{"path": "long.txt"}, long[:16*2000] + "\n[Lines 1 to 2000. The file continues: read it from offset 2001.]"},
		{args{"path": "long.txt", "offset": 1001, "limit": 5000}, long[:16*3750] + "\n[Lines 1001 to 4750. The file continues: read it from offset 4751.]"},
	} {
		if got, err := call(t, f, "read_file", c.in); err != nil || got != c.want {
			t.Errorf("%v: got %.300q, %v; want %.300q", c.in, got, err, c.want)
		}
	}
	if text, err := call(t, f, "read_file", args{"path": "late"}); err != nil || strings.Contains(text, "\x00") {
		t.Errorf("a zero byte in a result: %v", err)
	}
	for _, c := range []struct {
		in   args
		want string
	}{
		{args{}, "path is empty"},
		{args{"path": "none"}, `"none" does not exist`},
		{args{"path": "a.txt/b"}, `"a.txt/b"`},
		{args{"path": "dir"}, `"dir" is a folder`},
		{args{"path": "nul"}, `"nul" is a binary file`},
		{args{"path": "utf16"}, "UTF-16"},
		{args{"path": "big.gif"}, "the maximum is 3,750,000"},
		{args{"path": "a.txt", "offset": 9}, "invalid offset 9: the file has 3 lines"},
		{args{"path": "a.txt", "offset": -1}, "invalid offset -1"},
		{args{"path": "a.txt", "offset": "1"}, `invalid input: "offset" is a JSON string: expected an integer`},
		{args{"path": "a.txt", "start": 1}, `unknown field "start"`},
		{args{"path": "a\x00b"}, "zero byte"},
	} {
		refuse(t, f, "read_file", c.in, c.want)
	}
	input := []byte(`{"path":"image.PNG"}`)
	r, err := f.Tools()[0].Run(t.Context(), input)
	if err != nil || len(r.Parts) != 1 || r.Parts[0].Type != "image/png" || !bytes.HasSuffix(r.Parts[0].Data, []byte("rest")) {
		t.Errorf("image: %v, %v", r, err)
	}
}

func TestList(t *testing.T) {
	f := openFolder(t, Options{}, map[string]string{
		"b.txt": "", "a/x.txt": "", "a/deep/er/y.txt": "", ".git/config": "", ".hidden": "", "node_modules/m/index.js": "", "a-b": "", "bell\u202e": "",
	})
	for _, c := range []struct {
		in   args
		want string
	}{
		{args{}, "\"bell\\u202e\"\n.hidden\na-b\na/\na/deep/\na/x.txt\nb.txt\nnode_modules/\n"},
		{args{"depth": 1}, "\"bell\\u202e\"\n.hidden\na-b\na/\nb.txt\nnode_modules/\n"},
		{args{"path": "a", "depth": 9}, "a/deep/\na/deep/er/\na/deep/er/y.txt\na/x.txt\n"},
		{args{"path": "node_modules"}, "node_modules/m/\nnode_modules/m/index.js\n"},
		{args{"path": "a/deep/er/.."}, "a/deep/er/\na/deep/er/y.txt\n"},
	} {
		if got, err := call(t, f, "list_files", c.in); err != nil || got != c.want {
			t.Errorf("%v: got %q, %v; want %q", c.in, got, err, c.want)
		}
	}
	refuse(t, f, "list_files", args{"path": "b.txt"}, `"b.txt" is not a folder`)
	refuse(t, f, "list_files", args{"path": "none"}, `"none" does not exist`)
	refuse(t, f, "list_files", args{"depth": -1}, "invalid depth")
	for i := range maxListed + 10 {
		put(t, filepath.Join(f.dir, "many", "sub", fmt.Sprintf("%04d", i)), "")
	}
	got, err := call(t, f, "list_files", args{"depth": 9})
	if n := strings.Count(got, "\n"); err != nil || n != maxListed+1 || !strings.Contains(got, "\nb.txt\n") || !strings.Contains(got, "more than 1,000 entries") {
		t.Errorf("%d lines, %v: %.200q", n, err, got)
	}
}

func TestSearch(t *testing.T) {
	f := openFolder(t, Options{}, map[string]string{
		"a.go": "package a\n\nfunc A() {}\r\n", "sub/b.go": "\xef\xbb\xbfpackage b\nfunc B() {}\n", "sub/c.txt": "package c\n", "bin": "\x00package\n",
		".git/x": "package git\n", "node_modules/m.go": "package m\n", "wide.txt": strings.Repeat("ä", 3000) + "needle" + strings.Repeat("ö", 3000),
		"many": strings.Repeat("many\n", 300),
	})
	for _, c := range []struct {
		in   args
		want string
	}{
		{args{"pattern": "^package"}, "a.go:1: package a\nsub/b.go:1: package b\nsub/c.txt:1: package c\n"},
		{args{"pattern": "^package", "glob": "*.go"}, "a.go:1: package a\nsub/b.go:1: package b\n"},
		{args{"pattern": "^package", "glob": "sub/*.{go,md}"}, "sub/b.go:1: package b\n"},
		{args{"pattern": "^package", "glob": "**/*.txt"}, "sub/c.txt:1: package c\n"},
		{args{"pattern": "^package", "path": "sub"}, "sub/b.go:1: package b\nsub/c.txt:1: package c\n"},
		{args{"pattern": "^package", "path": "a.go", "glob": "*.txt"}, "a.go:1: package a\n"},
		{args{"pattern": "(?i)FUNC.*}$"}, "a.go:3: func A() {}\nsub/b.go:2: func B() {}\n"},
		{args{"pattern": "^package", "path": "node_modules"}, "node_modules/m.go:1: package m\n"},
		{args{"pattern": "nothing here"}, "No matches in 5 files.\n"},
	} {
		if got, err := call(t, f, "search_files", c.in); err != nil || got != c.want {
			t.Errorf("%v: got %q, %v; want %q", c.in, got, err, c.want)
		}
	}
	got, err := call(t, f, "search_files", args{"pattern": "needle"})
	if err != nil || !strings.Contains(got, "needle") || len(got) > 400 || strings.Contains(got, "\uFFFD") {
		t.Errorf("got %q, %v", got, err)
	}
	got, err = call(t, f, "search_files", args{"pattern": "many"})
	if err != nil || strings.Count(got, "many:") != maxMatches || !strings.Contains(got, "more matches than 200") {
		t.Errorf("got %q, %v", got, err)
	}
	refuse(t, f, "search_files", args{"pattern": "("}, "invalid pattern")
	refuse(t, f, "search_files", args{"pattern": ""}, "invalid pattern")
	refuse(t, f, "search_files", args{"pattern": "a", "glob": "["}, `invalid glob "["`)
	refuse(t, f, "search_files", args{"pattern": "a", "path": "none"}, "does not exist")
}

// Paths that lead out of the folder are refused by all tools that have one, whatever
// they are to do. Nothing outside changes.
func TestConfinement(t *testing.T) {
	f := openFolder(t, Options{}, map[string]string{"in.txt": "in", "dir/in.txt": "in"})
	secret := t.TempDir()
	put(t, filepath.Join(secret, "secret.txt"), "secret")
	link := func(target, name string) {
		t.Helper()
		needs.Symlink(t, target, filepath.Join(f.dir, name))
	}
	link(filepath.Join(secret, "secret.txt"), "file")
	link(secret, "folder")
	link("file", "chain1")
	link("chain1", "chain2")
	link("../../../../../../../../etc/passwd", "up")
	link("dir/../../x", "updir")
	link(filepath.Join(secret, "new.txt"), "dangling")
	link("none", "inside-dangling")
	link("loop", "loop")
	link("dir", "inside")
	link("../in.txt", "dir/back")
	link(filepath.Join(f.dir, "dir"), "absolute-inside")
	sibling := f.dir + "-sibling"
	put(t, filepath.Join(sibling, "x"), "secret")
	t.Cleanup(func() { _ = os.RemoveAll(sibling) })
	outsidePaths := []string{
		"..", "../x", "dir/../../x", "/", "/etc/passwd", filepath.Join(secret, "secret.txt"), f.dir + "/../x", sibling + "/x", "file", "folder/secret.txt", "folder/new.txt",
		"folder", "chain1", "chain2", "up", "updir", "dangling", "dangling/x", "inside/../../x", "dir/back/../../../x", strings.ToUpper(f.dir) + "/in.txt",
	}
	for _, path := range outsidePaths {
		if path == strings.ToUpper(f.dir)+"/in.txt" && runtime.GOOS != "linux" {
			continue // the same folder
		}
		for name, in := range map[string]args{
			"read_file": {"path": path}, "list_files": {"path": path}, "search_files": {"pattern": "s", "path": path},
			"edit_file": {"path": path, "old": "secret", "new": "x"}, "write_file": {"path": path, "text": "x"},
		} {
			got, err := call(t, f, name, in)
			if err == nil || !strings.Contains(err.Error(), "outside of the working folder") || !strings.Contains(err.Error(), path) {
				t.Errorf("%s %s: got %q, %v", name, path, got, err)
			}
		}
	}
	refuse(t, f, "read_file", args{"path": "loop"}, "symbolic links")
	refuse(t, f, "read_file", args{"path": "inside-dangling"}, "does not exist")
	expect(t, f, "read_file", args{"path": "inside/in.txt"}, "in")
	expect(t, f, "read_file", args{"path": "absolute-inside/in.txt"}, "in")
	expect(t, f, "read_file", args{"path": "dir/back"}, "in")
	got, err := call(t, f, "search_files", args{"pattern": "secret"})
	if err != nil || !strings.HasPrefix(got, "No matches") {
		t.Errorf("got %q, %v", got, err)
	}
	// Editing a link changes the file that it leads to.
	expect(t, f, "edit_file", args{"path": "dir/back", "old": "in", "new": "out"}, "Edited in.txt")
	if get(t, f, "in.txt") != "out" {
		t.Error("the target of a link has not changed")
	}
	if info, err := os.Lstat(filepath.Join(f.dir, "dir", "back")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	expect(t, f, "write_file", args{"path": "inside-dangling", "text": "new"}, "Created none")
	list, err := os.ReadDir(secret)
	data, err2 := os.ReadFile(filepath.Join(secret, "secret.txt"))
	if err != nil || err2 != nil || len(list) != 1 || string(data) != "secret" {
		t.Errorf("the folder outside has changed: %v, %q", list, data)
	}
}

func TestConcurrentReads(t *testing.T) {
	old, new := strings.Repeat("old\n", 1000), strings.Repeat("new\n", 1000)
	f := openFolder(t, Options{Copies: t.TempDir()}, map[string]string{"a.txt": old})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 30 {
				got, err := call(t, f, "read_file", args{"path": "a.txt"})
				if err != nil || got != old && got != new {
					t.Errorf("half of a change: %v", err)
				}
				if got, err := call(t, f, "search_files", args{"pattern": "^(old|new)$", "glob": "*.txt"}); err != nil || strings.Count(got, "a.txt:") != 200 {
					t.Errorf("search: %v", err)
				}
			}
		})
	}
	for i := range 30 {
		text := new
		if i%2 == 1 {
			text = old
		}
		expect(t, f, "write_file", args{"path": "a.txt", "text": text}, "Replaced")
	}
	all.Wait()
}

func TestHugeFile(t *testing.T) {
	f := openFolder(t, Options{}, nil)
	name := filepath.Join(f.dir, "huge")
	put(t, name, strings.Repeat("first\n", 2000))
	if err := os.Truncate(name, 1<<34); err != nil { // sparse
		t.Skip(err)
	}
	expect(t, f, "read_file", args{"path": "huge", "limit": 2}, "first\nfirst\n\n[Lines 1 to 2.")
	refuse(t, f, "edit_file", args{"path": "huge", "old": "first", "new": "x"}, "files of up to 8,388,608 bytes")
	refuse(t, f, "write_file", args{"path": "huge", "text": "x"}, "files of up to")
	refuse(t, f, "write_file", args{"path": "new", "text": strings.Repeat("x", maxFile+1)}, "more than 8,388,608 bytes")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := callJSON(t, ctx, f, "search_files", []byte(`{"pattern":"x"}`)); err == nil {
		t.Error("a canceled search has no error")
	}
}

func TestClosed(t *testing.T) {
	f := openFolder(t, Options{Copies: t.TempDir()}, map[string]string{"a": "a"})
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tl := range f.Tools() {
		in := `{"path":"a"}`
		switch tl.Name {
		case "search_files":
			in = `{"pattern":"a"}`
		case "edit_file":
			in = `{"path":"a","old":"a","new":"b"}`
		case "write_file":
			in = `{"path":"a","text":"b"}`
		case "run_command":
			in = `{"command":"echo x"}`
		}
		if _, err := tl.Run(t.Context(), json.RawMessage(in)); err == nil {
			t.Errorf("%s works in a closed folder", tl.Name)
		}
	}
	if _, err := Open(filepath.Join(f.dir, "none"), nil); err == nil {
		t.Error("opened a folder that does not exist")
	}
	if _, err := Open(f.dir, &Options{Copies: "relative"}); err == nil {
		t.Error("copies in a relative directory")
	}
}
