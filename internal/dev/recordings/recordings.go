// Package recordings finds the recordings of real agent sessions that tests
// go over. They are not in the repository: the environment variable
// FURL_RECORDINGS names a folder that holds them, one sub-folder per origin,
// as CONTRIBUTING.md describes.
package recordings

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Env is the environment variable that names the folder.
const Env = "FURL_RECORDINGS"

// Dir is the folder of recordings. It skips the test where there is none.
func Dir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv(Env)
	if dir == "" {
		t.Skip(Env + " is unset: it names a folder of recorded agent sessions")
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		t.Fatalf("%s=%s is not a folder", Env, dir)
	}
	return dir
}

// Files lists the recordings that match any of the patterns, which are
// relative to the folder, sorted. It skips the test where none does.
func Files(t testing.TB, patterns ...string) []string {
	t.Helper()
	dir := Dir(t)
	var files []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Skipf("%s holds no %q", Env, patterns)
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// Read returns what a file holds, unzipped if its name ends in .gz.
func Read(t testing.TB, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil && filepath.Ext(file) == ".gz" {
		text, err = unzip(text)
	}
	if err != nil {
		t.Fatalf("read %s: %v", file, err)
	}
	return text
}

func unzip(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
