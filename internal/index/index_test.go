package index_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl/internal/index"
)

// settled writes a file that has not changed for an hour.
func settled(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	age(t, path)
}

func age(t *testing.T, path string) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
}

func put(dir, path, data string, uses ...string) {
	x := index.Open(dir)
	defer x.Close()
	f := x.File(path)
	f.Put("test", "key", []byte(data))
	f.Uses(uses...)
	f.Save()
}

func get(dir, path string) string {
	data, _ := index.Open(dir).File(path).Get("test", "key")
	return string(data)
}

func TestChanges(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(t *testing.T, path string)
		kept   bool
	}{
		{"none", func(*testing.T, string) {}, true},
		{"grown", func(t *testing.T, path string) { settled(t, path, "one two three") }, false},
		{"same size and time", func(t *testing.T, path string) {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			settled(t, path, "one too")
			if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"touched", func(t *testing.T, path string) {
			if err := os.Chtimes(path, time.Now(), time.Now()); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"a write-ahead log", func(t *testing.T, path string) { settled(t, path+"-wal", "x") }, false},
		{"a used file", func(t *testing.T, path string) { settled(t, path+".used", "changed") }, false},
		{"a used file is gone", func(t *testing.T, path string) { remove(t, path+".used") }, false},
		{"a missing file appears", func(t *testing.T, path string) { settled(t, path+".missing", "") }, false},
		{"a listed folder has one more", func(t *testing.T, path string) { settled(t, filepath.Join(path+".d", "sub", "new"), "") }, false},
		{"a listed file changed", func(t *testing.T, path string) { settled(t, filepath.Join(path+".d", "sub", "old"), "changed") }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, path := t.TempDir(), filepath.Join(t.TempDir(), "file")
			settled(t, path, "one two")
			settled(t, path+".used", "used")
			sub := filepath.Join(path+".d", "sub")
			if err := os.MkdirAll(sub, 0o700); err != nil {
				t.Fatal(err)
			}
			settled(t, filepath.Join(sub, "old"), "")
			age(t, sub)
			age(t, path+".d")
			put(dir, path, "data", path+".used", path+".missing", path+".d")
			if got := get(dir, path); got != "data" {
				t.Fatalf("got %q before the change", got)
			}
			test.change(t, path)
			if got := get(dir, path) == "data"; got != test.kept {
				t.Errorf("kept: %v, want %v", got, test.kept)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// A file that has just changed may change again at the same time.
func TestRacy(t *testing.T) {
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	put(dir, path, "data")
	if list := entries(t, dir); len(list) > 0 {
		t.Errorf("wrote %v", list)
	}
}

// What was computed from a file that changed meanwhile is not kept.
func TestChangedWhileRead(t *testing.T) {
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "file")
	settled(t, path, "one")
	f := index.Open(dir).File(path)
	f.Put("test", "key", []byte("data"))
	settled(t, path, "other")
	f.Save()
	if list := entries(t, dir); len(list) > 0 {
		t.Errorf("wrote %v", list)
	}
}

// entries lists the entry files.
func entries(t *testing.T, dir string) (paths []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.idx"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestPrivate(t *testing.T) {
	dir, path := filepath.Join(t.TempDir(), "a", "index"), filepath.Join(t.TempDir(), "file")
	settled(t, path, "one")
	put(dir, path, "a planted secret")
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		} else if data, err := os.ReadFile(name); err != nil || bytes.Contains(data, []byte("planted")) {
			t.Errorf("%s has the text, or %v", name, err)
		}
		if runtime.GOOS != "windows" && info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := get(dir, path); got != "a planted secret" {
		t.Errorf("got %q", got)
	}
}

func TestDamaged(t *testing.T) {
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "file")
	settled(t, path, "one")
	put(dir, path, "the data")
	file := entries(t, dir)[0]
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		for _, bad := range [][]byte{whole[:i], append(bytes.Clone(whole[:i]), append([]byte{whole[i] ^ 0x15}, whole[i+1:]...)...)} {
			if err := os.WriteFile(file, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := get(dir, path); got != "" && got != "the data" {
				t.Fatalf("damaged at %d: got %q", i, got)
			}
		}
	}
	put(dir, path, "the data")
	if got := get(dir, path); got != "the data" {
		t.Errorf("not rewritten: got %q", got)
	}
}

// Entry files of deleted files go, so do temporary files of processes that ended, and entries beyond eight of a section.
func TestBounded(t *testing.T) {
	dir, folder := t.TempDir(), t.TempDir()
	gone, stays := filepath.Join(folder, "gone"), filepath.Join(folder, "stays")
	settled(t, gone, "one")
	settled(t, stays, "two")
	put(dir, gone, "x")
	settled(t, filepath.Join(dir, "tmp-1"), "left by a crash")
	settled(t, filepath.Join(dir, "other"), "not an entry file")
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "tmp-1"), old, old); err != nil {
		t.Fatal(err)
	}
	remove(t, gone)
	x := index.Open(dir)
	for i := range 20 {
		f := x.File(stays)
		f.Put("test", fmt.Sprint(i), []byte{byte(i)})
		f.Put("other", "key", []byte{byte(i)})
		f.Save()
	}
	x.Close()
	if list := entries(t, dir); len(list) != 1 {
		t.Errorf("entry files: %v", list)
	}
	if _, err := os.Stat(filepath.Join(dir, "tmp-1")); err == nil {
		t.Error("the temporary file stays")
	}
	if _, err := os.Stat(filepath.Join(dir, "other")); err != nil {
		t.Error(err)
	}
	f := x.File(stays)
	for i := range 20 {
		if data, ok := f.Get("test", fmt.Sprint(i)); ok != (i >= 12) || ok && data[0] != byte(i) {
			t.Errorf("entry %d: %v, %v", i, data, ok)
		}
	}
	if data, ok := f.Get("other", "key"); !ok || data[0] != 19 {
		t.Errorf("other section: %v, %v", data, ok)
	}
}

// Processes that write, read and delete at once get either what was put, or nothing.
func TestAtOnce(t *testing.T) {
	dir, folder := t.TempDir(), t.TempDir()
	for i := range 4 {
		settled(t, filepath.Join(folder, fmt.Sprint(i)), strings.Repeat("x", i))
	}
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(worker)))
			x := index.Open(dir)
			defer x.Close()
			for range 200 {
				i := rng.IntN(4)
				f := x.File(filepath.Join(folder, fmt.Sprint(i)))
				if data, ok := f.Get("test", "key"); ok && string(data) != fmt.Sprint(i) {
					t.Errorf("file %d: got %q", i, data)
				}
				switch rng.IntN(8) {
				case 0:
					_ = os.RemoveAll(dir)
				case 1:
					x.Close()
				default:
					f.Put("test", "key", fmt.Append(nil, i))
					f.Save()
				}
			}
		})
	}
	all.Wait()
}

func TestUnavailable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	settled(t, path, "one")
	notFolder := filepath.Join(path, "index")
	for _, dir := range []string{"", notFolder} {
		put(dir, path, "x")
		if got := get(dir, path); got != "" {
			t.Errorf("index in %q has %q", dir, got)
		}
	}
	x := index.Open(t.TempDir())
	for _, path := range []string{filepath.Dir(path), filepath.Join(filepath.Dir(path), "none"), os.DevNull} {
		if x.File(path) != nil {
			t.Errorf("%s is indexed", path)
		}
	}
}
