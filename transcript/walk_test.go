package transcript

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/dev/needs"
)

// tree writes files into a new folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestWalk(t *testing.T) {
	const session = `{"type":"user","uuid":"u","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"hi"}}`
	dir := tree(t, map[string]string{
		"b/two.jsonl":                session,
		"a/one.gz":                   string(gzipped(t, session)),
		"c.txt":                      session, // by content, not by name
		"a/.hidden/three.jsonl":      session,
		"a/.four.jsonl":              session,
		"node_modules/x.jsonl":       session,
		"empty.jsonl":                "",
		"notes.md":                   "nothing",
		"a/picture.png":              "\x89PNG\x00\x00",
		"b/two/tool-results/x.txt":   "a long result",
		"b/two/tool-results/y.jsonl": session, // the result of reading a recording
		"b/tool-results/z.jsonl":     session, // not next to a session
		"p/tool-outputs/s/y.jsonl":   session, // of Gemini CLI
		"p/chats/session-1.jsonl":    session,
		"a/ui_messages.json":         `[{"ts":1,"type":"say","say":"text","text":"hi"}]`,
	})
	var read []string
	var errs []error
	for rec, err := range Walk(dir, filepath.Join(dir, "notes.md"), filepath.Join(dir, "none"), filepath.Join(dir, "c.txt")) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		rel, _ := filepath.Rel(dir, rec.File)
		read = append(read, filepath.ToSlash(rel))
	}
	if got, want := strings.Join(read, " "), "a/one.gz b/tool-results/z.jsonl b/two.jsonl c.txt p/chats/session-1.jsonl c.txt"; got != want {
		t.Errorf("read %s, want %s", got, want)
	}
	if len(errs) != 3 {
		t.Fatalf("errors %v, want three", errs)
	}
	if _, ok := errors.AsType[*UnknownFormatError](errs[0]); !ok {
		t.Errorf("a file passed by path: %v, want an UnknownFormatError", errs[0])
	}
	if !errors.Is(errs[1], os.ErrNotExist) {
		t.Errorf("a missing file: %v", errs[1])
	}
	unknown, ok := errors.AsType[*UnknownFilesError](errs[2])
	if !ok || len(unknown.Files) != 2 {
		t.Fatalf("at the end: %v, want an UnknownFilesError for two", errs[2])
	}
	if got := filepath.Base(unknown.Files[0]) + " " + filepath.Base(unknown.Files[1]); got != "picture.png notes.md" {
		t.Errorf("unknown files %s", got)
	}
}

func TestWalkStops(t *testing.T) {
	const session = `{"type":"user","uuid":"u","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"hi"}}`
	dir := tree(t, map[string]string{"a": session, "b": session, "c": "?"})
	n := 0
	for range Walk(dir) {
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d yields after a break", n)
	}
}

// A path passed to Walk may be a link; links inside folders are skipped.
func TestWalkLinks(t *testing.T) {
	const session = `{"type":"user","uuid":"u","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"hi"}}`
	dir := tree(t, map[string]string{"real/a.jsonl": session})
	link := filepath.Join(dir, "link")
	needs.Symlink(t, filepath.Join(dir, "real"), link)
	if err := os.Symlink(dir, filepath.Join(dir, "real", "round")); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range Walk(link) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("read %d files through a link, want 1", n)
	}
}

func TestUnknownFilesNamed(t *testing.T) {
	err := &UnknownFilesError{Files: strings.Split(strings.Repeat("f ", 13), " ")[:13]}
	if got := err.Error(); !strings.HasPrefix(got, "skipped 13 files") || !strings.HasSuffix(got, "f and 3 more") {
		t.Errorf("%s", got)
	}
}

func TestFormats(t *testing.T) {
	names := Formats()
	for i, n := range names {
		if n == "" || slices.Contains(names[:i], n) || n == rooBeside.name {
			t.Errorf("formats %v", names)
		}
	}
	for _, f := range formats {
		if f.detect(newProbe(nil)) || f.detect(newProbe([]byte("{}"))) || f.detect(newProbe([]byte("[]"))) {
			t.Errorf("%s claims an empty file", f.name)
		}
	}
}

// Every fixture matches one format only.
func TestFormatsDoNotOverlap(t *testing.T) {
	for name, data := range fixtures(t) {
		p := newProbe(data)
		var claimed []string
		for _, f := range formats {
			if f.detect(p) {
				claimed = append(claimed, f.name)
			}
		}
		if len(claimed) != 1 {
			t.Errorf("%s is claimed by %v", name, claimed)
		}
	}
}
