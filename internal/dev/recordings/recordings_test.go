package recordings

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	w.Write([]byte("packed"))
	w.Close()
	for name, text := range map[string]string{"a/2.json": "plain", "a/1.json.gz": packed.String(), "b/3.txt": ""} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(Env, dir)
	got := Files(t, "a/*.json", "a/*")
	want := []string{filepath.Join(dir, "a", "1.json.gz"), filepath.Join(dir, "a", "2.json")}
	if !slices.Equal(got, want) {
		t.Fatalf("files %q, want %q", got, want)
	}
	if text := string(Read(t, got[0])) + " " + string(Read(t, got[1])); text != "packed plain" {
		t.Errorf("read %q", text)
	}
}

// A test without recordings is skipped, which testing reports to its parent
// as neither passed nor failed.
func TestUnset(t *testing.T) {
	t.Setenv(Env, "")
	reached := false
	probe := &skipper{TB: t}
	func() {
		defer func() { _ = recover() }()
		Dir(probe)
		reached = true
	}()
	if reached || probe.said == "" {
		t.Error("a test goes on without recordings")
	}
}

// skipper notes a skip and unwinds.
type skipper struct {
	testing.TB
	said string
}

func (s *skipper) Helper() {}

func (s *skipper) Skip(args ...any) {
	s.said, _ = args[0].(string)
	panic("skipped")
}
